package etcd

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-vram/vram/fleet"
	"github.com/go-vram/vram/fleet/ledger"
)

const (
	// renewals is how often a lease is renewed in its life. Not fewer: one server that does not answer must not end it. Not more: each is a
	// request to the leader.
	renewals = 4
	// retries is how many attempts there are in the life of a lease where each fails at once.
	retries = 40
)

// lease is one of the cluster, which a goroutine renews.
type lease struct {
	ledger *Ledger
	id     clientv3.LeaseID
	stop   context.CancelFunc
	done   chan struct{}
	end    sync.Once
	err    error
}

// Lease implements fleet.Ledger. The time to live is rounded up to whole seconds, and to the cluster's least: its election timeout and a
// half. Errors: the context's, ledger.ErrClosed, *UnreachableError, *FullError, and refused permissions.
func (l *Ledger) Lease(ctx context.Context, ttl time.Duration) (fleet.Lease, error) {
	seconds := int64(ttl / time.Second)
	if ttl%time.Second > 0 {
		seconds++
	}
	sent := time.Now()
	granted, err := repeated(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.LeaseGrantResponse, error) {
		return c.Grant(ctx, max(seconds, 1))
	})
	if err != nil {
		return nil, err // one that was granted nevertheless has no keys, and ends by itself
	}
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	e := &lease{ledger: l, id: granted.ID, stop: stop, done: make(chan struct{})}
	l.lock.Lock()
	over := l.running.Err() != nil
	if !over {
		l.leases[e] = true
		l.tasks.Go(func() {
			defer close(e.done)
			keep(renewing, sent, time.Duration(granted.TTL)*time.Second, e.renew)
			l.forget(e)
		})
	}
	l.lock.Unlock()
	if over {
		close(e.done)
		return nil, errors.Join(ledger.ErrClosed, e.Close()) //nolint:contextcheck // Close has no context
	}
	return e, nil
}

// keep renews a lease until its end is known or the context ends. Sent is when its last renewal was sent, and life its time since then.
func keep(ctx context.Context, sent time.Time, life time.Duration, renew func(context.Context) (time.Duration, error)) {
	for next := life / renewals; ; {
		timer := time.NewTimer(min(next, time.Until(sent.Add(life))))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		begin := time.Now()
		left := life - begin.Sub(sent)
		if left <= 0 {
			return
		}
		attempt, cancel := context.WithTimeout(ctx, min(life/renewals, left))
		granted, err := renew(attempt)
		cancel()
		switch {
		case errors.Is(err, ledger.ErrLeaseEnded):
			return
		case err != nil:
			next = life / retries
		default:
			sent, life = begin, granted
			next = life / renewals
		}
	}
}

// renew asks the server in use to begin the time of the lease again, once, and returns that time. The client's own renewals stay with one server,
// also where that does not answer.
func (e *lease) renew(ctx context.Context) (time.Duration, error) {
	return during(ctx, e.ledger, e.ledger.servers.present(), func(ctx context.Context, c *clientv3.Client) (time.Duration, error) {
		stream, err := etcdserverpb.NewLeaseClient(c.ActiveConnection()).LeaseKeepAlive(ctx) // its end is the context's
		if err == nil {
			err = stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: int64(e.id)})
		}
		if err != nil {
			return 0, err
		}
		answer, err := stream.Recv()
		switch {
		case err != nil:
			return 0, err
		case answer.TTL <= 0:
			return 0, rpctypes.ErrLeaseNotFound
		}
		return time.Duration(answer.TTL) * time.Second, nil
	})
}

// ID implements fleet.Lease.
func (e *lease) ID() int64 { return int64(e.id) }

// Done implements fleet.Lease. It is closed at the latest when the lease's time is over since the last renewal that was answered was sent.
func (e *lease) Done() <-chan struct{} { return e.done }

// Close implements fleet.Lease. It waits at most four seconds for the cluster, also after Done. Errors: *UnreachableError and refused
// permissions, after which the lease ends when its time is over.
func (e *lease) Close() error {
	e.end.Do(func() {
		e.stop()
		<-e.done
		ctx, cancel := context.WithTimeout(context.Background(), e.ledger.callTime)
		defer cancel()
		_, e.err = attempts(ctx, e.ledger, func(ctx context.Context, c *clientv3.Client) (*clientv3.LeaseRevokeResponse, error) {
			return c.Revoke(ctx, e.id)
		}, unreachable)
		if errors.Is(e.err, ledger.ErrLeaseEnded) {
			e.err = nil
		}
	})
	return e.err
}

// forget takes a lease from the list that Close ends.
func (l *Ledger) forget(e *lease) {
	l.lock.Lock()
	defer l.lock.Unlock()
	delete(l.leases, e)
}
