package cuda_test

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A first use by another stream that meets a copy to or from host memory, in which the driver may wait, is submitted after it, and
// waits for it on the device. A first use of another buffer does not wait on the host.
func TestAFirstUseMeetsAHostCopy(t *testing.T) {
	host := make([]byte, mib)
	for name, submit := range map[string]func(c *cuda.Context, b cuda.Buffer) error{
		"CopyIn":       func(c *cuda.Context, b cuda.Buffer) error { return cuda.CopyIn(c, b, host) },
		"CopyOut":      func(c *cuda.Context, b cuda.Buffer) error { return cuda.CopyOut(c, host, b) },
		"CopyInAsync":  func(c *cuda.Context, b cuda.Buffer) error { return c.CopyInAsync(cuda.Whole(b), host) },
		"CopyOutAsync": func(c *cuda.Context, b cuda.Buffer) error { return c.CopyOutAsync(host, cuda.Whole(b)) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newReading(t, 2)
			other := r.alloc(r.owner, mib)
			over := make(chan struct{})
			var met, submitted, launched atomic.Bool
			r.faults.SetBefore(func(function string) {
				switch {
				case function == "cuLaunchKernel" && met.Load():
					launched.Store(true)
				case function != "cuMemcpyHtoDAsync" && function != "cuMemcpyDtoHAsync":
				case !submitted.Swap(true):
					r.touch(r.readers[1], cuda.InOut(other)) // not held up
					met.Store(true)
					go func() {
						defer close(over)
						r.touch(r.readers[0], cuda.InOut(r.table))
					}()
					for range 2000 { // it is held up until the copy was submitted
						runtime.Gosched()
					}
					assert.False(t, launched.Load())
				}
			})
			waits := r.faults.Calls("cuStreamWaitEvent")
			require.NoError(t, submit(r.owner, r.table))
			<-over
			assert.True(t, launched.Load())
			assert.EqualValues(t, 2, r.faults.Calls("cuStreamWaitEvent")-waits, "each use waits for the owner's stream")
			r.faults.SetBefore(nil)
			require.NoError(t, r.table.Free())
			require.NoError(t, other.Free())
		})
	}
}

// A call of the source's own stream on the source, at the same time as a copy to another device, is held up until the copy was submitted
// if another stream has used the source. Else it is not: the caller orders the two, and the source's memory is free for its stream at
// once after a free.
func TestACopyPeerMeetsTheOwner(t *testing.T) {
	for name, shared := range map[string]bool{"a source of one stream": false, "a shared source": true} {
		t.Run(name, func(t *testing.T) {
			s := newSeveral(t, sim.Config{Devices: 2}, vram.Config{})
			source, target := s.context(0), s.context(1)
			x, y := s.filled(source, mib, 7), s.filled(target, mib, 1)
			if shared {
				require.NoError(t, s.context(0).Fill8(cuda.Whole(x), 7))
			}
			over := make(chan struct{})
			var met, filled atomic.Bool
			s.faults.SetBefore(func(function string) {
				switch {
				case function == "cuMemsetD8Async" && met.Load():
					filled.Store(true)
				case function == "cuMemcpyPeerAsync":
					met.Store(true)
					if !shared {
						assert.NoError(t, source.Fill8(cuda.Whole(x), 9)) // y has the old bytes, the new ones, or both
						close(over)
						return
					}
					go func() {
						defer close(over)
						assert.NoError(t, source.Fill8(cuda.Whole(x), 9))
					}()
					for range 2000 {
						runtime.Gosched()
					}
					assert.False(t, filled.Load())
				}
			})
			require.NoError(t, target.CopyPeer(cuda.Whole(y), source, cuda.Whole(x)))
			<-over
			s.faults.SetBefore(nil)
			assert.True(t, filled.Load())
			s.holds(source, x, 9)
			if shared {
				s.holds(target, y, 7)
			}
			s.free(x, y)
		})
	}
}
