package streams

import (
	"context"
	"testing"
	"time"

	"github.com/go-vram/vram/pool"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/stream/core"
)

// byHand is a context that ends where a test calls end, which calls the functions of AfterFunc.
type byHand struct {
	context.Context
	cause error
	late  bool // calls are running: it is too late to stop them
	calls []func()
}

func (c *byHand) Err() error            { return c.cause }
func (c *byHand) Done() <-chan struct{} { return make(chan struct{}) }

func (c *byHand) AfterFunc(f func()) (stop func() bool) {
	at := len(c.calls)
	c.calls = append(c.calls, f)
	return func() bool {
		if c.late {
			return false
		}
		c.calls[at] = func() {}
		return true
	}
}

func (c *byHand) end() {
	c.cause = context.Canceled
	for _, f := range c.calls {
		f()
	}
}

// EndedWaitCount counts requests with Wait whose context ended before they had memory, and no others: for each way in which a request
// ends, with Wait and without. A request that was refused before it waited is none of them.
func TestEndedWaitsAreThoseOfRequestsThatWait(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		ends   func(c *byHand, cancel func() bool)
		before bool // it ends before the request
		counts bool // with Wait
		err    bool
	}{
		"served":                {ends: func(*byHand, func() bool) {}},
		"its context ends":      {ends: func(c *byHand, _ func() bool) { c.end() }, counts: true, err: true},
		"its context has ended": {ends: func(c *byHand, _ func() bool) { c.end() }, before: true, err: true},
		"the future's Cancel":   {ends: func(_ *byHand, cancel func() bool) { cancel() }, err: true},
		"Cancel, while it ends": {ends: func(c *byHand, cancel func() bool) {
			c.late = true
			cancel()
			c.end()
		}, err: true},
		"Cancel, then its end": {ends: func(c *byHand, cancel func() bool) {
			cancel()
			c.end()
		}, err: true},
	} {
		for _, waits := range []bool{false, true} {
			r := newRig(t, 64*mib)
			s := r.stream(core.Budget{})
			leave := r.occupy(s)
			ctx := &byHand{Context: t.Context()}
			if one.before {
				one.ends(ctx, nil)
			}
			asked := s.AllocAsync(ctx, Request{Bytes: mib, Wait: waits})
			if !one.before {
				one.ends(ctx, asked.Cancel)
			}
			leave()
			b, err := asked.Await(t.Context())
			require.Equal(t, one.err, err != nil, "%s: %v", name, err)
			if err == nil {
				require.NoError(t, b.Free())
			}
			want := uint64(0)
			if waits && one.counts {
				want = 1
			}
			assert.Equal(t, want, r.stats(s).EndedWaitCount, "%s, Wait: %v", name, waits)
		}
	}
}

// A tick reports requests that have waited for a second in the pool, each once, with its facts: no other, and none that has ended.
func TestLongWaitsAreReportedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	s.turn.dispatch.longWait = func(LongWait) {}
	owner := pool.NewTenant("owner", 1, pool.Quota{LimitBytes: 4 * mib})
	require.True(t, (*pool.TenantControl)(owner).Charge(4*mib))
	now := time.Now()
	request := func(bytes int64, tag string, waited time.Duration, owner *pool.Tenant) *single {
		x := s.request(Request{Bytes: bytes, Tag: tag, Wait: true, Priority: 3})
		if owner != nil {
			require.NoError(t, x.charge(owner, bytes))
		}
		x.parkedAt = now.Add(-waited)
		return x
	}
	cancelled := request(mib, "cancelled", time.Hour, nil)
	all := []*single{
		request(mib, "memory", 2*longWaitAfter, nil), request(2*mib, "quota", 2*longWaitAfter, owner), cancelled, request(mib, "short", 0, nil),
	}
	require.True(t, cancelled.promise.Future().Cancel())
	parks(r, s, all...)
	for i, want := range [][]LongWait{{
		{Stream: s.ID(), Bytes: mib, Priority: 3, Tag: "memory"},
		{Stream: s.ID(), Bytes: 2 * mib, Priority: 3, Tag: "quota", Tenant: "owner", ForQuota: true},
	}, nil} {
		var found []LongWait
		require.True(t, s.tryTurn(func() { found = s.turn.dispatch.longWaits() }))
		for i := range found {
			assert.GreaterOrEqual(t, found[i].Waited, 2*longWaitAfter)
			found[i].Waited = 0
		}
		assert.Equal(t, want, found, "look %d", i)
	}
	require.True(t, s.tryTurn(func() {
		for _, x := range all { // the pool does not know them
			s.turn.state.claims.Take(&x.claim.Claim)
		}
	}))
}
