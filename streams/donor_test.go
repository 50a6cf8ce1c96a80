package streams

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/hazard"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/fence"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// answered has a stream answer a reclaim request for so many pages, and returns the Returns of that
// turn, which the pool has got.
func (r *rig) answered(s *Stream, pages uint32) []outgoingReturn {
	r.t.Helper()
	leave := r.occupy(s)
	s.turn.state.core.Drain()
	s.turn.reclaims.handle(&reclaim{stream: &s.wiring, pages: pages})
	returns := slices.Clone(effect.Left(&s.turn.state.effects().returns))
	leave()
	return returns
}

// An idle donor answers without a fence: its pages are free at once, and no event is recorded.
func TestAnIdleDonorRecordsNoFence(t *testing.T) {
	t.Parallel()
	r, donor, other := pair(t, 16*mib)
	b := must(t, donor, 16*mib)
	require.NoError(t, r.gpu.Launch(donor.Handle(), time.Second))
	require.NoError(t, b.Free())
	r.gpu.Advance(2 * time.Second)
	must(t, other, 16*mib)
	assert.Zero(t, r.faults.Calls("cuEventRecord"))
	assert.Equal(t, 2*time.Second, r.gpu.Now(), "nobody waited")
	assert.Zero(t, r.books().PendingBytes)
}

// A donor with work in flight records a fence: no other stream has its pages before the work is
// over.
func TestABusyDonorRecordsAFence(t *testing.T) {
	t.Parallel()
	r, donor, other := pair(t, 16*mib)
	b := must(t, donor, 16*mib)
	require.NoError(t, r.gpu.Launch(donor.Handle(), time.Second))
	require.NoError(t, b.Free())
	must(t, other, 16*mib)
	assert.EqualValues(t, 1, r.faults.Calls("cuEventRecord"))
	assert.GreaterOrEqual(t, r.gpu.Now(), time.Second)
}

// hazardRig is a rig whose device reports every access that a buffer's next owner is not ordered
// after it, with the program's view of it.
func hazardRig(t *testing.T, limitBytes int64) (r *rig, program *hazard.Device, checker *hazard.Checker) {
	t.Helper()
	machine := sim.New(sim.Config{})
	checked := hazard.Wrap(machine)
	r = &rig{t: t, gpu: machine.Device(0), faults: fault.Wrap(checked.Allocator())}
	var err error
	r.device, err = r.faults.Open(0)
	require.NoError(t, err)
	r.fences = fence.NewEvents(r.device)
	r.pool, err = pool.New(pool.Config{Device: r.device, Fences: r.fences, Settings: poolcore.Settings{
		LimitBytes: limitBytes, Policy: poolcore.Policy{HandlePages: 1, Slack: 1024},
	}})
	require.NoError(t, err)
	r.limit.Store(limitBytes)
	program, err = checked.View(0)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, program.Close())
		r.close()
	})
	return r, program, checked.Checker(0)
}

// Streams that take runs of each other all the time, some with work in flight and some idle, hand no
// page out that another stream's work may still touch.
func TestDonorsMakeNoHazard(t *testing.T) {
	t.Parallel()
	r, program, checker := hazardRig(t, 32*mib)
	streams := []*Stream{r.stream(core.Budget{}), r.stream(core.Budget{}), r.stream(core.Budget{})}
	idle, busy := 0, 0
	for round := range 60 {
		s := streams[round%3]
		bytes := int64(8+round%5) * 2 * mib
		b := must(t, s, bytes)
		checker.Allocated(hazard.Buffer{Ptr: b.Ptr(), Bytes: bytes, Stream: s.Handle()})
		work := hazard.Access{Ptr: b.Ptr(), Bytes: bytes, Write: true}
		require.NoError(t, program.Kernel(s.Handle(), time.Duration(1+round%4)*time.Millisecond, work))
		checker.Freed(b.Ptr(), site.Stack{})
		require.NoError(t, b.Free())
		if round%3 == 0 {
			idle++
			r.gpu.Advance(time.Second)
		} else {
			busy++
		}
	}
	assert.Positive(t, idle)
	assert.Positive(t, busy)
	require.NoError(t, checker.Err())
}

// A request for some pages takes no more runs than it needs.
func TestARequestForSomePagesTakesOneRun(t *testing.T) {
	t.Parallel()
	for _, pages := range []uint32{4, 0} {
		r := newRig(t, 128*mib)
		s := r.stream(core.Budget{})
		crumbs := []Buffer{must(t, s, 12*mib), must(t, s, 2*mib), must(t, s, 8*mib), must(t, s, 2*mib)}
		require.NoError(t, crumbs[0].Free())
		require.NoError(t, crumbs[2].Free())
		r.tick(s)
		returns := r.answered(s, pages)
		require.Len(t, returns, 1)
		assert.True(t, returns[0].Answer)
		if pages > 0 {
			assert.Len(t, returns[0].Runs, 1)
			assert.GreaterOrEqual(t, returns[0].Runs[0].Pages, pages)
		} else {
			assert.GreaterOrEqual(t, len(returns[0].Runs), 2)
		}
		require.NoError(t, crumbs[1].Free())
		require.NoError(t, crumbs[3].Free())
	}
}

// An adopted stream whose callers never come answers a reclaim request: with the pages that a fence
// covers, which are none here, and with how much stays.
func TestAnAdoptedDonorAnswers(t *testing.T) {
	t.Parallel()
	for _, pages := range []uint32{3, 0} {
		r := newRig(t, 32*mib)
		s := r.adopt()
		require.NoError(t, must(t, s, 24*mib).Free())
		calls := r.faults.Calls("cuStreamQuery") + r.faults.Calls("cuEventRecord")
		returns := r.answered(s, pages)
		require.Len(t, returns, 1)
		assert.True(t, returns[0].Answer)
		assert.Empty(t, returns[0].Runs)
		assert.Equal(t, 24*mib, returns[0].UncoveredBytes)
		assert.Equal(t, calls, r.faults.Calls("cuStreamQuery")+r.faults.Calls("cuEventRecord"), "no call on the program's stream")
		other := r.stream(core.Budget{})
		_, err := other.Alloc(32 * mib)
		require.ErrorIs(t, err, pool.ErrOutOfMemory, "it has its answer")
	}
}

// A stream whose Close has begun answers, without its pages: the CUDA stream is about to go. They
// come once the device was synchronised.
func TestAClosingDonorAnswers(t *testing.T) {
	t.Parallel()
	r, donor, other := pair(t, 32*mib)
	require.NoError(t, must(t, donor, 24*mib).Free())
	entered, release := r.holdUp("cuStreamSynchronize")
	closed := make(chan error, 1)
	go func() { closed <- donor.Close() }()
	<-entered
	_, err := other.Alloc(16 * mib)
	assert.ErrorIs(t, err, pool.ErrOutOfMemory, "it has its answer")
	assert.Zero(t, r.faults.Calls("cuEventRecord"))
	release()
	require.NoError(t, <-closed)
	must(t, other, 16*mib)
}

// A turn that panics between taking runs and answering loses nothing: the runs go back into the
// stream, the pool gets an answer without them, and its next request gets them.
func TestAPanicOfADonorLosesNoRuns(t *testing.T) {
	t.Parallel()
	for _, pages := range []uint32{3, 0} {
		r, donor, other := pair(t, 32*mib)
		require.NoError(t, must(t, donor, 24*mib).Free())
		leave := r.occupy(donor)
		donor.turn.state.hook = crashing(beforeReturn, 1, nil)
		leave()
		donor.client.Asked(1, pages)
		require.Equal(t, 24*mib, r.stats(donor).HeldBytes)
		r.balanced(donor)
		assert.NoError(t, control(donor).Check(t.Context()))
		r.until(func() bool { // the pool did not ask: until it has the answer, it may take it for the next one
			b, err := other.Alloc(24 * mib)
			return err == nil && assert.NoError(t, b.Free())
		})
		r.balanced(donor, other)
	}

	r, donor, other := pair(t, 32*mib)
	require.NoError(t, must(t, donor, 24*mib).Free())
	leave := r.occupy(donor)
	donor.turn.state.hook = crashing(beforeReturn, 1, nil) // for the first request of the pool
	leave()
	require.NoError(t, must(t, other, 24*mib).Free())
	r.balanced(donor, other)
}
