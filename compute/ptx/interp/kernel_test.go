package interp_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx"
	"github.com/go-vram/vram/compute/ptx/interp"
)

const header = ".version 8.0\n.target sm_90\n.address_size 64\n"

// compile prepares the only entry of a text.
func compile(tb testing.TB, text string) *interp.Kernel {
	tb.Helper()
	m, err := ptx.Parse(text)
	require.NoError(tb, err)
	for _, f := range m.Functions {
		if f.Entry {
			k, err := interp.Compile(m, f.Name)
			require.NoError(tb, err)
			return k
		}
	}
	tb.Fatal("no entry")
	return nil
}

// params lays parameters out as a C struct.
func params(values ...any) (b []byte) {
	for _, v := range values {
		var word []byte
		switch v := v.(type) {
		case uint64:
			word = binary.LittleEndian.AppendUint64(nil, v)
		case uint32:
			word = binary.LittleEndian.AppendUint32(nil, v)
		case float32:
			word = binary.LittleEndian.AppendUint32(nil, math.Float32bits(v))
		default:
			panic(fmt.Sprintf("%T", v))
		}
		for len(b)%len(word) != 0 {
			b = append(b, 0)
		}
		b = append(b, word...)
	}
	return b
}

func floats(values ...float32) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func floatAt(b []byte, n int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(b[4*n:]))
}

func wordAt(b []byte, n int) uint32 { return binary.LittleEndian.Uint32(b[4*n:]) }

const ptxOfAdd = header + `
.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) {
	.reg .pred %p; .reg .f32 %f<4>; .reg .b32 %r<5>; .reg .b64 %d<8>;
	ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; ld.param.u64 %d3, [c]; ld.param.u32 %r1, [n];
	mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
	mad.lo.u32 %r2, %r2, %r3, %r4;
	setp.ge.u32 %p, %r2, %r1;
	@%p ret;
	mul.wide.u32 %d4, %r2, 4;
	add.u64 %d5, %d1, %d4; add.u64 %d6, %d2, %d4; add.u64 %d7, %d3, %d4;
	ld.global.f32 %f1, [%d5];
	ld.global.f32 %f2, [%d6];
	add.f32 %f3, %f1, %f2;
	st.global.f32 [%d7], %f3;
	ret;
}`

func TestVectorAdd(t *testing.T) {
	t.Parallel()
	const n = 1000
	a, b, c := make([]float32, n), make([]float32, n), make([]byte, 4*n)
	for i := range a {
		a[i], b[i] = float32(i), float32(i)*0.25
	}
	k := compile(t, ptxOfAdd)
	require.NoError(t, k.Run(interp.Launch{
		Grid: interp.Dim3{X: 4, Y: 1, Z: 1}, Block: interp.Dim3{X: 256, Y: 1, Z: 1},
		Params: params(uint64(0x10000), uint64(0x20000), uint64(0x30000), uint32(n)),
		Memory: interp.Bytes{0x10000: floats(a...), 0x20000: floats(b...), 0x30000: c},
	}))
	for i := range a {
		assert.InDelta(t, a[i]+b[i], floatAt(c, i), 0)
	}
	err := k.Run(interp.Launch{
		Grid: interp.Dim3{X: 4, Y: 1, Z: 1}, Block: interp.Dim3{X: 256, Y: 1, Z: 1},
		Params: params(uint64(0x10000), uint64(0x20000), uint64(0x30000), uint32(n+1)),
		Memory: interp.Bytes{0x10000: floats(a...), 0x20000: floats(b...), 0x30000: c},
	})
	require.ErrorIs(t, err, interp.OutOfBounds)
	t.Log(err)
}

// BenchmarkVectorAdd is a million elements. The metric is lanes times instructions a second.
func BenchmarkVectorAdd(b *testing.B) {
	const n = 1 << 20
	k := compile(b, ptxOfAdd)
	x, y, z := make([]byte, 4*n), make([]byte, 4*n), make([]byte, 4*n)
	for _, ignore := range [][]interp.Kind{nil, {interp.GlobalRace}} {
		b.Run(fmt.Sprintf("ignore=%v", ignore), func(b *testing.B) {
			for b.Loop() {
				err := k.Run(interp.Launch{
					Grid: interp.Dim3{X: n / 256, Y: 1, Z: 1}, Block: interp.Dim3{X: 256, Y: 1, Z: 1},
					Params: params(uint64(1<<24), uint64(2<<24), uint64(3<<24), uint32(n)),
					Memory: interp.Bytes{1 << 24: x, 2 << 24: y, 3 << 24: z}, Ignore: ignore,
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(19*n*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mlane-instr/s")
		})
	}
}

// A launch shows nothing of an earlier one of the same kernel, whose memory its blocks have: no special registers, no registers and shared
// memory that only the earlier one wrote, and no accesses.
func TestLaunchesAfterEachOther(t *testing.T) {
	t.Parallel()
	k := compile(t, header+`.visible .entry k(.param .u64 out, .param .u32 writes, .param .u32 steps) {
		.reg .pred %p<3>; .reg .b32 %r<12>; .reg .b64 %d<4>; .shared .align 4 .b8 own[4096];
		ld.param.u64 %d1, [out]; ld.param.u32 %r1, [writes]; ld.param.u32 %r2, [steps];
		mov.u32 %r3, %tid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %nwarpid; mov.u32 %r6, %dynamic_smem_size; shl.b32 %r7, %r3, 2;
		mad.lo.u32 %r9, %r2, 33, %r3; rem.u32 %r9, %r9, %r4; shl.b32 %r9, %r9, 2; mov.u32 %r8, own; add.u32 %r8, %r8, %r9;
		and.b32 %r9, %r1, 1; setp.ne.u32 %p1, %r9, 0; @%p1 st.shared.u32 [%r8], %r4;
		and.b32 %r9, %r1, 2; setp.ne.u32 %p1, %r9, 0; @%p1 mov.u32 %r10, %r5;
	next: setp.eq.u32 %p2, %r2, 0; @%p2 bra last; bar.sync 0; sub.u32 %r2, %r2, 1; bra next;
	last: ld.shared.u32 %r11, [%r8]; mad.lo.u32 %r11, %r6, 1000, %r11; mad.lo.u32 %r11, %r10, 100000, %r11;
		cvt.u64.u32 %d2, %r7; add.u64 %d1, %d1, %d2; st.global.u32 [%d1], %r11; ret; }`)
	run := func(threads, shared, writes, steps uint32) ([]byte, error) {
		out := make([]byte, 4*threads)
		err := k.Run(interp.Launch{
			Grid: interp.Dim3{X: 1, Y: 1, Z: 1}, Block: interp.Dim3{X: threads, Y: 1, Z: 1}, SharedBytes: int(shared),
			Params: params(uint64(0x10000), writes, steps), Memory: interp.Bytes{0x10000: out},
		})
		return out, err
	}
	for _, threads := range []uint32{64, 1024, 32, 96, 96, 512} {
		for _, steps := range []uint32{40, 0, 3} {
			out, err := run(threads, threads/8, 3, steps)
			require.NoError(t, err)
			for n := range int(threads) {
				require.Equal(t, threads/32*100000+threads/8*1000+threads, wordAt(out, n), "thread %d of %d", n, threads)
			}
			_, err = run(threads, threads, 1, steps)
			require.ErrorIs(t, err, interp.Uninitialised)
			require.ErrorContains(t, err, "%r10 was not written")
			_, err = run(threads, threads, 2, steps)
			require.ErrorIs(t, err, interp.Uninitialised)
			require.ErrorContains(t, err, "the memory was not written")
		}
	}
}
