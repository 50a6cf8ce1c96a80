package interp_test

import (
	"encoding/binary"
	"errors"
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

// rows returns a kernel in which a warp accesses a row of words, and then one word in each thread at another place, by the same instruction.
func rows(t *testing.T, write bool) *interp.Kernel {
	t.Helper()
	access := "ld.global.u32 %r4, [%d3];"
	if write {
		access = "st.global.u32 [%d3], %r1;"
	}
	return compile(t, header+`.visible .entry k(.param .u64 x, .param .u64 first, .param .u64 second, .param .u32 stride) {
		.reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<8>;
		ld.param.u64 %d1, [x]; ld.param.u64 %d2, [first]; ld.param.u64 %d4, [second]; ld.param.u32 %r3, [stride]; mov.u32 %r1, %tid.x; mov.u32 %r2, 0;
		mul.wide.u32 %d3, %r1, 4; add.u64 %d3, %d3, %d2; add.u64 %d3, %d3, %d1; mul.wide.s32 %d5, %r1, %r3; add.u64 %d5, %d5, %d4; add.u64 %d5, %d5, %d1;
		again: `+access+`
		mov.u64 %d3, %d5; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 2;
		@%p1 bra again;
		ret; }`)
}

// A row of a warp is as right as the access of each of its threads: wherever it begins, at each distance of the threads, around ends of pages, of
// the memory and of its declared parts.
func TestRowsAreAsRightAsTheirThreads(t *testing.T) {
	t.Parallel()
	const start, size, page = 0x10000, 4096 + 1024, 4096
	for _, write := range []bool{false, true} {
		k := rows(t, write)
		for _, declared := range [][]interp.Declared{nil, {{Start: start + 256, Bytes: page + 512, Write: write}}} {
			low, high := 0, size
			if declared != nil {
				low, high = 256, 256+page+512
			}
			for _, second := range []int{0, 4, 252, 256, 260, page - 132, page - 128, page - 124, page + 1, page + 2, page + 3, page + 636, page + 640, page + 644, size - 132, size - 128, size - 124} {
				for _, stride := range []int{4, 0, 1, 2, 3, 5, 8, -4, 12, 68, 128} {
					in, first := make([]byte, size), 1024
					if second >= page {
						first = page + 256 // the accesses of a page begin there
					}
					for n := range in {
						in[n] = byte(n*5 + 1)
					}
					err := k.Run(launch(1, 32, owned{interp.Region{Start: start, Bytes: in, Declared: declared}}, uint64(start), uint64(first), uint64(second), uint32(int32(stride)))) //nolint:gosec // in two's complement
					misaligned, outside, undeclared, race := false, false, false, write && stride == 0
					for n := range 32 {
						at := second + n*stride
						misaligned = misaligned || at%4 != 0
						outside = outside || at < 0 || at+4 > size
						undeclared = undeclared || at < low || at+4 > high
						race = race || write && at >= first && at < first+128 && at != first+4*n
					}
					name := fmt.Sprintf("write %v at %d, each %d bytes: %v", write, second, stride, err)
					switch {
					case misaligned || outside || undeclared:
						require.Error(t, err, name)
						require.True(t, errors.Is(err, interp.Misaligned) && misaligned || outside || errors.Is(err, interp.Undeclared) && undeclared || errors.Is(err, interp.GlobalRace) && race, name)
					case race:
						require.ErrorIs(t, err, interp.GlobalRace, name)
					default:
						require.NoError(t, err, name)
						for n := range 32 {
							if write {
								require.Equal(t, uint32(n), binary.LittleEndian.Uint32(in[second+n*stride:]), name) //nolint:gosec // small
							}
						}
					}
				}
			}
		}
	}
}

// A row has a fault where one or some of its bytes were not written, and only there, and a stored row is written.
func TestRowsOfUnwrittenBytes(t *testing.T) {
	t.Parallel()
	const start, size = 0x10000, 1024
	load, store := rows(t, false), rows(t, true)
	for first := 256; first < 256+72; first += 8 {
		for hole := first - 9; hole < first+128+9; hole++ {
			for _, end := range []int{hole + 1, (hole/64 + 1) * 64} { // one byte, and the rest of a word of bits
				written := make([]uint64, size/64)
				for n := range written {
					written[n] = ^uint64(0)
				}
				written[hole/64] &^= ^uint64(0) >> (64 - (end - hole)) << (hole % 64)
				region := interp.Region{Start: start, Bytes: make([]byte, size), Initialised: written}
				err := load.Run(launch(1, 32, owned{region}, uint64(start), uint64(0), uint64(first), uint32(4))) //nolint:gosec // not negative
				if end <= first || hole >= first+128 {
					require.NoError(t, err, "row at %d, bytes %d to %d", first, hole, end)
				} else {
					require.ErrorIs(t, err, interp.Uninitialised, "row at %d, bytes %d to %d", first, hole, end)
				}
			}
		}
		written, want := make([]uint64, size/64), make([]uint64, size/64)
		for _, row := range []int{0, first} {
			for n := row; n < row+128; n++ {
				want[n/64] |= 1 << (n % 64)
			}
		}
		require.NoError(t, store.Run(launch(1, 32, owned{interp.Region{Start: start, Bytes: make([]byte, size), Initialised: written}}, uint64(start), uint64(0), uint64(first), uint32(4)))) //nolint:gosec // not negative
		require.Equal(t, want, written, "row at %d", first)
	}
}

// Rows of two blocks race where they overlap, whichever comes first, on any number of goroutines.
func TestRowsOfTwoBlocksRaceWhereTheyOverlap(t *testing.T) {
	t.Parallel()
	for _, order := range []string{"eq", "ne"} { // the block that stores
		for _, rowsOf := range []string{"ld.global.u32 %r4, [%d3];", "st.global.u32 [%d3], %r5;"} {
			k := compile(t, header+fmt.Sprintf(`.visible .entry k(.param .u64 x, .param .u64 other) {
				.reg .pred %%p<3>; .reg .b32 %%r<8>; .reg .b64 %%d<8>;
				ld.param.u64 %%d1, [x]; ld.param.u64 %%d2, [other]; mov.u32 %%r1, %%tid.x; mov.u32 %%r2, 0; mov.u32 %%r3, %%ctaid.x; setp.%s.u32 %%p2, %%r3, 0;
				mul.wide.u32 %%d3, %%r1, 4; add.u64 %%d3, %%d3, %%d1; add.u64 %%d4, %%d3, %%d2; mad.lo.u32 %%r5, %%r3, 100, %%r1;
				@%%p2 bra store;
				again: %s
				add.u64 %%d3, %%d3, 512; add.u32 %%r2, %%r2, 1; setp.lt.u32 %%p1, %%r2, 3;
				@%%p1 bra again;
				ret;
				store: st.global.u32 [%%d4], %%r5; ret; }`, order, rowsOf))
			for other := 0; other < 1536-128; other += 28 {
				want := false
				for row := 0; row < 3*512; row += 512 {
					want = want || other < row+128 && row < other+128
				}
				memory := interp.Bytes{0x10000: make([]byte, 2048)}
				_, err := onGoroutines(k, launch(2, 32, nil, uint64(0x10000), uint64(other)), memory, 1) //nolint:gosec // not negative
				if want {
					require.ErrorIs(t, err, interp.GlobalRace, "%s %s %d", order, rowsOf, other)
				} else {
					require.NoError(t, err, "%s %s %d", order, rowsOf, other)
				}
				_, again := onGoroutines(k, launch(2, 32, nil, uint64(0x10000), uint64(other)), memory, 2) //nolint:gosec // not negative
				require.Equal(t, fmt.Sprint(err), fmt.Sprint(again), "%s %s %d", order, rowsOf, other)
			}
		}
	}
}
