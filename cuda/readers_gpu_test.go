//go:build gpu

package cuda_test

import (
	"context"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
)

// spinPTX reads a word and works for a number of nanoseconds.
const spinPTX = `.version 7.0
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 x, .param .u32 ns) {
	.reg .pred %p1;
	.reg .b32 %r<3>;
	.reg .b64 %rd<6>;
	ld.param.u64 %rd1, [x];
	ld.param.u32 %r1, [ns];
	cvta.to.global.u64 %rd2, %rd1;
	ld.volatile.global.u32 %r2, [%rd2];
	cvt.u64.u32 %rd3, %r1;
	mov.u64 %rd4, %globaltimer;
	add.u64 %rd3, %rd4, %rd3;
again:
	mov.u64 %rd5, %globaltimer;
	setp.lt.u64 %p1, %rd5, %rd3;
	@%p1 bra again;
	ret;
}
`

// BenchmarkHardwareReaders has sixteen streams read one buffer with kernels of a millisecond, and compares the host's time of a
// launch on it with the driver's call, in turns: "of-one" is the time of all kernels by the time of one stream's.
func BenchmarkHardwareReaders(b *testing.B) {
	const (
		count   = 16
		kernels = 8 // of a stream
		took    = time.Millisecond
	)
	for _, frozen := range []bool{false, true} {
		g, owner := openGPU(b)
		m, err := owner.LoadModule([]byte(spinPTX))
		require.NoError(b, err)
		spin, err := m.Function("spin")
		require.NoError(b, err)
		x := g.alloc(owner, 4096)
		require.NoError(b, owner.Fill8(cuda.Whole(x), 1))
		if frozen {
			require.NoError(b, owner.Freeze(x))
		}
		var readers []*cuda.Context
		for range count {
			readers = append(readers, g.context())
		}
		one := cuda.Cover(1, 1)
		span := func(some []*cuda.Context) time.Duration {
			begun := time.Now()
			for range kernels {
				for _, c := range some {
					require.NoError(b, c.Launch(spin, one, cuda.In(x), cuda.Value(uint32(took))))
				}
			}
			for _, c := range some {
				require.NoError(b, c.Synchronize(context.Background()))
			}
			return time.Since(begun)
		}
		span(readers)
		name := "frozen=" + strconv.FormatBool(frozen)
		b.Run(name+"/side by side", func(b *testing.B) {
			var ratios []float64
			for b.Loop() {
				single := span(readers[:1])
				ratios = append(ratios, float64(span(readers))/float64(single))
			}
			b.ReportMetric(median(ratios), "of-one")
		})
		c := readers[0]
		raw := rawLaunch(b)
		frame := new(struct {
			p     uint64
			ns    uint32
			extra [5]uintptr
			size  uintptr
		})
		frame.p, frame.size = uint64(x.Ptr()), 12
		frame.extra = [5]uintptr{1, uintptr(unsafe.Pointer(&frame.p)), 2, uintptr(unsafe.Pointer(&frame.size)), 0}
		args := make([]uintptr, 11)
		b.Run(name+"/launch", func(b *testing.B) {
			inTurns(b, c, func() {
				copy(args, []uintptr{cuda.FunctionHandle(spin), 1, 1, 1, 1, 1, 1, 0, uintptr(c.Stream().Handle()), 0, uintptr(unsafe.Pointer(&frame.extra))})
				purego.SyscallN(raw, args...)
			}, func() { _ = c.Launch(spin, one, cuda.In(x), cuda.Value(uint32(0))) })
		})
		require.NoError(b, x.Free())
	}
}
