package fleet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/fleet/core"
	"github.com/go-vram/vram/fleet/ledger"
)

// Want is memory on one device: see core.Want.
type Want = core.Want

// Request is the wants of a gang, with its priority and policy.
type Request = core.Request

// The policies of a request.
const (
	Pack   = core.Pack
	Spread = core.Spread
)

// Ticket names a grant: the gang, and the fence of its holds. Its text can be given to other processes.
type Ticket struct {
	Name  string
	Fence int64
}

// String returns the text of the ticket, NAME@FENCE.
func (t Ticket) String() string { return t.Name + "@" + strconv.FormatInt(t.Fence, 10) }

// ParseTicket reads the text of a ticket. Error: *ArgumentError.
func ParseTicket(text string) (Ticket, error) {
	name, number, _ := strings.Cut(text, "@")
	fence, err := strconv.ParseInt(number, 10, 64)
	if err = errors.Join(core.CheckName(name), err); err != nil {
		return Ticket{}, &ArgumentError{"ParseTicket", err}
	}
	return Ticket{name, fence}, nil
}

// Part is the memory of one want.
type Part struct {
	Device  string
	Host    string
	Ordinal int   // of the device with its driver, on its host
	Bytes   int64 // whole pages of the device
	// Reservation is nil unless this process owns the device. The owner's process has it by Member.Claim.
	Reservation *vram.Reservation
}

// Grant is the memory of a gang. Release ends it.
type Grant struct {
	ticket   Ticket
	parts    []Part
	gang     *gang
	released atomic.Bool // Release was called
	stop     context.CancelFunc
	done     chan struct{}
	err      error // written before done is closed
}

// made reports whether Reserve has made the grant.
func (g *Grant) made() bool { return g != nil && g.done != nil }

// Ticket returns the ticket, for the parts of the gang in other processes.
func (g *Grant) Ticket() Ticket {
	if !g.made() {
		return Ticket{}
	}
	return g.ticket
}

// Parts returns the memory of each want, in the order of the request. The caller changes nothing in it.
func (g *Grant) Parts() []Part {
	if !g.made() {
		return nil
	}
	return g.parts
}

// Done is closed when the grant has ended. A nil or zero grant has.
func (g *Grant) Done() <-chan struct{} {
	if !g.made() {
		over := make(chan struct{})
		close(over)
		return over
	}
	return g.done
}

// Err returns nil before the end, and where Release came before it; else ErrLost. Of a nil or zero grant it returns ErrNotOpen.
func (g *Grant) Err() error {
	if !g.made() {
		return ErrNotOpen
	}
	select {
	case <-g.done:
		return g.err
	default:
		return nil
	}
}

// Release gives the memory back: the owners release memory that was not drawn. It returns when the lease has ended; the owners need some
// milliseconds more. Idempotent. Errors: ErrNotOpen, and the ledger's, whose leases end nevertheless, at the latest when their time is over.
func (g *Grant) Release() error {
	if !g.made() {
		return ErrNotOpen
	}
	g.released.Store(true)
	g.stop()
	<-g.done
	return g.gang.lease.Close()
}

// gang is a request between Reserve and its end.
type gang struct {
	ledger    Ledger
	lease     Lease
	requester *core.Requester
	reader    core.Reader
	begin     time.Time
	verdict   core.Verdict // of the last step
	failure   error        // of the ledger, since its last answer
}

// Reserve waits until every want of a request is served, each by a device of its own, and returns the grant; all or nothing. The context's end
// takes the request back. Policy is Pack where it is empty; Holder and Since are for people, and filled where they are empty.
// Errors: *WaitError with the context's error, *ArgumentError, ErrLost where the request's lease ended, ErrNotOpen, ErrNilContext, and
// ErrClosed. After an error nothing is held.
func (m *Member) Reserve(ctx context.Context, r Request) (*Grant, error) {
	ctx, end, err := m.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if r.Policy == "" {
		r.Policy = Pack
	}
	if r.Holder == "" {
		r.Holder = fmt.Sprintf("%s:%d", m.host[:min(len(m.host), core.MostName-8)], os.Getpid())
	}
	if r.Since == 0 {
		r.Since = time.Now().Unix()
	}
	if err := r.Check(); err != nil {
		return nil, &ArgumentError{"Reserve", err}
	}
	lease, err := m.ledger.Lease(ctx, LeaseTime)
	if err != nil {
		return nil, m.closedOr(err)
	}
	name := strings.ToLower(rand.Text()[:12])
	g := &gang{ledger: m.ledger, lease: lease, requester: core.NewRequester(name, lease.ID(), r, core.DefaultSettings()), begin: time.Now()}
	step, err := g.next(ctx)
	if err == nil && step.Event != core.Granted {
		err = ErrLost
	}
	if err == nil && m.running.Err() == nil {
		return m.granted(g, step), nil //nolint:contextcheck // a grant outlives the call
	}
	return nil, errors.Join(m.closedOr(err), lease.Close())
}

// closedOr returns ErrClosed after Close, else the error.
func (m *Member) closedOr(err error) error {
	if m.running.Err() != nil {
		return ErrClosed
	}
	return err
}

// granted makes the grant, and watches it until its end.
func (m *Member) granted(g *gang, step core.RequesterStep) *Grant {
	ctx, stop := context.WithCancel(m.running)
	grant := &Grant{ticket: Ticket{step.Gang.Ticket, step.Holds[0].Fence}, gang: g, stop: stop, done: make(chan struct{})}
	for i, h := range step.Holds {
		p := Part{Device: h.Device, Host: step.Devices[i].Host, Ordinal: step.Devices[i].Ordinal, Bytes: h.Bytes}
		if o := m.find(h.Device); o != nil {
			p.Reservation = o.reservation(h.Ticket, h.Fence)
		}
		grant.parts = append(grant.parts, p)
	}
	m.tasks.Go(func() {
		defer close(grant.done)
		defer stop()
		_, _ = g.next(ctx) // each result is the end
		if !grant.released.Load() {
			grant.err = errors.Join(ErrLost, g.lease.Close())
		}
	})
	return grant
}

// next steps until there is an event, or the context ends.
func (g *gang) next(ctx context.Context) (core.RequesterStep, error) {
	for !over(g.lease) {
		s, err := g.ledger.Read(ctx, g.requester.Keys()...)
		if err == nil {
			g.failure = nil
			step := g.requester.Step(time.Since(g.begin)+1, g.reader.Read(s))
			if step.Event != core.None {
				return step, nil
			}
			g.verdict = step.Verdict
			err = g.perform(ctx, step, s)
		}
		if errors.Is(err, ledger.ErrLeaseEnded) {
			break
		}
		if ctx.Err() != nil || errors.Is(err, ErrClosed) {
			return core.RequesterStep{}, g.waited(ctx, err)
		}
		if err != nil {
			if !errors.Is(err, ledger.ErrConflict) {
				g.failure = err
			}
			pause(ctx, err)
		}
	}
	return core.RequesterStep{Event: core.Ended}, nil
}

// waited returns the error of a wait that ended without an event.
func (g *gang) waited(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return &WaitError{g.verdict, g.failure, ctx.Err()}
}

// perform commits a step, or waits until the next is due.
func (g *gang) perform(ctx context.Context, step core.RequesterStep, s ledger.Snapshot) error {
	switch {
	case step.Again:
		return nil
	case step.Commit != nil:
		_, err := g.ledger.Commit(ctx, *step.Commit)
		return err
	case step.Wake == 0:
		return g.ledger.Wait(ctx, s.Revision, s.Keys...)
	}
	return waitFor(ctx, g.ledger, s, time.Until(g.begin.Add(step.Wake)))
}

// waitFor waits for a change of the pairs of a snapshot, at most for a time.
func waitFor(ctx context.Context, l Ledger, s ledger.Snapshot, most time.Duration) error {
	timed, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if err := l.Wait(timed, s.Revision, s.Keys...); ctx.Err() != nil || timed.Err() == nil {
		return err
	}
	return nil
}
