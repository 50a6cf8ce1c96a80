package streams

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// sent is a request for one buffer or for a batch.
type sent struct {
	cancel func() bool
	await  func() ([]Buffer, error)
}

// send sends a request for more than a stream has; as a batch it gets a part at once.
func send(ctx context.Context, s *Stream, batch, waits bool, owner *pool.Tenant) sent {
	if batch {
		f := s.AllocBatchForAsync(ctx, BatchRequest{Bytes: []int64{mib, 8 * mib}, Wait: waits, Tenant: owner})
		return sent{f.Cancel, func() ([]Buffer, error) {
			b, err := f.Await(context.Background())
			return b.Buffers(), err
		}}
	}
	f := s.AllocAsync(ctx, Request{Bytes: 9 * mib, Wait: waits, Tenant: owner})
	return sent{f.Cancel, func() ([]Buffer, error) {
		b, err := f.Await(context.Background())
		if err != nil {
			return nil, err
		}
		return []Buffer{b}, nil
	}}
}

// A request that has ended in any way leaves nothing: no place in the pool, no charge, no memory in use. It counts as a wait once if
// the pool had it waiting, as an ended wait if its context ended, as out of memory if it was refused, and as nothing else, for its
// stream as for its tenant.
func TestARequestThatHasEndedLeavesNothing(t *testing.T) {
	t.Parallel()
	type end struct {
		parked bool // the pool has it waiting before it ends; else it ends in its turn
		do     func(x sent, endContext func(), s *Stream, held Buffer)
		err    error
		ended  bool // by its context
	}
	none := func(sent, func(), *Stream, Buffer) {}
	cancels := func(x sent, _ func(), _ *Stream, _ Buffer) { x.cancel() }
	ends := func(_ sent, end func(), _ *Stream, _ Buffer) { end() }
	closes := func(_ sent, _ func(), s *Stream, _ Buffer) { _ = s.Close() }
	frees := func(_ sent, _ func(), _ *Stream, held Buffer) { _ = held.Free() }
	for name, e := range map[string]end{
		"served":                   {true, frees, nil, false},
		"its context":              {true, ends, context.Canceled, true},
		"Cancel":                   {true, cancels, context.Canceled, false},
		"Close":                    {true, closes, ErrClosed, false},
		"its context, in its turn": {false, ends, context.Canceled, true},
		"Cancel, in its turn":      {false, cancels, context.Canceled, false},
		"refused":                  {false, none, pool.ErrOutOfMemory, false},
	} {
		for _, waits := range []bool{false, true} {
			if e.parked && !waits || name == "refused" && waits {
				continue
			}
			for _, batch := range []bool{false, true} {
				for _, owned := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, Wait %v, batch %v, tenant %v", name, waits, batch, owned), func(t *testing.T) {
						t.Parallel()
						r := newRig(t, 16*mib)
						s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
						s.Exclusive()
						var owner *pool.Tenant
						if owned {
							owner = pool.NewTenant("owner", 1, pool.Quota{LimitBytes: 64 * mib})
							r.pool.AddTenants(owner)
						}
						held := must(t, other, 12*mib)
						require.NoError(t, must(t, s, 2*mib).Free())
						r.quiet(s)
						ctx, end := context.Background(), func() {}
						if e.ended {
							ctx, end = context.WithCancel(ctx)
						}
						defer end()
						leave := r.occupy(s)
						x := send(ctx, s, batch, waits, owner)
						s.turn.state.hook = func(p point) {
							if p == beforeSearch && !e.parked {
								s.turn.state.hook = nil
								if e.do(x, end, s, held); e.err == context.Canceled { //nolint:errorlint // of the table
									_, _ = x.await() // the end of a context is heard of on a goroutine of its own
								}
							}
						}
						leave()
						var all []Buffer
						var err error
						answered := make(chan struct{})
						go func() {
							defer close(answered)
							all, err = x.await()
						}()
						if e.parked {
							r.until(func() bool { // as the pool knows
								waiting, err := control(s).Waiting(t.Context())
								return err == nil && len(waiting) == 1 && waiting[0].Blocked != owned && r.books().Waits.Waiting == 1
							})
							e.do(x, end, s, held)
						}
						<-answered
						require.ErrorIs(t, err, e.err)
						for _, b := range all {
							require.NoError(t, b.Free())
						}

						count := func(is bool) uint64 {
							if is {
								return 1
							}
							return 0
						}
						r.until(func() bool { return r.books().Waits.Waiting == 0 && r.pool.Demand() == 0 })
						r.until(func() bool {
							if errors.Is(err, ErrClosed) {
								return true
							}
							require.NoError(t, s.Trim(t.Context()))
							n := r.stats(s)
							return n.Waiting == 0 && n.HeldBytes == 0
						})
						assert.Equal(t, count(e.parked), r.books().Waits.Durations.Count(), "waits")
						n := s.tally.Counts()
						assert.Equal(t, count(e.ended && waits), n.EndedWaitCount)
						assert.Equal(t, count(name == "refused"), n.OutOfMemoryCount)
						if owned {
							n := owner.Stats()
							assert.Zero(t, n.ChargedBytes)
							assert.Zero(t, n.Queued)
							assert.Equal(t, count(e.parked), n.Durations.Count(), "waits of the tenant")
							assert.Equal(t, count(name == "refused"), n.OutOfMemoryCount)
						}
					})
				}
			}
		}
	}
}
