package interp_test

import (
	"encoding/binary"
	"math"
	mathbits "math/bits"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx"
	"github.com/go-vram/vram/compute/ptx/interp"
)

// fromClang compiles a kernel of compute/ptx/testdata, which clang wrote.
func fromClang(t *testing.T, file, entry string) *interp.Kernel {
	t.Helper()
	text, err := os.ReadFile("../testdata/" + file)
	require.NoError(t, err)
	m, err := ptx.Parse(string(text))
	require.NoError(t, err)
	k, err := interp.Compile(m, entry)
	require.NoError(t, err)
	return k
}

func launch(blocks, threads uint32, memory interp.Memory, values ...any) interp.Launch {
	return interp.Launch{
		Grid: interp.Dim3{X: blocks, Y: 1, Z: 1}, Block: interp.Dim3{X: threads, Y: 1, Z: 1}, Params: params(values...), Memory: memory,
	}
}

func words(values ...uint32) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// The kernels of clang compute the results of their CUDA C++.
func TestKernelsOfClang(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(5, 6))
	const n = 200
	ints := make([]uint32, n)
	singles := make([]float32, n)
	for i := range ints {
		ints[i], singles[i] = rnd.Uint32(), rnd.Float32()
	}
	t.Run("sum", func(t *testing.T) {
		t.Parallel()
		out := make([]byte, 4)
		require.NoError(t, fromClang(t, "shared.ptx", "sum").Run(launch(1, 128, interp.Bytes{4096: floats(singles...), 65536: out},
			uint64(4096), uint64(65536), uint32(n))))
		var sum float64
		for _, v := range singles {
			sum += float64(v)
		}
		assert.InDelta(t, sum, floatAt(out, 0), 1e-3)
	})
	t.Run("reverse", func(t *testing.T) {
		t.Parallel()
		data := words(ints...)
		require.NoError(t, fromClang(t, "shared.ptx", "reverse").Run(launch(1, 256, interp.Bytes{4096: data}, uint64(4096), uint32(n))))
		for i := range ints {
			assert.Equal(t, ints[n-1-i], wordAt(data, i))
		}
	})
	t.Run("scan", func(t *testing.T) {
		t.Parallel()
		data := floats(singles...)
		l := launch(1, 256, interp.Bytes{4096: data}, uint64(4096), uint32(n))
		l.SharedBytes = 1024
		require.NoError(t, fromClang(t, "shared.ptx", "scan").Run(l))
		var sum float64
		for i := range singles {
			sum += float64(singles[i])
			assert.InDelta(t, sum, floatAt(data, i), 1e-3)
		}
	})
	t.Run("count", func(t *testing.T) {
		t.Parallel()
		out := make([]byte, 8)
		require.NoError(t, fromClang(t, "shared.ptx", "count").Run(launch(1, 224, interp.Bytes{4096: words(ints...), 65536: out},
			uint64(4096), uint64(65536), uint32(n))))
		positive := uint32(0)
		for _, v := range ints {
			positive += uint32(btoi(int32(v) > 0))
		}
		assert.Equal(t, positive, wordAt(out, 0))
	})
	t.Run("polynomial", func(t *testing.T) {
		t.Parallel()
		in, out := make([]byte, 8*n), make([]byte, 8*n)
		for i := range n {
			binary.LittleEndian.PutUint64(in[8*i:], math.Float64bits(float64(singles[i])))
		}
		require.NoError(t, fromClang(t, "elementwise.ptx", "polynomial").Run(launch(2, 64, interp.Bytes{4096: in, 65536: out},
			uint64(4096), uint64(65536), uint64(n))))
		for i := range n {
			v, sum := float64(singles[i]), 0.0
			for _, c := range []float64{1, -0.5, 0.25, 3.5} {
				sum = math.FMA(sum, v, c)
			}
			got := math.Float64frombits(binary.LittleEndian.Uint64(out[8*i:]))
			assert.InEpsilon(t, sum/math.FMA(v, v, 1), got, 1e-15)
		}
	})
	t.Run("hash", func(t *testing.T) {
		t.Parallel()
		out := make([]byte, 8*n)
		require.NoError(t, fromClang(t, "elementwise.ptx", "hash").Run(launch(4, 64, interp.Bytes{4096: words(ints...), 65536: out},
			uint64(4096), uint64(65536), uint32(n))))
		for i, x := range ints {
			x ^= x >> 16
			x *= 0x7feb352d
			x ^= x >> 15
			x = x<<7 | x>>25
			table := [2][3]int64{{1, 2, 3}, {-4, 5, 6}}[x&1][x%3]
			wide := uint64(x)*0x9E3779B97F4A7C15 + uint64(mathbits.OnesCount32(x)) + uint64(mathbits.LeadingZeros32(x|1)) + uint64(table)
			assert.Equal(t, wide, binary.LittleEndian.Uint64(out[8*i:]))
		}
	})
	t.Run("call", func(t *testing.T) {
		t.Parallel()
		out, pairs := make([]byte, 64), make([]byte, 128)
		for i := range 16 {
			binary.LittleEndian.PutUint64(pairs[8*i:], math.Float64bits(float64(i)))
		}
		k := fromClang(t, "calls.ptx", "call")
		require.NoError(t, k.Run(launch(1, 16, interp.Bytes{4096: out, 65536: pairs}, uint64(4096), uint64(65536), uint32(3))))
		for i := range 16 {
			stack := [16]int32{}
			for j := range 16 {
				stack[j*3&15] = int32(j + i)
			}
			factorial := int32(1)
			for k := int32(2); k <= stack[i]; k++ {
				factorial *= k
			}
			assert.Equal(t, uint32(factorial), wordAt(out, i), i)
			assert.InDelta(t, float64(i)*2+1+float64(i), math.Float64frombits(binary.LittleEndian.Uint64(pairs[8*i:])), 0)
		}
	})
}

// A histogram with atomics in shared and in global memory.
func TestHistogram(t *testing.T) {
	t.Parallel()
	k := compile(t, header+`
.visible .entry histogram(.param .u64 in, .param .u64 out, .param .u32 n) {
	.reg .pred %p<3>; .reg .b32 %r<10>; .reg .b64 %d<8>;
	.shared .align 4 .b8 bins[64];
	ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; ld.param.u32 %r1, [n];
	mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mad.lo.u32 %r5, %r3, %r4, %r2;
	mov.u32 %r6, bins; shl.b32 %r7, %r2, 2;
	setp.lt.u32 %p1, %r2, 16;
	add.u32 %r8, %r6, %r7;
	@%p1 st.shared.u32 [%r8], 0;
	bar.sync 0;
	setp.ge.u32 %p2, %r5, %r1;
	@%p2 bra counted;
	mul.wide.u32 %d3, %r5, 4; add.u64 %d3, %d1, %d3; ld.global.u32 %r9, [%d3];
	and.b32 %r9, %r9, 15; shl.b32 %r9, %r9, 2; add.u32 %r9, %r6, %r9;
	red.shared.add.u32 [%r9], 1;
counted:
	bar.sync 0;
	@!%p1 ret;
	ld.shared.u32 %r9, [%r8]; cvt.u64.u32 %d3, %r7; add.u64 %d3, %d2, %d3;
	red.global.add.u32 [%d3], %r9;
	ret;
}`)
	rnd := rand.New(rand.NewPCG(7, 8))
	const n = 1000
	in, out := make([]uint32, n), make([]byte, 64)
	var want [16]uint32
	for i := range in {
		in[i] = rnd.Uint32()
		want[in[i]&15]++
	}
	require.NoError(t, k.Run(launch(8, 128, interp.Bytes{4096: words(in...), 65536: out}, uint64(4096), uint64(65536), uint32(n))))
	for i := range want {
		assert.Equal(t, want[i], wordAt(out, i))
	}
}

// A matrix product in tiles of shared memory, and the same with a barrier taken out.
func TestTiledMatmul(t *testing.T) {
	t.Parallel()
	text := func(barrier string) string {
		return header + `
.visible .entry matmul(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) {
	.reg .pred %p<3>; .reg .b32 %r<24>; .reg .b64 %d<12>; .reg .f32 %f<5>;
	.shared .align 4 .b8 ta[1024]; .shared .align 4 .b8 tb[1024];
	ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; ld.param.u64 %d3, [c]; ld.param.u32 %r1, [n];
	mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.y; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y;
	mad.lo.u32 %r6, %r5, 16, %r3; mad.lo.u32 %r7, %r4, 16, %r2; // row, column
	mad.lo.u32 %r8, %r3, 16, %r2; shl.b32 %r8, %r8, 2; mov.u32 %r9, ta; mov.u32 %r10, tb;
	add.u32 %r11, %r9, %r8; add.u32 %r12, %r10, %r8;
	shl.b32 %r13, %r3, 6; add.u32 %r13, %r9, %r13; shl.b32 %r14, %r2, 2; add.u32 %r14, %r10, %r14;
	mov.f32 %f1, 0f00000000; mov.u32 %r15, 0;
tile:
	add.u32 %r16, %r15, %r2; mad.lo.u32 %r16, %r6, %r1, %r16; mul.wide.u32 %d4, %r16, 4; add.u64 %d4, %d1, %d4;
	ld.global.f32 %f2, [%d4]; st.shared.f32 [%r11], %f2;
	add.u32 %r16, %r15, %r3; mad.lo.u32 %r16, %r16, %r1, %r7; mul.wide.u32 %d4, %r16, 4; add.u64 %d4, %d2, %d4;
	ld.global.f32 %f2, [%d4]; st.shared.f32 [%r12], %f2;
	bar.sync 0;
	mov.u32 %r17, 0; mov.u32 %r18, %r13; mov.u32 %r19, %r14;
inner:
	ld.shared.f32 %f2, [%r18]; ld.shared.f32 %f3, [%r19]; fma.rn.f32 %f1, %f2, %f3, %f1;
	add.u32 %r18, %r18, 4; add.u32 %r19, %r19, 64; add.u32 %r17, %r17, 1; setp.lt.u32 %p1, %r17, 16;
	@%p1 bra inner;
	` + barrier + `
	add.u32 %r15, %r15, 16; setp.lt.u32 %p2, %r15, %r1;
	@%p2 bra tile;
	mad.lo.u32 %r16, %r6, %r1, %r7; mul.wide.u32 %d4, %r16, 4; add.u64 %d4, %d3, %d4; st.global.f32 [%d4], %f1;
	ret;
}`
	}
	const n = 48
	rnd := rand.New(rand.NewPCG(9, 10))
	a, b, c := make([]float32, n*n), make([]float32, n*n), make([]byte, 4*n*n)
	for i := range a {
		a[i], b[i] = rnd.Float32(), rnd.Float32()
	}
	l := launch(3, 16, interp.Bytes{0x10000: floats(a...), 0x20000: floats(b...), 0x30000: c}, uint64(0x10000), uint64(0x20000), uint64(0x30000), uint32(n))
	l.Grid.Y, l.Block.Y = 3, 16
	require.NoError(t, compile(t, text("bar.sync 0;")).Run(l))
	for row := range n {
		for column := range n {
			var sum float64
			for k := range n {
				sum += float64(a[row*n+k]) * float64(b[k*n+column])
			}
			assert.InDelta(t, sum, floatAt(c, row*n+column), 1e-4)
		}
	}
	require.ErrorIs(t, compile(t, text("")).Run(l), interp.SharedRace)
}

// A product of clang's by two warpgroups, with asynchronous copies of two stages, and the same without one of its
// fences and waits.
func TestProductOfTwoWarpgroups(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../testdata/warpgroup.ptx")
	require.NoError(t, err)
	const rows, columns, depth = 128, 64, 96
	rnd := rand.New(rand.NewPCG(13, 14))
	a, b, c := make([]float32, rows*depth), make([]float32, columns*depth), make([]byte, 4*rows*columns)
	for _, numbers := range [][]float32{a, b} {
		for i := range numbers {
			numbers[i] = float32(rnd.IntN(2048)-1024) / 256
		}
	}
	run := func(without string) error {
		m, err := ptx.Parse(strings.Replace(string(text), without, "", 1))
		require.NoError(t, err)
		k, err := interp.Compile(m, "warpgroup")
		require.NoError(t, err)
		l := launch(1, 256, interp.Bytes{0x10000: floats(a...), 0x40000: floats(b...), 0x80000: c}, uint64(0x10000), uint64(0x40000), uint64(0x80000), uint32(depth))
		l.SharedBytes = 2 * (rows + columns) * 128
		return k.Run(l)
	}
	require.NoError(t, run("nothing"))
	for row := range rows {
		for column := range columns {
			var sum float64
			for k := range depth {
				sum += float64(a[row*depth+k]) * float64(b[column*depth+k])
			}
			require.InDelta(t, sum, floatAt(c, row*columns+column), 1e-3)
		}
	}
	for without, kind := range map[string]interp.Kind{
		"fence.proxy.async.shared::cta;":   interp.ProxyFence,
		"wgmma.fence.sync.aligned;":        interp.WgmmaFence,
		"wgmma.commit_group.sync.aligned;": interp.SharedRace,
		"wgmma.wait_group.sync.aligned 0;": interp.SharedRace,
		"cp.async.wait_group 0;":           interp.AsyncInFlight,
		"bar.sync \t0;":                    interp.SharedRace,
	} {
		require.Contains(t, string(text), without)
		require.ErrorIs(t, run(without), kind, without)
	}
}
