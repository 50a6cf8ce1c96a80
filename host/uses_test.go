package host

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/internal/fence"
)

// A block that was freed while a copy from it is queued is not reused before the copy has passed,
// and the copy has the bytes of before the free.
func TestReuseWaitsForTheCopy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(1 << 20)
	s := r.stream()
	const length = 4096
	there, err := r.device.MemAlloc(length)
	require.NoError(t, err)
	old := alloc(t, p, length, 0)
	copy(old.Bytes(), bytes.Repeat([]byte{1}, length))
	at := address(old)
	r.busy(s, time.Second)
	require.NoError(t, old.Use(s))
	require.NoError(t, r.memory.MemcpyHtoDAsync(there, old.Bytes(), s))
	free(t, old)
	assert.EqualValues(t, length, p.Stats().PendingBytes)

	next := alloc(t, p, length, 0)
	assert.NotEqual(t, at, address(next))
	copy(next.Bytes(), bytes.Repeat([]byte{2}, length))
	r.sim.Advance(2 * time.Second)
	back := make([]byte, length)
	require.NoError(t, r.memory.MemcpyDtoHAsync(back, there, s))
	require.NoError(t, r.device.StreamSynchronize(s))
	assert.Equal(t, bytes.Repeat([]byte{1}, length), back)

	again := alloc(t, p, length, 0)
	assert.Equal(t, at, address(again), "the copy has passed")
	assert.Zero(t, p.Stats().PendingBytes)
	free(t, again)
	free(t, next)
	require.NoError(t, r.device.MemFree(there))
	r.end(p)
}

// A stream whose work never ends holds up no block that others used, and costs a look one query.
func TestAnEndlessStreamHoldsUpNoOtherBlocks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(1 << 20)
	endless, s := r.stream(), r.stream()
	r.busy(endless, 1000*time.Hour)
	r.busy(s, time.Second)
	var held, used []Block
	for range 5 {
		held, used = append(held, alloc(t, p, 5000, 0)), append(used, alloc(t, p, 5000, 0))
	}
	wanted := map[uint64]bool{}
	for i := range held {
		require.NoError(t, held[i].Use(endless))
		require.NoError(t, used[i].Use(s))
		wanted[address(used[i])] = true
		free(t, held[i])
		free(t, used[i])
	}
	r.sim.Advance(time.Second)
	queries := r.sim.Counts()["cuEventQuery"]
	var live []Block
	for range used {
		b := alloc(t, p, 5000, 0)
		assert.True(t, wanted[address(b)])
		live = append(live, b)
	}
	assert.EqualValues(t, 6, r.sim.Counts()["cuEventQuery"]-queries, "one look: five that have passed, one that has not")
	other := alloc(t, p, 5000, 0)
	assert.EqualValues(t, 7, r.sim.Counts()["cuEventQuery"]-queries)
	assert.EqualValues(t, 11, p.Stats().Misses)
	for _, b := range append(live, other) {
		free(t, b)
	}
	r.end(p)
}

// A block that several streams use waits for all of them, however often each was announced.
func TestAllUsesHaveToPass(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(1 << 20)
	streams := []cudadrv.Stream{r.stream(), 0, r.stream(), r.stream()}
	b := alloc(t, p, 100, 0)
	for i, s := range streams {
		r.busy(s, time.Duration(i+1)*time.Second)
		for range 3 {
			require.NoError(t, b.Use(s))
		}
	}
	at := address(b)
	free(t, b)
	assert.EqualValues(t, len(streams), r.sim.Counts()["cuEventRecord"])
	var others []Block
	for range streams {
		others = append(others, alloc(t, p, 100, 0))
		assert.NotEqual(t, at, address(others[len(others)-1]))
		r.sim.Advance(time.Second)
	}
	again := alloc(t, p, 100, 0)
	assert.Equal(t, at, address(again))
	assert.False(t, again.slot.noted(), "the uses are over with the free")
	require.NoError(t, FreeAll(append(others, again)...))
	r.end(p)
}

// A stream may be destroyed once Free has returned.
func TestAStreamMayEndAfterTheFree(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(1 << 20)
	s := r.stream()
	r.busy(s, time.Second)
	b := alloc(t, p, 100, 0)
	require.NoError(t, b.Use(s))
	free(t, b)
	require.NoError(t, r.device.StreamDestroy(s))
	assert.False(t, p.look())
	r.sim.Advance(time.Second)
	assert.True(t, p.look())
	r.end(p)
}

// A batch of frees records one event on each stream, also through wrappers, and each event goes back
// once.
func TestABatchOfFreesSharesEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(1 << 20)
	log := &lines{}
	zeroed := must[*Zero](t)(Zeroed(must[*Log](t)(Logged(must[*Track](t)(Tracked(p)), log))))
	a := must[*Limit](t)(Limited(own(&opened{wrapper: wrap(zeroed), close: func() error { return nil }}), Bounds{Blocks: 10}))
	s, other := r.stream(), r.stream()
	r.busy(s, time.Second)
	var all []Block
	for i := range 10 {
		b := alloc(t, a, 5000, 0)
		require.NoError(t, b.Use(s))
		if i%2 == 0 {
			require.NoError(t, b.Use(other))
		}
		all = append(all, b)
	}
	unused := alloc(t, NewAligned(), 10, 0)
	require.NoError(t, FreeAll(append(all, unused, Block{})...))
	assert.EqualValues(t, 2, r.sim.Counts()["cuEventRecord"])
	assert.False(t, unused.Live())
	assert.False(t, p.look())
	assert.Zero(t, a.Stats().LiveBlocks)
	err := FreeAll(all...)
	require.ErrorIs(t, err, ErrDoubleFree)
	require.ErrorContains(t, err, "block 0 of 10")
	require.Len(t, log.all, 30)
	for i, line := range log.all {
		assert.Contains(t, line, [...]string{"debug host: allocated", "debug host: freed", "error host: free refused"}[i/10])
	}
	r.sim.Advance(time.Second)
	assert.True(t, p.look())
	assert.EqualValues(t, 10*8192, p.Stats().KeptBytes)
	r.end(a)
}

// The event of a batch, of however many blocks, is no other's before it has passed.
func TestTheEventOfABatchIsItsOwn(t *testing.T) {
	t.Parallel()
	for blocks := range 4 {
		r := newRig(t)
		p := r.cache(1 << 20)
		s, idle := r.stream(), r.stream()
		r.busy(s, time.Second)
		var all []Block
		for range blocks {
			b := alloc(t, p, 5000, 0)
			require.NoError(t, b.Use(s))
			all = append(all, b)
		}
		require.NoError(t, FreeAll(all...))
		other := alloc(t, p, 100, 0)
		require.NoError(t, other.Use(idle))
		free(t, other)
		assert.True(t, p.look())
		assert.EqualValues(t, blocks*8192, p.Stats().PendingBytes)
		r.sim.Advance(time.Second)
		assert.Equal(t, blocks > 0, p.look())
		r.end(p)
	}
}

// A block that a captured stream uses is not freed: the event would be part of the graph.
func TestACapturedStreamRefusesTheFree(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(1 << 20)
	s := r.stream()
	b := alloc(t, p, 100, 0)
	require.NoError(t, b.Use(s))
	require.NoError(t, r.sim.BeginCapture(s))
	var refused *CaptureError
	require.ErrorAs(t, b.Free(), &refused)
	assert.Equal(t, s, refused.Stream)
	assert.True(t, b.Live())
	_, err := r.sim.EndCapture(s)
	require.NoError(t, err, "the capture was not disturbed")

	began := false
	r.faults.SetBefore(func(function string) { // a capture that begins while the event is recorded
		if function == "cuEventRecord" && !began {
			began = true
			assert.NoError(t, r.sim.BeginCapture(s))
		}
	})
	require.ErrorAs(t, b.Free(), &refused)
	assert.True(t, b.Live())
	r.faults.SetBefore(func(string) {})
	_, err = r.sim.EndCapture(s)
	require.NoError(t, err)
	free(t, b)
	r.end(p)
}

// A driver that refuses to record leaves the block live and its uses announced.
func TestAFailedRecordLosesNothing(t *testing.T) {
	t.Parallel()
	for _, function := range []string{"cuEventCreate", "cuEventRecord", "cuStreamIsCapturing"} {
		for failing := range uint64(2) {
			r := newRig(t)
			p := r.cache(1 << 20)
			b := alloc(t, p, 100, 0)
			require.NoError(t, b.Use(r.stream()))
			require.NoError(t, b.Use(r.stream()))
			r.fail(function, failing+1, 1, cudadrv.LaunchFailed)
			require.ErrorIs(t, b.Free(), cudadrv.LaunchFailed, "%s %d", function, failing)
			assert.True(t, b.Live())
			assert.EqualValues(t, 1, p.Stats().LiveBlocks)
			records := r.sim.Counts()["cuEventRecord"]
			free(t, b)
			assert.EqualValues(t, 2, r.sim.Counts()["cuEventRecord"]-records)
			r.end(p)
		}
	}
}

// A driver that refuses to answer leaves blocks pending, and is asked again.
func TestAFailedQueryIsAskedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(1 << 20)
	s := r.stream()
	b := alloc(t, p, 100, 0)
	require.NoError(t, b.Use(s))
	free(t, b)
	r.fail("cuEventQuery", 1, 1, cudadrv.LaunchFailed)
	assert.False(t, p.look())
	assert.EqualValues(t, 1, p.Stats().LookFailures)
	assert.True(t, p.look())
	r.end(p)
}

// A driver that refuses every query, and waits for events, does not keep Trim from its end.
func TestQueriesThatAlwaysFail(t *testing.T) {
	r := newRig(t)
	p := r.cache(0)
	var streams []cudadrv.Stream
	for range 3 {
		s := r.stream()
		r.busy(s, time.Second)
		streams = append(streams, s)
		b := alloc(t, p, 4096, 0)
		for _, s := range streams { // it passes as the events of a block do, one after the other
			require.NoError(t, b.Use(s))
		}
		free(t, b)
	}
	r.fail("cuEventQuery", 1, fault.Forever, cudadrv.Unknown)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // it would look for ever
	defer cancel()
	released, err := p.Trim(ctx)
	require.NoError(t, err)
	assert.EqualValues(t, 3*4096, released)
	assert.Zero(t, p.Stats().PendingBytes)
	r.end(p)
}

// A panic of the driver in a look leaves every pending block pending.
func TestAPanicInALookLosesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(1 << 20)
	s := r.stream()
	var all []Block
	for range 5 {
		b := alloc(t, p, 4096, 0)
		require.NoError(t, b.Use(s))
		all = append(all, b)
	}
	for _, b := range all {
		free(t, b)
	}
	queries := 0
	r.faults.SetBefore(func(function string) {
		if queries++; function == "cuEventQuery" && queries == 3 {
			panic("a driver's")
		}
	})
	assert.Panics(t, func() { p.look() })
	r.faults.SetBefore(func(string) {})
	assert.EqualValues(t, 3*4096, p.Stats().PendingBytes)
	require.True(t, p.look())
	assert.EqualValues(t, 5*4096, p.Stats().KeptBytes)
	r.end(p)
}

// A Free looks at pending memory once that is beyond the bound, and not at every free.
func TestPendingMemoryIsLookedAt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(16 << 10)
	s := r.stream()
	var all []Block
	for range 32 {
		b := alloc(t, p, 4096, 0)
		require.NoError(t, b.Use(s))
		all = append(all, b)
	}
	r.busy(s, time.Second)
	for _, b := range all {
		free(t, b)
	}
	assert.EqualValues(t, 32+3, r.sim.Counts()["cuEventQuery"], "each free asks once, and looks ask at 5, 11 and 23 blocks")
	assert.EqualValues(t, 32*4096, p.Stats().PendingBytes)
	r.sim.Advance(time.Second)
	r.end(p)
}

// Uses of memory that needs none are ignored, those that could not be waited for are refused.
func TestUsesOfOtherMemory(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.stream()
	b := alloc(t, NewAligned(), 10, 0)
	require.NoError(t, b.Use(s))
	free(t, b)

	pageable := must[*Pool](t)(Pooled(NewAligned(), PoolConfig{}))
	b = alloc(t, pageable, 10, 0)
	require.NoError(t, b.Use(s))
	free(t, b)
	require.NoError(t, pageable.Close(t.Context()))

	fenced := must[*Pool](t)(Pooled(NewAligned(), PoolConfig{Device: r.device}))
	b = alloc(t, fenced, 10, 0)
	require.NoError(t, b.Use(s))
	r.busy(s, time.Second)
	free(t, b)
	assert.EqualValues(t, 64, fenced.Stats().PendingBytes)
	r.sim.Advance(time.Second)
	require.NoError(t, fenced.Close(t.Context()))

	source := must[*PageLockedMemory](t)(PageLockedSource(r.device))
	b = alloc(t, source, 10, 0)
	require.NoError(t, b.Use(s))
	r.busy(s, time.Second)
	now := r.sim.Now()
	free(t, b)
	assert.Equal(t, now+time.Second, r.sim.Now(), "the driver waits for the device")

	own := vramStream(t)
	for _, a := range []Allocator{must[*StreamMemory](t)(OfStream(own)), must[*Pool](t)(Pooled(must[*StreamMemory](t)(OfStream(own)), PoolConfig{}))} {
		b = alloc(t, a, 10, 0)
		require.NoError(t, b.Use(own.Handle()))
		var refused *UseError
		require.ErrorAs(t, b.Use(own.Handle()+1), &refused)
		buffer, ok := b.Buffer()
		assert.Equal(t, ok, a.Owner() == b.owner && insideOf(a) == nil)
		if ok {
			assert.Equal(t, b.Ptr(), buffer.Ptr())
			require.NoError(t, buffer.RecordStream(own))
		}
		free(t, b)
		require.NoError(t, a.Close(t.Context()))
	}
	r.end(source)
}

// Goroutines that use, free and allocate concurrently, on streams that advance, never get memory that a copy still uses.
func TestCopiesUnderStress(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(64 << 10)
	const length = 4096
	var group sync.WaitGroup
	for g := range 4 {
		s := r.stream()
		there, err := r.device.MemAlloc(length)
		require.NoError(t, err)
		group.Go(func() {
			back := make([]byte, length)
			for i := range 100 {
				b, err := p.Alloc(length, 0)
				if !assert.NoError(t, err) {
					return
				}
				want := bytes.Repeat([]byte{byte(g<<6 + i%64)}, length)
				copy(b.Bytes(), want)
				r.busy(s, 10*time.Microsecond)
				assert.NoError(t, b.Use(s))
				assert.NoError(t, r.memory.MemcpyHtoDAsync(there, b.Bytes(), s))
				assert.NoError(t, b.Free())
				if i%8 == 0 {
					r.sim.Advance(time.Microsecond)
					_, err := p.Trim(context.Background())
					assert.NoError(t, err)
				}
				assert.NoError(t, r.memory.MemcpyDtoHAsync(back, there, s))
				assert.NoError(t, r.device.StreamSynchronize(s))
				assert.Equal(t, want, back)
			}
		})
	}
	group.Wait()
	r.end(p)
}

// So does one that is captured only while the event is recorded: an event of a graph never passes.
func TestAStreamThatIsCapturedForAMomentRefusesTheFree(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(1 << 20)
	s := r.stream()
	b := alloc(t, p, 100, 0)
	require.NoError(t, b.Use(s))
	recorded := false
	r.faults.SetBefore(func(function string) {
		switch {
		case function == "cuEventRecord":
			recorded = true
			assert.NoError(t, r.sim.BeginCapture(s))
		case recorded: // before the question that follows
			recorded = false
			_, err := r.sim.EndCapture(s)
			assert.NoError(t, err)
		}
	})
	var refused *CaptureError
	require.ErrorAs(t, b.Free(), &refused)
	assert.Equal(t, s, refused.Stream)
	assert.True(t, b.Live())
	r.faults.SetBefore(func(string) {})
	free(t, b)
	r.end(p)
}

// FreeAll of blocks of several pools records an event of each, and each waits for its own.
func TestABatchOfSeveralPools(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	one, two := r.cache(1<<20), r.cache(1<<20)
	s := r.stream()
	r.busy(s, time.Second)
	var all []Block
	for _, p := range []*Pool{one, two, one, two} {
		b := alloc(t, p, 5000, 0)
		require.NoError(t, b.Use(s))
		all = append(all, b)
	}
	require.NoError(t, FreeAll(all...))
	assert.EqualValues(t, 2, r.sim.Counts()["cuEventRecord"])
	assert.False(t, one.look())
	r.sim.Advance(time.Second)
	for _, p := range []*Pool{one, two} {
		assert.True(t, p.look())
		assert.EqualValues(t, 2*8192, p.Stats().KeptBytes)
	}
	require.NoError(t, two.Close(t.Context()))
	r.end(one)
}

// A block that is freed after Close returns its memory at once, also where it was used, if that has finished.
func TestAUsedBlockIsFreedAfterClose(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	source := NewAligned()
	p := must[*Pool](t)(Pooled(source, PoolConfig{Device: r.device}))
	b := alloc(t, p, 100, 0)
	require.NoError(t, b.Use(r.stream()))
	require.ErrorIs(t, p.Close(t.Context()), ErrLeak)
	free(t, b)
	assert.Zero(t, source.Stats().LiveBlocks)
	assert.Zero(t, p.Stats().PendingBytes)
	require.NoError(t, p.Close(t.Context()))
	require.NoError(t, r.device.Close())
}

// The outermost of nested pools of device memory keeps the uses: it would hand the memory out. Without a device it refuses them, also
// where a pool inside could wait for them.
func TestUsesOfAPoolInAPool(t *testing.T) {
	t.Parallel()
	for _, outside := range []bool{false, true} {
		for _, inside := range []bool{false, true} {
			r := newRig(t)
			own, other := vramStreamOf(t, r.faults), r.stream()
			var a Allocator = must[*StreamMemory](t)(OfStream(own))
			for _, waits := range []bool{inside, outside} {
				cfg := PoolConfig{KeepBytes: 1 << 20}
				if waits {
					cfg.Device = r.device
				}
				a = must[*Track](t)(Tracked(must[*Pool](t)(Pooled(a, cfg))))
			}
			b := alloc(t, a, 4096, 0)
			at := address(b)
			require.NoError(t, b.Use(own.Handle()))
			r.busy(other, time.Second)
			err := b.Use(other)
			free(t, b)
			next := alloc(t, a, 4096, 0)
			if outside {
				require.NoError(t, err)
				assert.NotEqual(t, at, address(next), "the stream uses it still, inside %v", inside)
				r.sim.Advance(time.Second)
				again := alloc(t, a, 4096, 0)
				assert.Equal(t, at, address(again))
				free(t, again)
			} else {
				var refused *UseError
				require.ErrorAs(t, err, &refused, "inside %v", inside)
				assert.Equal(t, other, refused.Stream)
				assert.Equal(t, at, address(next), "it waits for no use")
			}
			free(t, next)
			r.end(a)
		}
	}
}

// A panic of the driver in the free of a block of a batch loses no event of the blocks before it, and leaves that block and the later ones live.
func TestAPanicInABatchLosesNoEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(1 << 20)
	streams := []cudadrv.Stream{r.stream(), r.stream(), r.stream()}
	var created uint64
	for round := range 4 {
		var all []Block
		for _, s := range streams {
			b := alloc(t, p, 4096, 0)
			require.NoError(t, b.Use(s))
			all = append(all, b)
		}
		records := 0
		r.faults.SetBefore(func(function string) {
			if function == "cuEventRecord" {
				if records++; records == 2 {
					panic("a driver's")
				}
			}
		})
		require.Panics(t, func() { _ = FreeAll(all...) })
		r.faults.SetBefore(nil)
		assert.Equal(t, []bool{false, true, true}, []bool{all[0].Live(), all[1].Live(), all[2].Live()})
		require.NoError(t, FreeAll(all[1:]...))
		require.True(t, p.look())
		if now := r.sim.Counts()["cuEventCreate"]; round == 0 {
			created = now
		} else {
			assert.Equal(t, created, now, "events are used again")
		}
	}
	r.end(p)
}

// Where the driver panics once more as the events of a refused free go back, the block is live all the same, and no share is lost.
func TestAPanicAfterAPanicOfAFree(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(1 << 20)
	b := alloc(t, p, 4096, 0)
	streams := []cudadrv.Stream{r.stream(), r.stream(), r.stream()}
	for _, s := range streams {
		require.NoError(t, b.Use(s))
	}
	var marks []fence.Mark
	for range 100 { // more than are kept
		marks = append(marks, must[fence.Mark](t)(p.events.Record(streams[0])))
	}
	records, destroys := 0, 0
	r.faults.SetBefore(func(function string) {
		switch function {
		case "cuEventRecord":
			if records++; records == len(streams) {
				for _, m := range marks { // so that the events that go back are destroyed
					assert.NoError(t, p.events.Release(m))
				}
				records = -len(marks)
				panic("a driver's")
			}
		case "cuEventDestroy":
			if records < 0 {
				destroys++
				panic("another")
			}
		}
	})
	require.Panics(t, func() { _ = b.Free() })
	r.faults.SetBefore(nil)
	assert.Equal(t, len(streams), destroys, "each share was given up")
	assert.True(t, b.Live())
	free(t, b)
	require.True(t, p.look())
	require.NoError(t, p.Close(t.Context()))
	require.NoError(t, r.device.Close())
}
