package streams

import (
	"context"
	"testing"

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
