package interp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx/interp"
)

// Loads and stores of each width, sign and vector copy bytes between global and shared memory, in rows, backward, apart,
// in parts of a warp and where threads share a word.
func TestTransfersOfAllShapes(t *testing.T) {
	t.Parallel()
	const size = 32 * 32
	in := make([]byte, size)
	for n := range in {
		in[n] = byte(n*7 + n>>8)
	}
	for _, typ := range []string{"u8", "s8", "b16", "s16", "u32", "s32", "f32", "b64", "s64", "f64"} {
		for _, vector := range []int{1, 2, 4} {
			bits := map[byte]int{'8': 8, '6': 16, '2': 32, '4': 64}[typ[len(typ)-1]]
			each := bits / 8
			if each*vector > 16 {
				continue
			}
			bytes := each * vector
			registers, suffix := "%v0", ""
			if vector > 1 {
				registers, suffix = map[int]string{2: "{%v0, %v1}", 4: "{%v0, %v1, %v2, %v3}"}[vector], fmt.Sprintf(".v%d", vector)
			}
			for name, index := range map[string]string{
				"row": "", "backward": "sub.u32 %r4, 31, %r4;", "apart": "mul.lo.u32 %r4, %r4, 5; and.b32 %r4, %r4, 31;",
				"a part": "setp.gt.u32 %p1, %r4, 20; @%p1 ret;", "one word": "and.b32 %r4, %r4, 16;",
			} {
				register := fmt.Sprintf("b%d", max(bits, 16))
				k := compile(t, prelude+fmt.Sprintf(`.reg .%[1]s %%v<4>, %%w<4>; mov.u32 %%r4, %%r1; %[2]s
					mul.lo.u32 %%r4, %%r4, %[3]d; cvt.u64.u32 %%d3, %%r4; add.u64 %%d3, %%d1, %%d3; mov.u32 %%r3, tile; add.u32 %%r3, %%r3, %%r4;
					ld.global%[4]s.%[5]s %[6]s, [%%d3]; st.shared%[4]s.%[7]s [%%r3], %[6]s; bar.sync 0;
					ld.shared%[4]s.%[5]s %[9]s, [%%r3]; st.global%[4]s.%[7]s [%%d3+%[8]d], %[9]s; ret; }`,
					register, index, bytes, suffix, typ, registers, unsigned(typ), size, strings.ReplaceAll(registers, "v", "w")))
				for _, goroutines := range []int{1, 2} { // two blocks store the same bytes
					memory := interp.Bytes{0x10000: append(append([]byte{}, in...), make([]byte, size)...)}
					l := launch(2, 32, memory, uint64(0x10000))
					l.Goroutines = goroutines
					require.NoError(t, k.Run(l), "%s %s %s", name, suffix, typ)
					got := memory[0x10000]
					for n := range 32 {
						place := map[string]int{"backward": 31 - n, "apart": n * 5 & 31, "one word": n & 16}
						at, ok := place[name]
						if !ok {
							at = n
						}
						if name == "a part" && n > 20 {
							continue
						}
						assert.Equal(t, in[at*bytes:][:bytes], got[size+at*bytes:][:bytes], "%s %s %s thread %d", name, suffix, typ, n)
					}
				}
			}
		}
	}
}

// unsigned is the type as stores name it.
func unsigned(typ string) string {
	if typ[0] == 's' {
		return "u" + typ[1:]
	}
	return typ
}
