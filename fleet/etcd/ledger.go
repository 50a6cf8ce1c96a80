package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/go-vram/vram/fleet"
	"github.com/go-vram/vram/fleet/ledger"
)

const (
	// callTime bounds a call with all its attempts. Not shorter: an election takes seconds. Not longer: no lease is renewed by a call.
	callTime = 4 * time.Second
	// waitAtMost is when a wait returns at the latest. Not shorter: the caller reads then. Not longer: a server that hangs sends no event.
	waitAtMost = time.Second
	// pingInterval and pingTime close connections to machines that are gone; on Linux pingTime also bounds how long bytes stay unacknowledged.
	// Not shorter: gRPC pings no more often, and servers refuse an interval below 5 seconds.
	pingInterval = 10 * time.Second
	pingTime     = 3 * time.Second
	// reconnectAfter and reconnectAtMost are the times between attempts to reach a server. gRPC's own rise to two minutes.
	reconnectAfter  = 100 * time.Millisecond
	reconnectAtMost = 500 * time.Millisecond
	// mostRecent is how many changes are kept at least, and half as many as at most: a wait for some keys that begins after more of them
	// returns at once.
	mostRecent = 4096
	// mostRanges bounds the keys of a request, of which a read has as many as it needs: a transaction has at most 128 operations.
	mostRanges = 100
	// mostBytes bounds a snapshot.
	mostBytes = 64 << 20
	// defaultPrefix begins the keys of a fleet.
	defaultPrefix = "vram/fleet/"
)

// Config names a cluster and a fleet there.
type Config struct {
	// Endpoints are the URLs of the cluster's servers for clients, as "https://host:2379". Other servers are not looked for.
	Endpoints []string
	// Prefix begins all keys; "": "vram/fleet/". A slash is added where it ends without one.
	Prefix string
	// TLS has the authority of the servers' certificates and the certificate of this process. It is not changed. The certificate of a server
	// names the host of its endpoint: etcd's client does not use ServerName.
	TLS *tls.Config
	// Insecure allows endpoints without TLS, and TLS without a certificate of this process or without verification.
	Insecure bool
	// Logger gets the messages of etcd's client; nil: they are dropped.
	Logger *zap.Logger
}

// check refuses a configuration.
func (c Config) check() error {
	if len(c.Endpoints) == 0 {
		return &ConfigError{errors.New("no endpoints: want 1 or more")}
	}
	if c.Insecure {
		return nil
	}
	for _, e := range c.Endpoints { // the client drops TLS where one has another scheme
		if !strings.HasPrefix(e, "https://") {
			return &ConfigError{fmt.Errorf("%w: endpoint %.80q: want https", ErrInsecure, e)}
		}
	}
	switch t := c.TLS; {
	case t == nil:
		return &ConfigError{fmt.Errorf("%w: no TLS", ErrInsecure)}
	case t.InsecureSkipVerify:
		return &ConfigError{fmt.Errorf("%w: certificates of servers are not verified", ErrInsecure)}
	case len(t.Certificates) == 0 && t.GetClientCertificate == nil:
		return &ConfigError{fmt.Errorf("%w: no certificate of this process", ErrInsecure)}
	}
	return nil
}

// Ledger is a fleet's keys in a cluster. Open makes one; a nil or zero one refuses each call with fleet.ErrNotOpen. Any number of goroutines
// may use it.
type Ledger struct {
	clients  []*clientv3.Client // of each server
	servers  *servers
	prefix   string
	callTime time.Duration // tests shorten it

	running context.Context //nolint:containedctx // its end is Close's
	stop    context.CancelFunc
	asked   context.CancelFunc // ends asking
	tasks   sync.WaitGroup
	asking  sync.WaitGroup // is over after the leases' ends
	closing sync.Once
	failure error // of Close

	lock    sync.Mutex // of the fields below
	leases  map[*lease]bool
	newest  int64         // revision that is known
	recent  []change      // the newest ones
	since   int64         // the revision after which recent has all
	changed chan struct{} // closed when newest changes
}

// change is a key that a revision has changed.
type change struct {
	revision int64
	key      string
}

var _ fleet.Ledger = (*Ledger)(nil)

// Open opens the ledger of a fleet, and returns when a server has answered. The ledger keeps connections and goroutines until Close. Errors:
// fleet.ErrNilContext, *ConfigError, the context's, *UnreachableError with the reason, and refused permissions.
func Open(ctx context.Context, c Config) (*Ledger, error) { return open(ctx, c, callTime) }

func open(ctx context.Context, c Config, callTime time.Duration) (*Ledger, error) {
	if ctx == nil {
		return nil, fleet.ErrNilContext
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	clients, err := connect(c, callTime)
	if err != nil {
		return nil, &ConfigError{err}
	}
	prefix := strings.TrimSuffix(cmp.Or(c.Prefix, defaultPrefix), "/") + "/"
	l := &Ledger{clients: clients, prefix: prefix, callTime: callTime, leases: map[*lease]bool{}, changed: make(chan struct{})}
	l.running, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	l.servers = newServers(len(clients), rand.IntN(len(clients)), l.ask) //nolint:gosec // so that ledgers share the servers
	timed, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if err = l.servers.search(timed, nil); err != nil {
		return nil, errors.Join(cmp.Or(ctx.Err(), error(&UnreachableError{err})), l.Close()) //nolint:contextcheck // Close has no context
	}
	asking, done := context.WithCancel(context.WithoutCancel(ctx))
	l.asked = done
	l.asking.Go(func() { l.servers.run(asking) })
	first, err := repeated(ctx, l, l.probe)
	if err != nil {
		return nil, errors.Join(err, l.Close()) //nolint:contextcheck // Close has no context
	}
	l.newest, l.since = first.Header.Revision, first.Header.Revision
	l.tasks.Go(l.watch)
	return l, nil
}

// connect makes a client of each server. They connect when they are used.
func connect(c Config, callTime time.Duration) (clients []*clientv3.Client, err error) {
	for _, endpoint := range c.Endpoints {
		client, err := clientv3.New(clientv3.Config{
			Endpoints: []string{endpoint}, TLS: c.TLS.Clone(), Logger: cmp.Or(c.Logger, zap.NewNop()),
			DialKeepAliveTime: pingInterval, DialKeepAliveTimeout: pingTime, MaxCallRecvMsgSize: mostBytes, MaxUnaryRetries: 1,
			DialOptions: []grpc.DialOption{
				grpc.WithChainUnaryInterceptor(once),
				grpc.WithConnectParams(grpc.ConnectParams{
					Backoff:           backoff.Config{BaseDelay: reconnectAfter, Multiplier: 1.6, Jitter: 0.2, MaxDelay: reconnectAtMost},
					MinConnectTimeout: callTime,
				}),
			},
		})
		if err != nil {
			for _, open := range clients {
				_ = open.Close()
			}
			return nil, err
		}
		clients = append(clients, client)
	}
	return clients, nil
}

// once runs a call that fails where its server refuses connections. The client's own calls wait, and so their errors have no reason.
func once(ctx context.Context, method string, request, reply any, c *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	return invoke(ctx, method, request, reply, c, append(options, grpc.WaitForReady(false))...)
}

// ask asks one server for the term of its leader. It reads no more than the server has itself, and one that has lost its leader refuses.
func (l *Ledger) ask(ctx context.Context, server int) (term uint64, err error) {
	answer, err := l.clients[server].Get(clientv3.WithRequireLeader(ctx), l.prefix, clientv3.WithSerializable(), clientv3.WithCountOnly())
	if err != nil {
		if u, is := errors.AsType[*UnreachableError](failed(err)); is {
			return 0, u.Err
		}
		return l.servers.present().term, nil // it answers; a call has its error
	}
	return answer.Header.RaftTerm, nil
}

// probe asks for the present revision.
func (l *Ledger) probe(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
	return c.Get(ctx, l.prefix, clientv3.WithCountOnly())
}

// made reports whether Open has made the ledger.
func (l *Ledger) made() bool { return l != nil && l.running != nil }

// ended returns the error of a call that cannot be made: fleet.ErrNotOpen, fleet.ErrNilContext, or ledger.ErrClosed after Close.
func (l *Ledger) ended(ctx context.Context) error {
	switch {
	case !l.made():
		return fleet.ErrNotOpen
	case ctx == nil:
		return fleet.ErrNilContext
	case l.running.Err() != nil:
		return ledger.ErrClosed
	}
	return nil
}

// request is a call of a client.
type request[T any] func(context.Context, *clientv3.Client) (T, error)

// repeated runs a call that does no harm when it is carried out twice: again, where its server is left or did not carry it out.
func repeated[T any](ctx context.Context, l *Ledger, do request[T]) (T, error) {
	return call(ctx, l, do, unreachable)
}

// call runs a call within callTime, and again where an error of it asks for that. It ends with the caller's context and with the ledger.
func call[T any](ctx context.Context, l *Ledger, do request[T], again func(error) bool) (answer T, err error) {
	if err = l.ended(ctx); err != nil {
		return answer, err
	}
	timed, cancel := context.WithTimeout(ctx, l.callTime)
	defer cancel()
	defer context.AfterFunc(l.running, cancel)() //nolint:contextcheck // the end of the ledger ends the call, too
	answer, err = attempts(timed, l, do, again)
	switch {
	case err == nil:
		return answer, nil
	case l.running.Err() != nil:
		return answer, ledger.ErrClosed
	case ctx.Err() != nil:
		return answer, ctx.Err()
	}
	return answer, err
}

// attempts runs a call until it succeeds, fails with an error that does not ask for another attempt, or the context ends: then the error is of the
// last attempt that the context has not ended.
func attempts[T any](ctx context.Context, l *Ledger, do request[T], again func(error) bool) (answer T, err error) {
	var reason error
	for {
		p := l.servers.present()
		answer, err = during(ctx, l, p, do)
		switch {
		case err == nil:
			return answer, nil
		case ctx.Err() != nil:
			return answer, cmp.Or(reason, err)
		case !again(err):
			return answer, err
		}
		reason = err
		timer := time.NewTimer(retryInterval)
		select {
		case <-timer.C:
		case <-p.running.Done():
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil || l.servers.ended() {
			return answer, reason
		}
	}
}

// during runs a call at the server of a period, until that ends. Where the server has not carried it out, the server is asked whether it serves.
func during[T any](ctx context.Context, l *Ledger, p *period, do request[T]) (answer T, err error) {
	short, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	defer context.AfterFunc(p.running, cancel)() //nolint:contextcheck // the end of the period ends the call, too
	answer, err = do(short, l.clients[p.server])
	switch err = failed(err); {
	case !unreachable(err) || ctx.Err() != nil:
	case p.running.Err() != nil:
		err = &UnreachableError{errLeft}
	default:
		l.servers.demand()
	}
	return answer, err
}

// Read implements fleet.Ledger. It is linearizable. Errors: the context's, ledger.ErrClosed, *UnreachableError, refused permissions, and
// rpctypes.ErrCompacted where the history of a read of more than mostRanges keys was compacted between its requests.
func (l *Ledger) Read(ctx context.Context, keys ...string) (ledger.Snapshot, error) {
	all := ledger.Snapshot{Keys: keys}
	if len(keys) == 0 {
		keys = []string{""}
	}
	for part := range slices.Chunk(keys, mostRanges) { // the first request gives the others their revision
		answer, err := repeated(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.TxnResponse, error) {
			return c.Txn(ctx).Then(l.ranges(part, all.Revision)...).Commit()
		})
		if err != nil {
			return ledger.Snapshot{}, err
		}
		if all.Revision == 0 {
			all.Revision = answer.Header.Revision
		}
		for _, of := range answer.Responses {
			for _, kv := range of.GetResponseRange().Kvs {
				all.Pairs = append(all.Pairs, ledger.Pair{
					Key: strings.TrimPrefix(string(kv.Key), l.prefix), Value: kv.Value, Create: kv.CreateRevision, Mod: kv.ModRevision, Lease: kv.Lease,
				})
			}
		}
	}
	return all.Sorted(), nil
}

// ranges returns the reads of some keys at a revision; 0: the present one.
func (l *Ledger) ranges(keys []string, revision int64) (reads []clientv3.Op) {
	for _, key := range keys {
		options := []clientv3.OpOption{clientv3.WithRev(revision)}
		if key == "" || strings.HasSuffix(key, "/") {
			options = append(options, clientv3.WithPrefix())
		}
		reads = append(reads, clientv3.OpGet(l.prefix+key, options...))
	}
	return reads
}

// Commit implements fleet.Ledger. It tries again only where the cluster has refused the transaction for a time: one that a server was sent which
// no longer answers may have been carried out. Its errors are also *TooLargeError, after which nothing has changed, and *FullError and
// *UnreachableError, after which it may have.
func (l *Ledger) Commit(ctx context.Context, t ledger.Transaction) (revision int64, err error) {
	answer, err := call(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.TxnResponse, error) {
		return c.Txn(ctx).If(l.compares(t.If)...).Then(l.operations(t)...).Commit()
	}, refused)
	switch {
	case err != nil:
		return 0, err
	case !answer.Succeeded:
		return 0, ledger.ErrConflict
	}
	return answer.Header.Revision, nil
}

func (l *Ledger) compares(all []ledger.Compare) (compares []clientv3.Cmp) {
	for _, c := range all {
		written := clientv3.ModRevision(l.prefix + c.Key) // 0: there is none
		if !c.Prefix {
			compares = append(compares, clientv3.Compare(written, "=", c.Mod))
			continue
		}
		after := min(max(c.Mod, 0), math.MaxInt64-1) + 1 // revisions are above 0
		compares = append(compares, clientv3.Compare(written.WithPrefix(), "<", after))
	}
	return compares
}

func (l *Ledger) operations(t ledger.Transaction) (operations []clientv3.Op) {
	for _, p := range t.Put {
		operations = append(operations, clientv3.OpPut(l.prefix+p.Key, string(p.Value), clientv3.WithLease(clientv3.LeaseID(p.Lease))))
	}
	for _, key := range t.Delete {
		operations = append(operations, clientv3.OpDelete(l.prefix+key))
	}
	return operations
}

// Wait implements fleet.Ledger.
func (l *Ledger) Wait(ctx context.Context, after int64, keys ...string) error {
	if err := l.ended(ctx); err != nil {
		return err
	}
	timer := time.NewTimer(waitAtMost)
	defer timer.Stop()
	for {
		l.lock.Lock()
		newest, changed, due := l.newest, l.changed, l.touched(after, keys)
		l.lock.Unlock()
		switch {
		case l.running.Err() != nil:
			return ledger.ErrClosed
		case ctx.Err() != nil:
			return ctx.Err()
		case due:
			return nil
		}
		after = max(after, newest) // whose changes were looked at
		select {
		case <-changed:
		case <-timer.C:
			return nil
		case <-ctx.Done():
		case <-l.running.Done():
		}
	}
}

// touched reports whether a known revision after the given one has changed some keys, or may have. The lock is held.
func (l *Ledger) touched(after int64, keys []string) bool {
	if l.newest <= after || len(keys) == 0 || after < l.since {
		return l.newest > after
	}
	for _, c := range slices.Backward(l.recent) {
		if c.revision <= after {
			return false
		}
		if ledger.Named(c.key, keys) {
			return true
		}
	}
	return false
}

// watch keeps newest and recent until the ledger ends.
func (l *Ledger) watch() {
	for after := l.newest; l.running.Err() == nil; {
		pause := time.NewTimer(retryInterval)
		l.follow(after)
		if now, err := repeated(l.running, l, l.probe); err == nil {
			after = now.Header.Revision
			l.know(after, nil)
		}
		// Also where a server has answered: it may refuse the watch alone.
		select {
		case <-pause.C:
		case <-l.running.Done():
		}
		pause.Stop()
	}
}

// follow watches the keys from a revision on, until the watch has lost its place or its server is left.
func (l *Ledger) follow(after int64) {
	p := l.servers.present()
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(l.running)) // ends at a server that is cut off from the others
	defer cancel()
	defer context.AfterFunc(p.running, cancel)()
	for r := range l.clients[p.server].Watch(ctx, l.prefix, clientv3.WithPrefix(), clientv3.WithRev(after+1)) {
		if last := len(r.Events) - 1; last >= 0 {
			l.know(r.Events[last].Kv.ModRevision, r.Events)
		}
	}
}

// know wakes the waiting calls where a revision is not the one that was known. Without the changes that led there any key may have changed.
func (l *Ledger) know(revision int64, changes []*clientv3.Event) {
	l.lock.Lock()
	defer l.lock.Unlock()
	for _, e := range changes {
		l.recent = append(l.recent, change{e.Kv.ModRevision, strings.TrimPrefix(string(e.Kv.Key), l.prefix)})
	}
	if more := len(l.recent) - mostRecent; more > mostRecent {
		l.since = l.recent[more-1].revision
		l.recent = slices.Delete(l.recent, 0, more)
	}
	if len(changes) == 0 {
		l.since, l.recent = revision, nil
	}
	if l.newest != revision {
		l.newest = revision
		close(l.changed)
		l.changed = make(chan struct{})
	}
}

// Close implements fleet.Ledger. It waits at most four seconds for the cluster to end the leases; the others end when their time is over.
// Its error joins the errors of the leases' ends.
func (l *Ledger) Close() error {
	if !l.made() {
		return fleet.ErrNotOpen
	}
	l.closing.Do(func() {
		l.lock.Lock()
		l.stop()
		all := l.leases
		l.leases = map[*lease]bool{}
		l.lock.Unlock()
		errs := make(chan error, len(all))
		for e := range all {
			go func() { errs <- e.Close() }()
		}
		for range all {
			l.failure = errors.Join(l.failure, <-errs)
		}
		l.tasks.Wait()
		if l.asked != nil {
			l.asked()
		}
		l.asking.Wait()
		l.servers.end()
		for _, c := range l.clients {
			_ = c.Close() // it returns the end of its own context
		}
	})
	return l.failure
}
