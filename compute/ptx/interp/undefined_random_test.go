package interp_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx/interp"
)

// moves are instructions on registers alone: R is a register of 32 bits, H of 16, D of 64, P a predicate, N a small number.
var moves = []string{
	"mov.u32 R, R", "add.u32 R, R, R", "sub.s32 R, R, R", "mad.lo.u32 R, R, R, R", "and.b32 R, R, R", "or.b32 R, R, R", "xor.b32 R, R, R", "not.b32 R, R",
	"and.b32 R, R, 0xff00", "or.b32 R, R, 0xffff0000", "shl.b32 R, R, N", "shr.u32 R, R, N", "shr.s32 R, R, N", "shr.u32 R, R, R", "shf.l.wrap.b32 R, R, R, N",
	"bfe.u32 R, R, N, N", "bfe.s32 R, R, N, N", "bfi.b32 R, R, R, N, N", "prmt.b32 R, R, R, 0x5410", "prmt.b32 R, R, R, 0x93a8", "lop3.b32 R, R, R, R, 0xca",
	"brev.b32 R, R", "popc.b32 R, R", "clz.b32 R, R", "min.u32 R, R, R", "selp.b32 R, R, R, P", "mov.b32 R, {H, H}", "mov.b32 {H, H}, R", "mov.b64 D, {R, R}",
	"mov.b64 {R, R}, D", "cvt.u32.u16 R, H", "cvt.s32.s16 R, H", "cvt.u16.u32 H, R", "cvt.s32.s8 R, R", "cvt.u8.u32 R, R", "cvt.u64.u32 D, R", "cvt.u32.u64 R, D",
	"shl.b64 D, D, N", "shr.u64 D, D, 31", "and.b64 D, D, D", "setp.lt.u32 P, R, R", "setp.eq.and.u32 P, R, R, P", "setp.ne.or.s32 P, R, R, !P", "and.pred P, P, P",
	"or.pred P, P, P", "xor.pred P, P, P", "not.pred P, P", "mov.pred P, P", "set.lt.u32.u32 R, R, R", "slct.b32.s32 R, R, R, R", "cvta.global.u64 D, D",
	"cvt.rn.f32.u32 %f1, R", "add.f32 %f2, %f1, %f1", "cvt.rzi.u32.f32 R, %f2", "shfl.sync.bfly.b32 R, R, N, 31, 0xffffffff", "shfl.sync.idx.b32 R, R, N, 31, 0xffffffff",
}

// randomMoves is the body of a kernel that computes with registers, of which some threads have not written some. Those
// hold a value that the caller substitutes for GARBAGE, or nothing where that line is left out.
func randomMoves(rnd *rand.Rand) string {
	var b strings.Builder
	b.WriteString("mov.u32 %r4, %r1; mov.u32 %r5, 77; mul.lo.u32 %r6, %r1, 0x9e3779b1; mov.b32 {%h1, %h2}, %r6; mov.b64 %d4, {%r6, %r5}; setp.gt.u32 %p1, %r1, 9;\n")
	b.WriteString("setp.lt.u32 %p2, %r1, 5; mov.f32 %f1, 0f3F800000; mov.f32 %f2, %f1;\nGARBAGE\n@%p1 mov.u32 %r8, 5;\n")
	pick := func(names ...string) string { return names[rnd.IntN(len(names))] }
	for range 4 + rnd.IntN(12) {
		move := moves[rnd.IntN(len(moves))]
		result := true // two results are two registers
		for _, kind := range "RHDPN" {
			for strings.ContainsRune(move, kind) {
				var name string
				switch kind {
				case 'R':
					name = pick("%r4", "%r5", "%r6", "%r7", "%r8")
				case 'H':
					name = pick("%h1", "%h2", "%h3")
				case 'D':
					name = pick("%d4", "%d5")
				case 'P':
					name = pick("%p1", "%p2", "%p3")
				default:
					name = fmt.Sprint(rnd.IntN(20))
				}
				move = strings.Replace(move, string(kind), name, 1)
			}
		}
		if open := strings.Index(move, "{"); open >= 0 && open < strings.Index(move, ",") {
			parts := strings.FieldsFunc(move[open+1:strings.Index(move, "}")], func(r rune) bool { return r == ',' || r == ' ' })
			result = parts[0] != parts[1]
		}
		if result {
			b.WriteString(move + ";\n")
		}
	}
	fmt.Fprintf(&b, "st.global.u32 [%%d2], %s;\nret;", pick("%r4", "%r5", "%r6", "%r7", "%r8"))
	return b.String()
}

// Where a program with registers that nobody wrote has no fault, its results do not depend on them: any garbage gives the same.
func TestDefinedResultsDoNotDependOnGarbage(t *testing.T) {
	t.Parallel()
	right, faults := 0, 0
	run := func(body string) (out []byte, err error) {
		out = make([]byte, 128)
		return out, compile(t, prelude+body+"\n}").Run(interp.Launch{
			Grid: interp.Dim3{X: 1, Y: 1, Z: 1}, Block: interp.Dim3{X: 32, Y: 1, Z: 1}, Params: params(uint64(0x10000)), Memory: interp.Bytes{0x10000: out},
		})
	}
	for seed := range uint64(shorter(700)) {
		rnd := rand.New(rand.NewPCG(seed, 16)) //nolint:gosec // a test
		body := randomMoves(rnd)
		want, err := run(strings.Replace(body, "GARBAGE", "", 1))
		if err != nil {
			require.True(t, errors.Is(err, interp.Uninitialised), "seed %d: %v\n%s", seed, err, body)
			faults++
			continue
		}
		right++
		for _, garbage := range []uint32{0, ^uint32(0), 0x55aa1234, rnd.Uint32()} {
			init := fmt.Sprintf("mov.u32 %%r7, %d; mov.u32 %%r8, %d; mov.b32 {%%h3, _}, %%r7; mov.b64 %%d5, {%%r8, %%r7}; setp.gt.u32 %%p3, %%r7, 99;", garbage, ^garbage)
			got, err := run(strings.Replace(body, "GARBAGE", init, 1))
			require.NoError(t, err)
			require.Equal(t, want, got, "seed %d: garbage %#x\n%s", seed, garbage, body)
		}
	}
	require.Greater(t, right, shorter(150))
	require.Greater(t, faults, shorter(100))
}
