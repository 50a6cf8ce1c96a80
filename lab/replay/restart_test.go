package replay_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/go-vram/vram/internal/leaks"
	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/lab/replay"
)

// halves is a trace whose copies each hold one half of 64 MiB and then want the other. A second stream allocates a little, and
// frees, after a gate, the last buffer of the first; and a buffer is left over.
func halves(t *testing.T) *trace.Trace {
	t.Helper()
	return read(t,
		"0,a,0,33554432,0", // one half
		"1,a,1,2097152,1",  // of the second stream
		"2,a,2,33554432,0", // the other half
		"3,f,2,33554432,1", // at a gate
		"4,f,0,33554432,0",
		"5,a,3,4096,1", // left over
		"6,f,1,2097152,1",
	)
}

// meet has the players of two copies wait for each other once each copy holds one half, in the first attempt at each round, or
// for the end of a context.
type meet struct {
	ctx  context.Context
	mu   sync.Mutex
	here map[int]int           // by round
	all  map[int]chan struct{} // closed when all are here
}

func newMeet(ctx context.Context) *meet {
	return &meet{ctx: ctx, here: map[int]int{}, all: map[int]chan struct{}{}}
}

// observe is for Options.Observe. The first halves are the events 0 and 1 of two copies, and the second stream's are 2 and 3.
func (m *meet) observe(o replay.Observation) {
	if o.Index > 3 || o.Attempt > 0 {
		return
	}
	m.mu.Lock()
	m.here[o.Round]++
	if m.here[o.Round] == 1 {
		m.all[o.Round] = make(chan struct{})
	}
	all := m.all[o.Round]
	if m.here[o.Round] == 4 {
		close(all)
	}
	m.mu.Unlock()
	select {
	case <-all:
	case <-m.ctx.Done():
	}
}

// room is the copies' additional need: small buffers take whole pages.
const room = 12 << 20

func TestACopyThatIsADeadlockBeginsAnew(t *testing.T) {
	for name, o := range map[string]replay.Options{
		"bare":               {},
		"with a lag":         {Lag: time.Millisecond},
		"with kernels":       {Hazards: true},
		"both, three rounds": {Hazards: true, Lag: time.Millisecond, Rounds: 3},
		"four rounds":        {Rounds: 4},
	} {
		t.Run(name, func(t *testing.T) {
			defer leaks.None(t, goleak.IgnoreCurrent())
			o.NewDriver, o.Parallel, o.Wait, o.Copies = audited(t), true, true, 2
			o.Rounds = max(o.Rounds, 1)
			o.Limit = replay.Limit{Bytes: 64<<20 + room}
			both := newMeet(t.Context())
			var mu sync.Mutex
			seen := map[[2]int]int{} // by round and attempt
			o.Observe = func(s replay.Observation) {
				assert.NoError(t, s.Err)
				mu.Lock()
				seen[[2]int{s.Round, s.Attempt}]++
				mu.Unlock()
				both.observe(s)
			}
			tr := halves(t)
			r, err := replay.Run(t.Context(), tr, o)
			require.NoError(t, err)
			assert.Zero(t, r.FailedCount())
			assert.EqualValues(t, o.Rounds, r.RestartCount, "one of the two, in each round")
			assert.GreaterOrEqual(t, r.DeadlockCount, r.RestartCount)
			assert.LessOrEqual(t, r.PeakReservedBytes, o.Limit.Bytes)
			for round := range o.Rounds {
				assert.Equal(t, tr.Info.EventCount+2, seen[[2]int{round, 0}], "one copy comes to the end, the other to its second allocation")
				assert.Equal(t, tr.Info.EventCount, seen[[2]int{round, 1}], "all of it comes again")
			}
			if r.Hazards != nil {
				assert.Zero(t, r.Hazards.Count, "%v", r.Hazards.Reports)
			}
		})
	}
}

// A copy that is alone and is refused has nobody to wait for.
func TestACopyThatNeverFitsFails(t *testing.T) {
	defer leaks.None(t, goleak.IgnoreCurrent())
	r, err := replay.Run(t.Context(), halves(t), replay.Options{
		NewDriver: audited(t), Parallel: true, Wait: true, Copies: 2, Rounds: 2, Hazards: true, Limit: replay.Limit{Bytes: 48 << 20},
	})
	require.NoError(t, err)
	requireClean(t, r)
	assert.Equal(t, 2*2, r.FailedCount(), "the second half, of each copy in each round")
	assert.Equal(t, 2*2, r.DeadlockedCount(), "its own stream has the first half")
	assert.True(t, r.DriverModelled)
	assert.LessOrEqual(t, r.PeakReservedBytes, int64(48<<20))
}

// Three copies of which two have room: each comes to its end.
func TestThreeCopies(t *testing.T) {
	for seed := range uint64(5) {
		r, err := replay.Run(t.Context(), halves(t), replay.Options{
			NewDriver: audited(t), Parallel: true, Wait: true, Copies: 3, Rounds: 3, Seed: 1 + seed, Hazards: true, Jitter: 0.1,
			Limit: replay.Limit{Bytes: 80<<20 + room},
		})
		require.NoError(t, err)
		requireClean(t, r)
		assert.Zero(t, r.FailedCount())
		assert.LessOrEqual(t, r.RestartCount, uint64(3*3), "three in a round")
	}
}

// The run may be cancelled after each of its steps.
func TestACancelBesideARestart(t *testing.T) {
	tr := halves(t)
	defer leaks.None(t, goleak.IgnoreCurrent())
	for at := 1; at <= 2*tr.Info.EventCount+2; at++ {
		t.Run(fmt.Sprint("after step ", at), func(t *testing.T) {
			why := errors.New("enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			var mu sync.Mutex
			both := newMeet(ctx)
			steps := 0
			_, err := replay.Run(ctx, tr, replay.Options{
				NewDriver: audited(t), Parallel: true, Wait: true, Copies: 2, Rounds: 1, Hazards: true,
				Limit: replay.Limit{Bytes: 64<<20 + room},
				Observe: func(s replay.Observation) {
					mu.Lock()
					if steps++; steps == at {
						cancel(why)
					}
					mu.Unlock()
					both.observe(s)
				},
			})
			require.ErrorIs(t, err, why)
		})
	}
}

// Two copies of a pipeline where there is room for less than two.
func TestTwoPipelinesUnderALimit(t *testing.T) {
	t.Parallel()
	tr := open(t, "pipeline_1f1b")
	limit := replay.Limit{TimesPeak: 1.7}
	for seed := range uint64(pipelineSeeds) {
		t.Run(fmt.Sprint("seed ", 1+seed), func(t *testing.T) {
			r, err := replay.Run(t.Context(), tr, replay.Options{
				NewDriver: audited(t), Parallel: true, Wait: true, Copies: 2, Rounds: 1, Seed: 1 + seed, Limit: limit,
			})
			require.NoError(t, err)
			assert.Zero(t, r.FailedCount())
			assert.LessOrEqual(t, r.PeakReservedBytes, limit.For(tr.Info.PeakLiveBytes))
			assert.LessOrEqual(t, r.RestartCount, uint64(1))
		})
	}
}
