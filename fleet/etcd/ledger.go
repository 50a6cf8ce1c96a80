package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/go-vram/vram/fleet"
	"github.com/go-vram/vram/fleet/ledger"
)

const (
	// callTime bounds a call. Not shorter: an election takes seconds. Not longer: a server that does not answer keeps the caller from others,
	// and no lease is renewed by a call.
	callTime = 4 * time.Second
	// waitAtMost is when a wait returns at the latest. Not shorter: the caller reads then. Not longer: a server that hangs sends no event.
	waitAtMost = time.Second
	// retryInterval is the time between two attempts to watch.
	retryInterval = 250 * time.Millisecond
	// pingInterval and pingTime find servers that hang; on Linux pingTime also bounds how long bytes stay unacknowledged. Not shorter: gRPC
	// pings no more often, and servers refuse an interval below 5 seconds.
	pingInterval = 10 * time.Second
	pingTime     = 3 * time.Second
	// reconnectAfter and reconnectAtMost are the times between attempts to reach a server. gRPC's own rise to two minutes.
	reconnectAfter  = 100 * time.Millisecond
	reconnectAtMost = 2 * time.Second
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

// Ledger is a fleet's keys in a cluster. Open makes one. Any number of goroutines may use it.
type Ledger struct {
	client   *clientv3.Client
	prefix   string
	callTime time.Duration // tests shorten it

	running context.Context //nolint:containedctx // its end is Close's
	stop    context.CancelFunc
	tasks   sync.WaitGroup
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
// *ConfigError, the context's, *UnreachableError with the reason, and refused permissions.
func Open(ctx context.Context, c Config) (*Ledger, error) { return open(ctx, c, callTime) }

func open(ctx context.Context, c Config, callTime time.Duration) (*Ledger, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	prefix := strings.TrimSuffix(cmp.Or(c.Prefix, defaultPrefix), "/") + "/"
	client, err := clientv3.New(clientv3.Config{
		Endpoints: c.Endpoints, TLS: c.TLS.Clone(), Logger: cmp.Or(c.Logger, zap.NewNop()),
		DialKeepAliveTime: pingInterval, DialKeepAliveTimeout: pingTime, MaxCallRecvMsgSize: mostBytes,
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: reconnectAfter, Multiplier: 1.6, Jitter: 0.2, MaxDelay: reconnectAtMost},
			MinConnectTimeout: callTime,
		})},
	})
	if err != nil {
		return nil, &ConfigError{err}
	}
	l := &Ledger{client: client, prefix: prefix, callTime: callTime, leases: map[*lease]bool{}, changed: make(chan struct{})}
	l.running, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	first, err := repeated(ctx, l, l.probe)
	if err != nil {
		return nil, errors.Join(err, l.Close()) //nolint:contextcheck // Close has no context
	}
	l.newest, l.since = first.Header.Revision, first.Header.Revision
	l.tasks.Go(l.watch)
	return l, nil
}

// probe asks for the present revision. Unlike the client's own calls it does not wait until a server can be reached, and so its error
// has the reason.
func (l *Ledger) probe(ctx context.Context) (*etcdserverpb.RangeResponse, error) {
	return etcdserverpb.NewKVClient(l.client.ActiveConnection()).Range(ctx, &etcdserverpb.RangeRequest{Key: []byte(l.prefix), CountOnly: true})
}

// repeated runs a call of the client that does no harm when it is carried out twice, within callTime: where no server has answered after a
// quarter of that, it asks again, and so most likely another one.
func repeated[T any](ctx context.Context, l *Ledger, do func(context.Context) (T, error)) (answer T, err error) {
	answer, err = call(ctx, l, l.callTime/4, do)
	var unreachable *UnreachableError
	if errors.As(err, &unreachable) {
		return call(ctx, l, l.callTime*3/4, do)
	}
	return answer, err
}

// call runs a call of the client. It ends with the caller's context, with the ledger, and after a time.
func call[T any](ctx context.Context, l *Ledger, most time.Duration, do func(context.Context) (T, error)) (answer T, err error) {
	if l.running.Err() != nil {
		return answer, ledger.ErrClosed
	}
	timed, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	defer context.AfterFunc(l.running, cancel)() //nolint:contextcheck // the end of the ledger ends the call, too
	answer, err = do(timed)
	switch {
	case err == nil:
		return answer, nil
	case l.running.Err() != nil:
		return answer, ledger.ErrClosed
	case ctx.Err() != nil:
		return answer, ctx.Err()
	}
	return answer, failed(err)
}

// Read implements fleet.Ledger. It is linearizable. Errors: the context's, ledger.ErrClosed, *UnreachableError, refused permissions, and
// rpctypes.ErrCompacted where the history of a read of more than mostRanges keys was compacted between its requests.
func (l *Ledger) Read(ctx context.Context, keys ...string) (ledger.Snapshot, error) {
	all := ledger.Snapshot{Keys: keys}
	if len(keys) == 0 {
		keys = []string{""}
	}
	for part := range slices.Chunk(keys, mostRanges) { // the first request gives the others their revision
		answer, err := repeated(ctx, l, func(ctx context.Context) (*clientv3.TxnResponse, error) {
			return l.client.Txn(ctx).Then(l.ranges(part, all.Revision)...).Commit()
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

// Commit implements fleet.Ledger. Its errors are also *TooLargeError and *FullError, after which nothing has changed, and *UnreachableError.
func (l *Ledger) Commit(ctx context.Context, t ledger.Transaction) (revision int64, err error) {
	answer, err := call(ctx, l, l.callTime, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return l.client.Txn(ctx).If(l.compares(t.If)...).Then(l.operations(t)...).Commit()
	})
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
		l.follow(after)
		if now, err := repeated(l.running, l, l.probe); err == nil {
			after = now.Header.Revision
			l.know(after, nil)
		}
		// Also where a server has answered: it may refuse the watch alone.
		timer := time.NewTimer(retryInterval)
		select {
		case <-timer.C:
		case <-l.running.Done():
		}
	}
}

// follow watches the keys from a revision on, until the watch has lost its place.
func (l *Ledger) follow(after int64) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(l.running)) // ends at a server that is cut off from the others
	defer cancel()
	for r := range l.client.Watch(ctx, l.prefix, clientv3.WithPrefix(), clientv3.WithRev(after+1)) {
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
		_ = l.client.Close() // it returns the end of its own context
	})
	return l.failure
}
