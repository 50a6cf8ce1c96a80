package etcd

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/go-vram/vram/fleet"
	"github.com/go-vram/vram/fleet/ledger"
)

// state is the answer of a server that is asked.
type state struct {
	after time.Duration // until it answers
	term  uint64
	err   error
}

// The states of servers. A call to one that hangs ends with its context.
var (
	serves  = state{term: 1}
	led     = state{term: 2} // by a new leader
	hangs   = state{after: time.Hour}
	slow    = state{after: askTime * 3 / 2, term: 1}
	refuses = state{err: status.Error(codes.Unavailable, "connection refused")}
	alone   = state{err: rpctypes.Error(rpctypes.ErrGRPCNoLeader)}
)

// fake is the servers of a cluster, of which all serve until some are lost. Server 0 is in use.
type fake struct {
	*servers
	lost  time.Time
	asked atomic.Int64
}

// newFake runs servers, of which some are lost after a time. After returns the state of each, so long after that.
func newFake(t *testing.T, all int, lost time.Duration, after func(time.Duration, int) state) *fake {
	t.Helper()
	f := &fake{lost: time.Now().Add(lost)}
	f.servers = newServers(all, 0, func(ctx context.Context, server int) (uint64, error) {
		f.asked.Add(1)
		now := serves
		if since := time.Since(f.lost); since >= 0 {
			now = after(since, server)
		}
		select {
		case <-time.After(now.after):
			return now.term, now.err
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	})
	require.NoError(t, f.search(t.Context(), nil))
	f.begin(0, serves.term)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return f
}

// The time until a server that serves is in use again is bounded, whenever and however others are lost. Nothing changes while the server in use serves.
func TestServerInUse(t *testing.T) {
	const never = time.Hour
	at := func(all ...state) func(time.Duration, int) state {
		return func(_ time.Duration, server int) state { return all[server] }
	}
	from := func(begin time.Duration, before, then func(time.Duration, int) state) func(time.Duration, int) state {
		return func(since time.Duration, server int) state {
			if since < begin {
				return before(since, server)
			}
			return then(since, server)
		}
	}
	for _, c := range []struct {
		name   string
		after  func(time.Duration, int) state
		within time.Duration // never: the period stays
		server int
		term   uint64
	}{
		{"another hangs", at(serves, hangs, refuses), never, 0, 1},
		{"it is slow, and so are all", at(slow, slow, slow), never, 0, 1},
		{"it hangs for a moment", from(askTime, at(hangs, hangs, hangs), at(serves, hangs, hangs)), never, 0, 1},
		{"it hangs", at(hangs, serves, refuses), askInterval + askTime, 1, 1},
		{"two hang", at(hangs, hangs, serves), askInterval + askTime, 2, 1},
		{"it was killed", at(refuses, hangs, serves), askInterval, 2, 1},
		{"it is cut off from the others", at(alone, hangs, led), askInterval, 2, 2},
		{"a new leader", at(led, led, led), askInterval, 0, 2},
		{"two seconds without a leader", from(2*time.Second, at(alone, alone, alone), at(led, hangs, hangs)), 2*time.Second + askTime + retryInterval, 0, 2},
		{"the leader of before is back", from(time.Second, at(alone, alone, alone), at(serves, hangs, hangs)), time.Second + askTime + retryInterval, 0, 1},
		{"a minute without servers", from(time.Minute, at(refuses, refuses, hangs), at(refuses, led, hangs)), time.Minute + askTime + retryInterval, 1, 2},
		{"a minute of silence", from(time.Minute, at(hangs, hangs, hangs), at(hangs, led, hangs)), time.Minute + askTime + retryInterval, 1, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			const serving = time.Minute
			for phase := askInterval / 20; phase < askInterval; phase += askInterval / 10 {
				synctest.Test(t, func(t *testing.T) {
					f := newFake(t, 3, serving+phase, c.after)
					time.Sleep(serving + phase) //nolint:forbidigo // the time of the bubble
					p := f.present()
					require.NoError(t, p.running.Err(), "all serve")
					assert.LessOrEqual(t, f.asked.Load(), int64(serving/askInterval)+4)
					select {
					case <-p.running.Done():
						assert.LessOrEqual(t, time.Since(f.lost), c.within)
					case <-time.After(2 * serving):
						assert.Equal(t, never, c.within, "it is not left")
					}
					assert.Equal(t, []any{c.server, c.term}, []any{f.present().server, f.present().term})
				})
			}
		})
	}
}

// A call ends in bounded time when its server is lost. One that may be carried out twice is answered by another server; a transaction is sent again
// only where it was surely not carried out.
func TestCallsOfLostServers(t *testing.T) {
	unavailable := status.Error(codes.Unavailable, "transport is closing")
	const within = askInterval + askTime
	for _, c := range []struct {
		name     string
		server   state // 0, after the loss
		errs     []error
		harmless bool // if it is carried out twice
		within   time.Duration
		attempts int
		is       error // nil: answered
	}{
		{"a read of a server that hangs", hangs, []error{context.Canceled}, true, within, 2, nil},
		{"a read of a server that is killed", refuses, []error{unavailable}, true, 0, 2, nil},
		{"a read while the leader changes", led, []error{rpctypes.ErrLeaderChanged}, true, 0, 2, nil},
		{"a read that fails twice", serves, []error{unavailable, unavailable}, true, 2 * retryInterval, 3, nil},
		{"a transaction at a server that hangs", hangs, []error{context.Canceled}, false, within, 1, errLeft},
		{"a transaction that a lost leader was sent", led, []error{context.Canceled}, false, askInterval, 1, errLeft},
		{"a transaction at a server that is killed", refuses, []error{unavailable}, false, 0, 1, unavailable},
		{"a transaction that timed out", serves, []error{rpctypes.ErrTimeout}, false, 0, 1, rpctypes.ErrTimeout},
		{"a transaction without a leader", led, []error{rpctypes.ErrNoLeader}, false, 0, 2, nil},
		{"a transaction of too many", serves, []error{rpctypes.ErrTooManyRequests, rpctypes.ErrTooManyRequests}, false, 2 * retryInterval, 3, nil},
		{"a transaction while the leader hands over", serves, []error{status.Error(codes.Unknown, dropped)}, false, retryInterval, 2, nil},
		{"a conflict", serves, []error{ledger.ErrConflict}, false, 0, 1, ledger.ErrConflict},
		{"refused for longer", serves, make([]error, 100), false, callTime + retryInterval/2, int(callTime/retryInterval) + 1, rpctypes.ErrTooManyRequests},
	} {
		t.Run(c.name, func(t *testing.T) {
			for phase := askInterval / 20; phase < askInterval; phase += askInterval / 10 {
				synctest.Test(t, func(t *testing.T) {
					f := newFake(t, 3, phase, func(_ time.Duration, server int) state {
						if server == 0 {
							return c.server
						}
						return state{time.Millisecond, 2, nil}
					})
					l := &Ledger{clients: make([]*clientv3.Client, 3), servers: f.servers, callTime: callTime + retryInterval/2, running: t.Context()}
					time.Sleep(phase) //nolint:forbidigo // the time of the bubble
					again := refused
					if c.harmless {
						again = unreachable
					}
					begin, attempts := time.Now(), 0
					_, err := call(t.Context(), l, func(ctx context.Context, _ *clientv3.Client) (int, error) {
						attempts++
						if attempts > len(c.errs) {
							return 0, nil
						}
						err := c.errs[attempts-1]
						switch {
						case errors.Is(err, context.Canceled):
							<-ctx.Done()
							return 0, ctx.Err()
						case err == nil:
							return 0, rpctypes.ErrTooManyRequests
						}
						return 0, err
					}, again)
					assert.LessOrEqual(t, time.Since(begin), c.within+2*time.Millisecond)
					assert.Equal(t, c.attempts, attempts)
					require.ErrorIs(t, err, c.is)
				})
			}
		})
	}
}

// A lease of the fleet outlives the loss of the server that renews it, whenever that is, and an election of two seconds.
func TestLeasesOfLostServers(t *testing.T) {
	for name, lost := range map[string]func(since time.Duration) state{
		"it hangs":      func(time.Duration) state { return hangs },
		"it was killed": func(time.Duration) state { return refuses },
		"two seconds without a leader": func(since time.Duration) state {
			if since < 2*time.Second {
				return alone
			}
			return led
		},
	} {
		t.Run(name, func(t *testing.T) {
			for phase := askInterval / 20; phase < fleet.LeaseTime; phase += askInterval / 10 {
				synctest.Test(t, func(t *testing.T) {
					f := newFake(t, 2, phase, func(since time.Duration, server int) state {
						if s := lost(since); server == 0 || s.err != nil && errors.Is(s.err, rpctypes.ErrNoLeader) {
							return s
						}
						return serves
					})
					l := &Ledger{clients: []*clientv3.Client{{}, {}}, servers: f.servers}
					ctx, cancel := context.WithTimeout(t.Context(), phase+time.Minute)
					defer cancel()
					keep(ctx, time.Now(), fleet.LeaseTime, func(ctx context.Context) (time.Duration, error) {
						return during(ctx, l, l.servers.present(), func(ctx context.Context, c *clientv3.Client) (time.Duration, error) {
							_, err := f.ask(ctx, slices.Index(l.clients, c))
							return fleet.LeaseTime, err
						})
					})
					assert.Error(t, ctx.Err(), "the lease has ended before the test")
				})
			}
		})
	}
}

// Each failure of a server has the error that tells a caller whether trying again helps.
func TestFailuresOfServers(t *testing.T) {
	wire := func(err error) error { // as a client gets it
		code := codes.Unknown
		if known, ok := errors.AsType[rpctypes.EtcdError](err); ok && !errors.Is(err, rpctypes.ErrTooManyRequests) { // which servers send without a code
			code = known.Code()
		}
		return status.Error(code, err.Error())
	}
	text := func(code codes.Code, text string) error { return status.Error(code, text) }
	large := func(err error) bool { return errors.As(err, new(*TooLargeError)) }
	full := func(err error) bool { return errors.As(err, new(*FullError)) }
	ended := func(err error) bool { return errors.Is(err, ledger.ErrLeaseEnded) }
	other := func(err error) bool { return !unreachable(err) && !large(err) && !full(err) && !ended(err) }
	for _, c := range []struct {
		want    func(error) bool
		refused bool // so a transaction may be sent again
		errs    []error
	}{
		{unreachable, true, []error{
			rpctypes.ErrNoLeader, rpctypes.ErrTooManyRequests, rpctypes.ErrAuthOldRevision, errors.New(dropped),
		}},
		{unreachable, false, []error{
			rpctypes.ErrNotLeader, rpctypes.ErrLeaderChanged, rpctypes.ErrNotCapable, rpctypes.ErrStopped, rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail,
			rpctypes.ErrTimeoutDueToConnectionLost, rpctypes.ErrTimeoutWaitAppliedIndex, rpctypes.ErrUnhealthy, rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner),
			rpctypes.Error(rpctypes.ErrGRPCCanceled), rpctypes.Error(rpctypes.ErrGRPCDeadlineExceeded), errors.New(stopped),
			text(codes.Unavailable, "transport is closing"), text(codes.Unavailable, "connection error: desc = \"transport: Error while dialing: connection refused\""),
			text(codes.Internal, "stream terminated by RST_STREAM with error code: INTERNAL_ERROR"), text(codes.Canceled, "stream terminated by RST_STREAM with error code: CANCEL"),
			text(codes.ResourceExhausted, "stream terminated by RST_STREAM with error code: ENHANCE_YOUR_CALM"), text(codes.DeadlineExceeded, "context deadline exceeded"),
			context.Canceled, context.DeadlineExceeded,
		}},
		{large, false, []error{
			rpctypes.ErrTooManyOps, rpctypes.ErrRequestTooLarge, text(codes.ResourceExhausted, "grpc: received message larger than max (5000000 vs. 4194304)"),
			text(codes.ResourceExhausted, "trying to send message larger than max (5000000 vs. 2097152)"),
		}},
		{full, false, []error{rpctypes.ErrNoSpace}},
		{ended, false, []error{rpctypes.ErrLeaseNotFound}},
		{other, false, []error{
			rpctypes.ErrPermissionDenied, rpctypes.ErrCompacted, rpctypes.ErrCorrupt, rpctypes.ErrUserNotFound, rpctypes.ErrAuthFailed, rpctypes.ErrDuplicateKey,
			errors.New("another failure"),
		}},
	} {
		for _, err := range c.errs {
			for _, of := range []error{err, wire(err)} {
				if _, known := status.FromError(err); known || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
					of = err
				}
				got := failed(of)
				assert.True(t, c.want(got), "%v: %T", of, errors.Unwrap(got))
				assert.Equal(t, c.refused, refused(got), "%v", of)
			}
		}
	}
	assert.NoError(t, failed(nil))
}
