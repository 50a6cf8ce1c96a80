package host

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/recoveredtest"
)

// gate holds calls of a function of the driver up.
type gate struct{ entered, open chan struct{} }

// hold stops the next call of a function until the gate is opened.
func (r *rig) hold(function string) gate {
	g := gate{make(chan struct{}, 100), make(chan struct{})}
	r.faults.SetBefore(func(called string) {
		if called == function {
			g.entered <- struct{}{}
			<-g.open
		}
	})
	return g
}

// While the driver waits for the device, in a release beyond the bound, frees and requests proceed.
func TestAReleaseHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(4096)
	first, second, third := alloc(t, p, 4096, 0), alloc(t, p, 4096, 0), alloc(t, p, 4096, 0)
	g := r.hold("cuMemFreeHost")
	free(t, first)
	free(t, second)
	<-g.entered
	free(t, third)
	s := p.Stats()
	assert.EqualValues(t, 4096, s.KeptBytes)
	assert.EqualValues(t, 8192, s.ReleasingBytes)
	assert.Zero(t, s.LiveBlocks)
	assert.Zero(t, s.LiveBytes)
	misses := s.Misses
	b, queued := alloc(t, p, 4096, 0), alloc(t, p, 4096, 0)
	assert.Equal(t, misses, p.Stats().Misses, "one was kept, one not begun with")
	assert.EqualValues(t, 4096, p.Stats().ReleasingBytes)
	free(t, b)
	free(t, queued)
	assert.EqualValues(t, 8192, p.Stats().ReleasingBytes)

	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("enough")
	cancel(reason)
	_, err := p.Trim(ctx)
	require.ErrorIs(t, err, reason)
	require.ErrorIs(t, p.Close(ctx), reason)
	close(g.open)
	r.end(p)
	assert.EqualValues(t, 3, p.Stats().Releases)
}

// The end of the context ends the wait of Close for a stream, and nothing is lost: a further Close
// releases the memory once the use has passed.
func TestACloseThatIsCancelled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(1 << 20)
	s := r.stream()
	b := alloc(t, p, 4096, 0)
	r.busy(s, time.Second)
	require.NoError(t, b.Use(s))
	free(t, b)
	g := r.hold("cuEventSynchronize")
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error)
	go func() { over <- p.Close(ctx) }()
	<-g.entered
	cancel()
	err := <-over
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, ErrLeak, "no caller has it")
	assert.EqualValues(t, 4096, p.Stats().PendingBytes)
	close(g.open)
	r.sim.Advance(time.Second)
	require.Eventually(t, func() bool {
		return p.Close(t.Context()) == nil && r.sim.Counts()["cuEventCreate"] == r.sim.Counts()["cuEventDestroy"]
	},
		time.Minute, time.Millisecond, "the goroutine that waits gives its share of the event up by itself")
	r.end(p)
}

// Memory that the driver does not take back is counted, told by Trim, and tried again.
func TestAReleaseThatFails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(4096)
	first, second := alloc(t, p, 4096, 0), alloc(t, p, 4096, 0)
	r.fail("cuMemFreeHost", 1, 1000, cudadrv.LaunchFailed) // as often as it is tried, until the rig's end
	free(t, first)
	free(t, second)
	for _, end := range []func() error{
		func() error { _, err := p.Trim(t.Context()); return err },
		func() error { return p.Close(t.Context()) },
	} {
		err := end()
		require.ErrorIs(t, err, cudadrv.LaunchFailed)
		require.NotErrorIs(t, err, ErrLeak)
		assert.NotZero(t, p.Stats().ReleasingBytes)
	}
	assert.NotZero(t, p.Stats().ReleaseFailures)
	r.end(p)
}

// exits are the ways in which a driver call does not return.
func exits(t *testing.T) map[string]func() {
	t.Helper()
	recoveredtest.Expect(t, "host: release: the function ended its goroutine")
	recoveredtest.Expect(t, "host: wait: the function ended its goroutine")
	return map[string]func(){"a panic": func() { panic(recoveredtest.Planted("in the driver")) }, "the end of the goroutine": runtime.Goexit}
}

// A panic of the driver in a release is reported, and so is the end of its goroutine, and the memory is tried again.
func TestAReleaseThatDoesNotReturn(t *testing.T) {
	for name, exit := range exits(t) {
		r := newRig(t)
		p := r.cache(4096)
		first, second, third := alloc(t, p, 4096, 0), alloc(t, p, 4096, 0), alloc(t, p, 4096, 0)
		calls := 0
		r.faults.SetBefore(func(function string) {
			if function == "cuMemFreeHost" {
				if calls++; calls == 1 {
					exit()
				}
			}
		})
		free(t, first)
		free(t, second)
		free(t, third)
		require.NoError(t, p.awaitReleases(t.Context()), name)
		assert.EqualValues(t, 1, p.Stats().ReleaseFailures, name)
		assert.EqualValues(t, 1, p.panics.Count(), name)
		assert.EqualValues(t, 1, p.Stats().Releases, name)
		assert.EqualValues(t, 4096, p.Stats().ReleasingBytes, name)
		require.ErrorIs(t, p.refusedError(), errPanicked, name)
		r.end(p)
	}
}

// A block that is live at Close is told, stays valid, and its Free releases it.
func TestABlockThatOutlivesItsPool(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(1 << 20)
	s := r.stream()
	b, used := alloc(t, p, 4096, 0), alloc(t, p, 8192, 0)
	var left *LeakError
	require.ErrorAs(t, p.Close(t.Context()), &left)
	assert.Equal(t, LeakError{Kind: PageLocked, Blocks: 2, Bytes: 12 << 10}, *left)
	b.Bytes()[0] = 1
	free(t, b)
	require.NoError(t, p.awaitReleases(t.Context()))
	assert.EqualValues(t, 1, r.sim.Counts()["cuMemFreeHost"])
	require.NoError(t, used.Use(s))
	r.busy(s, time.Second)
	free(t, used)
	assert.EqualValues(t, 8192, p.Stats().PendingBytes)
	r.end(p)
}

// A live block of the wrapped allocator that is not the pool's is told, too, if the pool has none.
func TestABlockOfTheWrappedAllocatorOutlivesThePool(t *testing.T) {
	t.Parallel()
	for _, held := range []bool{true, false} {
		source := NewAligned()
		p := must[*Pool](t)(Pooled(source, PoolConfig{KeepBytes: 1 << 20}))
		free(t, alloc(t, p, 4096, 0))
		other, own := alloc(t, source, 512, 0), alloc(t, p, 8192, 0)
		want := LeakError{Kind: p.Kind(), Blocks: 1, Bytes: 8192}
		if !held {
			free(t, own)
			want.Bytes = 512
		}
		var left *LeakError
		err := p.Close(t.Context())
		require.ErrorAs(t, err, &left)
		assert.Equal(t, want, *left)
		require.EqualError(t, err, left.Error(), "it is told once")
		if held {
			free(t, own)
			require.ErrorIs(t, p.Close(t.Context()), ErrLeak, "the other one is there still")
		}
		free(t, other)
		require.NoError(t, p.Close(t.Context()))
	}
}

// A driver without memory gets back all that the cache keeps, and is asked once more.
func TestMemoryRunsOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(1 << 20)
	kept := alloc(t, p, 4096, 0)
	free(t, kept)
	r.fail("cuMemHostAlloc", 1, 1, cudadrv.OutOfMemory)
	b := alloc(t, p, 8192, 0)
	assert.EqualValues(t, 1, p.Stats().Releases)
	assert.Zero(t, p.Stats().Refusals)
	assert.EqualValues(t, 2, p.Stats().Misses, "a call that asks twice is one")
	r.fail("cuMemHostAlloc", 1, 2, cudadrv.OutOfMemory)
	_, err := p.Alloc(4096, 0)
	var refused *MemoryError
	require.ErrorAs(t, err, &refused)
	require.ErrorIs(t, err, ErrOutOfMemory)
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
	assert.EqualValues(t, 4096, refused.RequestedBytes)
	assert.EqualValues(t, 1, p.Stats().Refusals)
	assert.EqualValues(t, 1, p.Stats().LiveBlocks)
	free(t, b)
	r.end(p)
}

// A limit inside a pool counts the kept memory, too; a request that it refuses has that released.
func TestALimitInsideAPool(t *testing.T) {
	t.Parallel()
	limit := must[*Limit](t)(Limited(NewAligned(), Bounds{Bytes: 10_000}))
	p := must[*Pool](t)(Pooled(limit, PoolConfig{}))
	free(t, alloc(t, p, 8192, 0))
	b := alloc(t, p, 4096, 0)
	assert.EqualValues(t, 1, p.Stats().Releases)
	_, err := p.Alloc(8192, 0)
	require.ErrorIs(t, err, ErrLimit)
	free(t, b)
	require.NoError(t, p.Close(t.Context()))
}

// A driver that fails in any call of an allocation leaks no memory.
func TestAllocationsThatFail(t *testing.T) {
	t.Parallel()
	for _, function := range []string{"cuMemHostAlloc", "cuMemHostGetDevicePointer"} {
		r := newRig(t)
		p := r.cache(1 << 20)
		r.fail(function, 1, 1, cudadrv.LaunchFailed)
		_, err := p.Alloc(100, 0)
		require.ErrorIs(t, err, cudadrv.LaunchFailed)
		assert.Zero(t, p.Stats().LiveBlocks)
		assert.EqualValues(t, 1, p.Stats().Refusals)
		r.fail(function, 1, 1, cudadrv.LaunchFailed)
		_, err = p.AllocZeroed(100, 0)
		require.ErrorIs(t, err, cudadrv.LaunchFailed)
		r.faults.SetBefore(func(called string) {
			if called == function {
				panic("a driver's")
			}
		})
		assert.Panics(t, func() { _, _ = p.Alloc(100, 0) })
		r.faults.SetBefore(func(string) {})
		assert.Zero(t, p.Stats().LiveBlocks)
		free(t, alloc(t, p, 100, 0))
		if function == "cuMemHostAlloc" {
			r.end(p)
		}
	}
}

// A source whose driver refuses a free, or panics, has the block still, and takes it later.
func TestAFreeOfTheSourceThatFails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	source := must[*PageLockedMemory](t)(PageLockedSource(r.device))
	tracked := must[*Track](t)(Tracked(must[*Limit](t)(Limited(source, Bounds{Blocks: 1}))))
	b := alloc(t, tracked, 100, 0)
	r.fail("cuMemFreeHost", 1, 1, cudadrv.LaunchFailed)
	require.ErrorIs(t, b.Free(), cudadrv.LaunchFailed)
	assert.True(t, b.Live())
	r.faults.SetBefore(func(called string) { panic(called) })
	assert.Panics(t, func() { _ = b.Free() })
	r.faults.SetBefore(func(string) {})
	assert.True(t, b.Live())
	assert.EqualValues(t, 1, tracked.Stats().LiveBlocks)
	_, err := tracked.Alloc(1, 0)
	require.ErrorIs(t, err, ErrLimit)
	free(t, b)
	r.end(tracked)
}

// A request that looks for queued memory of its size holds the queue for a moment: the goroutine that releases it may find it empty then, and end.
// So the request starts it again for the rest.
func TestARequestStartsTheReleaseOfOthers(t *testing.T) {
	r := newRig(t)
	p := r.cache(1 << 20)
	require.NoError(t, p.Free(alloc(t, p, 4096, 0)))
	leave := make(chan struct{})
	p.roundEnds = func() { <-leave }
	var queued *pooled
	for sh := range p.shelves {
		if s := sh.take(&sh.free); s != nil {
			p.bound.clear(sh)
			queued = s
		}
	}
	require.NotNil(t, queued)
	p.releasingBlocks.Add(1)
	p.releasingBytes.Add(queued.shelf.bytes)
	p.queued.Add(1)
	p.queue.push(queued) // and nobody releases it
	assert.Nil(t, p.unqueue(&class{}))
	assert.NotNil(t, p.round.Load())
	close(leave)
	require.NoError(t, p.awaitReleases(t.Context()))
	assert.Zero(t, p.Stats().ReleasingBytes)
	r.end(p)
}

// A request that looks through the queue holds it, so it looks empty and the goroutine that releases it ends. A Trim waits for the slots in it
// all the same.
func TestATrimWaitsForAQueueThatARequestHolds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(4096)
	first, second, third := alloc(t, p, 4096, 0), alloc(t, p, 4096, 0), alloc(t, p, 4096, 0)
	g := r.hold("cuMemFreeHost")
	free(t, first)
	free(t, second)
	<-g.entered
	free(t, third)
	held := p.queue.takeAll()
	require.NotNil(t, held)
	close(g.open)

	ctx, cancel := context.WithCancelCause(t.Context())
	waited := make(chan error, 1)
	go func() { waited <- p.awaitReleases(ctx) }()
	reason := errors.New("enough")
	require.Eventually(t, func() bool { return p.round.Load() == nil }, time.Minute, time.Microsecond)
	cancel(reason)
	require.ErrorIs(t, <-waited, reason)

	go func() { waited <- p.awaitReleases(t.Context()) }()
	p.queue.push(held)
	require.NoError(t, <-waited)
	assert.Zero(t, p.Stats().ReleasingBytes)
	r.end(p)
}

// A panic of the source ends a sweep. The memory that it had not come to waits for the next one.
func TestAPanicOfASweepLosesNoMemory(t *testing.T) {
	t.Parallel()
	panics := 0
	source := &freeing{Allocator: must[*StreamMemory](t)(OfStream(vramStream(t)))}
	source.owner = NewOwner(source)
	p := must[*Pool](t)(Pooled(source, PoolConfig{KeepBytes: 1 << 20}))
	for _, b := range []Block{alloc(t, p, 4096, 0), alloc(t, p, 4096, 0), alloc(t, p, 4096, 0)} {
		free(t, b)
	}
	source.before = func() error { return cudadrv.Unknown }
	_, err := p.Trim(t.Context())
	require.ErrorIs(t, err, cudadrv.Unknown)
	require.EqualValues(t, 3*4096, p.Stats().ReleasingBytes)
	source.before = func() error {
		panics++
		panic("planned")
	}
	require.Panics(t, func() { _, _ = p.Trim(t.Context()) })
	assert.Equal(t, 1, panics)
	require.EqualValues(t, 3*4096, p.Stats().ReleasingBytes)
	source.before = nil
	_, err = p.Trim(t.Context())
	require.NoError(t, err)
	assert.Zero(t, p.Stats().ReleasingBytes, "all three")
	require.NoError(t, p.Close(t.Context()))
}

// freeing is an allocator that calls a function before each free.
type freeing struct {
	Allocator
	owner  *Owner
	before func() error
}

func (f *freeing) Owner() *Owner { return f.owner }

func (f *freeing) Alloc(bytes, align int64) (Block, error) {
	b, err := f.Allocator.Alloc(bytes, align)
	if err != nil {
		return Block{}, err
	}
	return b.Reown(f.Allocator, f)
}

func (f *freeing) Free(b Block) error {
	if f.before != nil {
		if err := f.before(); err != nil {
			return err
		}
	}
	b, err := b.Reown(f, f.Allocator)
	if err != nil {
		return err
	}
	return f.Allocator.Free(b)
}

// A block lives as long as its buffer, also where the free of that is refused.
func TestABlockLivesAsLongAsItsBuffer(t *testing.T) {
	t.Parallel()
	device := must[*vram.Device](t)(vram.Open(vram.Config{Driver: sim.New(sim.Config{Bytes: true, TotalBytes: 1 << 30})}))
	m := must[*StreamMemory](t)(OfStream(must[*vram.Stream](t)(device.NewStream())))
	kept, own := alloc(t, m, 4096, 0), alloc(t, m, 4096, 0)
	buffer, ok := own.Buffer()
	require.True(t, ok)
	require.NoError(t, buffer.Free(), "not as documented")
	require.ErrorIs(t, own.Free(), ErrDoubleFree)
	assert.False(t, own.Live())
	assert.EqualValues(t, 1, m.Stats().LiveBlocks)

	var leaked *vram.InUseError
	require.ErrorAs(t, device.Close(), &leaked)
	require.ErrorIs(t, kept.Free(), ErrClosed)
	assert.False(t, kept.Live(), "as its buffer")
	assert.Zero(t, m.Stats().LiveBlocks)
	require.ErrorIs(t, kept.Free(), ErrDoubleFree)
}

// Blocks whose device was closed go with their frees from the books of each wrapper, and a pool closes: nothing is left to be returned.
func TestADeviceThatClosesFirst(t *testing.T) {
	t.Parallel()
	for outside, wrap := range wrappers() {
		for inside, within := range wrappers() {
			t.Run(outside+"("+inside+")", func(t *testing.T) {
				device := must[*vram.Device](t)(vram.Open(vram.Config{Driver: sim.New(sim.Config{TotalBytes: 1 << 30})}))
				a := wrap(t, within(t, must[*StreamMemory](t)(OfStream(must[*vram.Stream](t)(device.NewStream())))))
				freed, live := alloc(t, a, 4096, 0), alloc(t, a, 4096, 0)
				free(t, freed)
				var leaked *vram.InUseError
				require.ErrorAs(t, device.Close(), &leaked)
				err := live.Free()
				if outside == "pooled" || inside == "pooled" {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, ErrClosed)
				}
				assert.False(t, live.Live())
				require.ErrorIs(t, live.Free(), ErrDoubleFree)
				for range 2 {
					require.NoError(t, a.Close(t.Context()))
				}
				for layer := a; layer != nil; layer = insideOf(layer) {
					s := layer.Stats()
					assert.Zero(t, s.LiveBlocks+s.LiveBytes+s.KeptBytes+s.PendingBytes+s.ReleasingBytes, "%T: %v", layer, s)
					assert.Zero(t, s.ReleaseFailures)
					if l, ok := layer.(*Limit); ok {
						assert.Zero(t, l.blocks.Load()+l.bytes.Load())
					}
				}
			})
		}
	}
}

// A closed pool serves no request, also not between two steps of a late Free, and the memory returns with that Free.
func TestARequestDuringALateFree(t *testing.T) {
	t.Parallel()
	for _, c := range sources() {
		for _, align := range []int64{0, 2 * pageBytes} {
			r := newRig(t)
			source := c.make(t)
			p := must[*Pool](t)(Pooled(source, PoolConfig{KeepBytes: 1 << 20, Device: r.device}))
			b := alloc(t, p, 4096, align)
			require.ErrorIs(t, p.Close(t.Context()), ErrLeak)
			var reached atomic.Int32 // page-locked memory is released on another goroutine
			p.bound.reach = func() {
				if reached.Add(1) > 1 {
					return
				}
				for _, request := range []func(bytes, align int64) (Block, error){p.Alloc, p.AllocZeroed} {
					_, err := request(4096, align)
					assert.ErrorIs(t, err, ErrClosed, "%s aligned to %d", c.name, align)
				}
			}
			free(t, b)
			require.NoError(t, p.awaitReleases(t.Context()))
			p.bound.reach = nil
			assert.Positive(t, reached.Load())
			assert.EqualValues(t, 2, p.Stats().Refusals)
			assert.Zero(t, source.Stats().LiveBlocks)
			require.NoError(t, p.Close(t.Context()))
			require.NoError(t, checkBooks(p))
			require.NoError(t, r.device.Close())
		}
	}
}
