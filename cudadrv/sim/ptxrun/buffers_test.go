package ptxrun

import (
	"encoding/binary"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// Freed buffers are remembered up to a bound, the youngest ones; a live one always is.
func TestFreedBuffersAreForgotten(t *testing.T) {
	t.Parallel()
	o := NewBuffers(false)
	at := func(n int) cudadrv.BufferEvent {
		return cudadrv.BufferEvent{Ptr: cudadrv.Ptr(512 * (n + 1)), Bytes: 512}
	} //nolint:gosec // not negative
	o.BufferAllocated(at(-1)) // it lives
	for n := range 2 * keptBuffers {
		o.BufferAllocated(at(n))
		o.BufferFreed(at(n))
	}
	assert.Len(t, o.all, 1+2*keptBuffers)
	last := o.event
	assert.NotNil(t, o.at(at(0).Ptr, 2), "it lived at the second event")
	o.BufferAllocated(at(0)) // the address of one that was freed
	o.BufferFreed(at(0))
	assert.Len(t, o.all, 1+keptBuffers)
	assert.Equal(t, keptBuffers, o.freed)
	assert.NotNil(t, o.at(at(-1).Ptr, o.event), "the live one")
	assert.Nil(t, o.at(at(0).Ptr, 2), "the oldest one is forgotten")
	for n := keptBuffers + 1; n < 2*keptBuffers; n++ {
		begin := uint64(2*n + 2) //nolint:gosec // not negative
		assert.NotNil(t, o.at(at(n).Ptr, begin), "%d", n)
		assert.Nil(t, o.at(at(n).Ptr, begin+1), "%d was freed by then", n)
	}
	assert.NotNil(t, o.at(at(0).Ptr, last+1), "the youngest one")
	for n := range 2 * keptBuffers { // the bound holds for any number
		o.BufferAllocated(at(n))
		o.BufferFreed(at(n))
		assert.LessOrEqual(t, len(o.all), 1+2*keptBuffers)
	}
}

// Mapped memory in which no buffer begins is past the allocator, and free to all launches; a buffer that begins with its end is not in it.
func TestMemoryPastTheAllocator(t *testing.T) {
	t.Parallel()
	o := NewBuffers(false)
	o.BufferAllocated(cudadrv.BufferEvent{Ptr: 3000, Bytes: 500})
	r := o.Launched(sim.KernelLaunch{})
	for _, c := range []struct {
		start cudadrv.Ptr
		bytes int64
		free  bool
	}{{1000, 1000, true}, {2000, 1000, true}, {3500, 100, true}, {2000, 1001, false}, {3000, 600, false}} {
		p := c.start
		if p == 3000 {
			p += 500
		}
		part, err := r.Part(p, c.start, c.bytes)
		if assert.Equal(t, c.free, err == nil, "%+v: %v", c, err); c.free {
			assert.Equal(t, Part{Start: c.start, Bytes: c.bytes}, part)
		}
	}
}

// A launch touches no argument after its free, except new arguments of a graph's kernel, whose memory the graph keeps.
func TestArgumentsAfterTheirFree(t *testing.T) {
	t.Parallel()
	for _, replaces := range []bool{false, true} {
		o := NewBuffers(false)
		gone, lives := cudadrv.BufferEvent{Ptr: 1000, Bytes: 100}, cudadrv.BufferEvent{Ptr: 2000, Bytes: 100}
		o.BufferAllocated(gone)
		o.BufferAllocated(lives)
		o.BufferFreed(gone)
		var params []byte
		for _, e := range []cudadrv.BufferEvent{gone, lives} {
			params = binary.LittleEndian.AppendUint64(params, uint64(e.Ptr))
		}
		r := o.Launched(sim.KernelLaunch{Params: params, Replaces: replaces}).(*reach)
		_, err := r.Part(gone.Ptr, 0, 4096)
		assert.Equal(t, replaces, err == nil, "%v", err)
		_, err = r.Part(lives.Ptr, 0, 4096)
		assert.NoError(t, err)
		var arguments []cudadrv.Ptr
		for b := range r.arguments {
			arguments = append(arguments, b.event.Ptr)
		}
		want := []cudadrv.Ptr{lives.Ptr}
		if replaces {
			want = append(want, gone.Ptr)
		}
		assert.ElementsMatch(t, want, arguments)
	}
}

// The allocator tells of buffers while the simulated driver, one call at a time, asks for the buffers of its work.
func TestBuffersAmongGoroutines(t *testing.T) {
	t.Parallel()
	o := NewBuffers(false)
	at := func(n int) cudadrv.BufferEvent {
		return cudadrv.BufferEvent{Ptr: cudadrv.Ptr(512 * (n + 1)), Bytes: 512} //nolint:gosec // not negative
	}
	kept := at(9)
	o.BufferAllocated(kept)
	var all sync.WaitGroup
	begin := make(chan struct{})
	for n := range 3 {
		all.Go(func() {
			<-begin
			for range 500 {
				o.BufferAllocated(at(n))
				o.BufferFreed(at(n))
			}
		})
	}
	all.Go(func() {
		<-begin
		for n := range 500 {
			r := o.Launched(sim.KernelLaunch{Params: binary.LittleEndian.AppendUint64(nil, uint64(kept.Ptr))})
			for _, p := range []cudadrv.Ptr{kept.Ptr, at(n % 3).Ptr} { // the other one lives, or does not
				o.Claimed(p, 64)
				if performed := o.Queued(sim.Transfer{Dst: p, Src: kept.Ptr, Bytes: 64, Rows: 1}); performed != nil {
					performed()
				}
				_, _ = r.Part(p, kept.Ptr, kept.Bytes)
				_, _ = r.Buffer(p)
			}
			b, ok := r.Buffer(kept.Ptr)
			assert.True(t, ok)
			assert.Equal(t, kept.Ptr, b.Ptr)
		}
	})
	close(begin)
	all.Wait()
	assert.NotNil(t, o.at(kept.Ptr, o.event))
	assert.Len(t, o.all, 1+3*500)
}
