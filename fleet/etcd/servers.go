package etcd

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// askInterval is how often the server in use is asked whether it serves. Not shorter: each member of a fleet asks. Not longer: calls to
	// a server that hangs, or that has sent a transaction to a leader that is gone, wait for so long.
	askInterval = 500 * time.Millisecond
	// askTime is how long it may take to answer. Not shorter: servers on busy machines would be left. Not longer: as before.
	askTime = 500 * time.Millisecond
	// retryInterval is the time between two attempts that fail at once.
	retryInterval = 250 * time.Millisecond
)

// errLeft is the reason for the end of a call whose server may not carry it out.
var errLeft = errors.New("its server no longer answers, or the cluster has a new leader")

// period is a time in which one server is used and one leader is known. Calls in it end with it.
type period struct {
	server  int
	term    uint64          // of the leader; 0: not known
	running context.Context //nolint:containedctx // its end is the period's
	end     context.CancelFunc
}

// servers chooses the server of the cluster that a ledger uses. It asks that one again and again, and leaves it when it does not answer, refuses
// connections, or knows no leader: then it asks all, until one serves.
type servers struct {
	// ask asks a server for the term of its leader, without the others' help. Its error says that the server does not serve.
	ask  func(ctx context.Context, server int) (term uint64, err error)
	all  int
	asks chan struct{} // has room for one demand to ask at once

	lock sync.Mutex // of the fields below
	now  *period
	over bool // nobody asks any more
}

func newServers(all, first int, ask func(context.Context, int) (uint64, error)) *servers {
	s := &servers{ask: ask, all: all, asks: make(chan struct{}, 1)}
	s.begin(first, 0)
	return s
}

// present returns the present period.
func (s *servers) present() *period {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.now
}

// begin ends the present period, and begins the next.
func (s *servers) begin(server int, term uint64) {
	p := &period{server: server, term: term}
	p.running, p.end = context.WithCancel(context.Background())
	s.lock.Lock()
	last := s.now
	s.now = p
	s.lock.Unlock()
	if last != nil {
		last.end()
	}
}

// end ends the last period.
func (s *servers) end() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.over = true
	s.now.end()
}

// ended reports whether the last period has ended.
func (s *servers) ended() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.over
}

// demand has the server asked at once.
func (s *servers) demand() {
	select {
	case s.asks <- struct{}{}:
	default:
	}
}

// run asks until the context ends.
func (s *servers) run(ctx context.Context) {
	for {
		timer := time.NewTimer(askInterval)
		select {
		case <-timer.C:
		case <-s.asks:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
		p := s.present()
		short, cancel := context.WithTimeout(ctx, askTime)
		term, err := s.ask(short, p.server)
		cancel()
		switch {
		case err != nil:
			_ = s.search(ctx, err) // it ends with the context
		case term != p.term:
			s.begin(p.server, term)
		}
	}
}

// search asks all servers until one serves, and begins a period with the first that answers; not where that is the present server, which was slow, so that
// its calls continue. Failure is the reason of the search; nil: there is none. The context's end ends it, with the servers' errors.
func (s *servers) search(ctx context.Context, failure error) error {
	reasons := make([]error, s.all)
	for {
		p := s.present()
		server, term := s.askAll(ctx, reasons)
		switch {
		case server < 0:
		case failure != nil && silent(failure) && server == p.server && term == p.term:
			return nil
		default:
			s.begin(server, term)
			return nil
		}
		timer := time.NewTimer(retryInterval)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return errors.Join(reasons...)
		}
	}
}

// askAll asks all servers at once, and returns the first that answers and its term; -1: none. It notes the errors of the others.
func (s *servers) askAll(ctx context.Context, reasons []error) (server int, term uint64) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	type answer struct {
		server int
		term   uint64
		err    error
	}
	answers := make(chan answer, s.all)
	for i := range s.all {
		go func() {
			term, err := s.ask(ctx, i)
			answers <- answer{i, term, err}
		}()
	}
	server = -1
	for range s.all {
		a := <-answers
		switch {
		case a.err == nil && server < 0:
			server, term = a.server, a.term
			cancel()
		case a.err != nil && (reasons[a.server] == nil || !silent(a.err)):
			reasons[a.server] = a.err
		}
	}
	return server, term
}

// silent reports whether an error says no more than that there was no answer.
func silent(err error) bool {
	code := status.Code(err)
	return code == codes.DeadlineExceeded || code == codes.Canceled || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
