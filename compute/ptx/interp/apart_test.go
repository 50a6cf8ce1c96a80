package interp_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx/interp"
)

// counted is memory that is not safe for concurrent use, as a launch may have it.
type counted struct {
	interp.Bytes
	calls *int
}

// Range counts its calls.
func (m counted) Range(address uint64, bytes int, write bool) (interp.Region, error) {
	*m.calls++
	return m.Bytes.Range(address, bytes, write)
}

// onGoroutines runs a launch on copies of memory, with so many goroutines. It returns the memory after it.
func onGoroutines(k *interp.Kernel, l interp.Launch, memory interp.Bytes, goroutines int) (interp.Bytes, error) {
	after, calls := interp.Bytes{}, 0
	for start, b := range memory {
		after[start] = bytes.Clone(b)
	}
	l.Memory, l.Goroutines = counted{after, &calls}, goroutines
	return after, k.Run(l)
}

// asOne holds that neither the results nor the fault of a launch depend on the number of goroutines.
func asOne(t *testing.T, k *interp.Kernel, l interp.Launch, memory interp.Bytes, message string) error {
	t.Helper()
	want, err := onGoroutines(k, l, memory, 1)
	for _, goroutines := range []int{2, 3, 16} {
		got, other := onGoroutines(k, l, memory, goroutines)
		require.Equal(t, fmt.Sprint(err), fmt.Sprint(other), "%d goroutines: %s", goroutines, message)
		for start := range want {
			require.True(t, bytes.Equal(want[start], got[start]), "%d goroutines: memory at %#x: %s", goroutines, start, message)
		}
	}
	return err
}

// The kernels of the benchmark have the same results on any number of goroutines, also the sum whose order rounds.
func TestGoroutinesOfShapes(t *testing.T) {
	t.Parallel()
	const n = 1 << 12
	rnd := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // a test
	x, y := make([]byte, 4*n), make([]byte, 4*n)
	for i := range n {
		copy(x[4*i:], floats(rnd.Float32()))
		copy(y[4*i:], floats(rnd.Float32()*1e4))
	}
	memory := interp.Bytes{1 << 24: x, 2 << 24: y, 3 << 24: make([]byte, 4*n)}
	a, b, c := uint64(1<<24), uint64(2<<24), uint64(3<<24)
	for name, launched := range map[string]struct {
		text   string
		launch interp.Launch
	}{
		"elements":  {ptxOfAdd, launch(n/64, 64, nil, a, b, c, uint32(n))},
		"stencil":   {ptxOfStencil, launch(n/64, 64, nil, a, c, uint32(n))},
		"reduction": {ptxOfReduction, launch(16, 128, nil, b, c, uint32(n))},
		"product":   {ptxOfProduct, interp.Launch{Grid: interp.Dim3{X: 4, Y: 4, Z: 1}, Block: interp.Dim3{X: 16, Y: 16, Z: 1}, Params: params(a, b, c, uint32(64))}},
	} {
		require.NoError(t, asOne(t, compile(t, launched.text), launched.launch, memory, name))
	}
}

// Blocks that touch each other's memory give the result, or the fault, of blocks that run one after the other.
func TestGoroutinesOfBlocksThatMeet(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"one word":       {"st.global.u32 [%d1], %r4;", interp.GlobalRace},
		"the same value": {"st.global.u32 [%d1], 7;", nil},
		"a neighbour":    {"mad.lo.u32 %r5, %r4, 4, %r2; cvt.u64.u32 %d3, %r5; add.u64 %d3, %d1, %d3; ld.global.u32 %r6, [%d1+16]; st.global.u32 [%d3], %r6;", interp.GlobalRace},
		"a sum":          {"red.global.add.u32 [%d1], %r4;", nil},
		"a generic sum":  {"cvta.global.u64 %d3, %d1; red.add.u32 [%d3], %r4;", nil},
		"a generic sum of a block": {`mov.u64 %d4, tile; st.shared.u32 [tile], 5; cvta.shared.u64 %d3, %d4; red.add.u32 [%d3], %r4; ld.shared.u32 %r5, [tile];
			mul.wide.u32 %d3, %r4, 4; add.u64 %d3, %d3, %d1; st.global.u32 [%d3], %r5;`, nil},
		"an unread sum":     {"atom.global.add.u32 %r5, [%d1], %r4;", nil},
		"a sum and a load":  {"red.global.add.u32 [%d1], %r4; ld.global.u32 %r5, [%d1];", nil},
		"an own sum":        {"mad.lo.u32 %r5, %r4, 4, %r2; cvt.u64.u32 %d3, %r5; add.u64 %d3, %d1, %d3; red.global.add.u32 [%d3], 1; st.global.u32 [%d3], %r4;", nil},
		"a sum and a store": {"setp.eq.u32 %p1, %r4, 3; @%p1 st.global.u32 [%d1], 5; @!%p1 red.global.add.u32 [%d1], 1;", interp.GlobalRace},
		"load and store":    {"setp.eq.u32 %p1, %r4, 0; @%p1 ld.global.u32 %r5, [%d1]; setp.eq.u32 %p1, %r4, 1; @%p1 st.global.u32 [%d1], 5;", interp.GlobalRace},
		"store and load":    {"setp.eq.u32 %p1, %r4, 1; @%p1 ld.global.u32 %r5, [%d1]; setp.eq.u32 %p1, %r4, 0; @%p1 st.global.u32 [%d1], 5;", interp.GlobalRace},
		"a ticket":          {"atom.global.add.u32 %r5, [%d1], 1; mul.lo.u32 %r5, %r5, 4; cvt.u64.u32 %d3, %r5; add.u64 %d3, %d1, %d3; st.global.u32 [%d3+256], %r4;", nil},
		"a flag":            {"ld.volatile.global.u32 %r5, [%d1]; add.u32 %r5, %r5, 1; st.volatile.global.u32 [%d1], %r5;", nil},
		"a swap":            {"atom.global.cas.b32 %r5, [%d1], %r4, 9;", nil},
		"a clock":           {"mov.u32 %r5, %clock; cvt.u64.u32 %d3, %r4; shl.b64 %d3, %d3, 2; add.u64 %d3, %d3, %d1; st.global.u32 [%d3], %r5;", nil},
		"out of bounds":     {"setp.eq.u32 %p1, %r4, 5; @%p1 st.global.u32 [%d1+4096], %r4;", interp.OutOfBounds},
		"two out of bounds": {"setp.gt.u32 %p1, %r4, 5; @%p1 st.global.u32 [%d1+4096], %r4;", interp.OutOfBounds},
		"a trap":            {"setp.eq.u32 %p1, %r4, 15; @%p1 trap;", interp.Trap},
		"an index":          {"cvt.u64.u32 %d3, %r4; add.u64 %d3, %d3, %d1; st.global.u8 [%d3+3], %r4;", nil},
	} {
		k := compile(t, prelude+"mov.u32 %r4, %ctaid.x;\n"+c.text+"\nret; }")
		err := asOne(t, k, launch(16, 1, nil, uint64(0x10000)), interp.Bytes{0x10000: make([]byte, 1024)}, name)
		if c.want == nil && name != "a sum and a load" {
			require.NoError(t, err, name)
		} else if c.want != nil {
			require.ErrorIs(t, err, c.want, name)
		}
		err = asOne(t, k, launch(16, 1, nil, uint64(0x10004)), interp.Bytes{0x10004: make([]byte, 1024)}, name+" at an address that no page begins at")
		require.Equal(t, c.want == nil && name != "a sum and a load", err == nil, name)
	}
}

// Sums of each block are in its order, on any number of goroutines that take several parts of the blocks: the result of each rounds.
func TestGoroutinesOfRoundedSums(t *testing.T) {
	t.Parallel()
	k := compile(t, prelude+`mov.u32 %r4, %ctaid.x; cvt.rn.f32.u32 %f1, %r4;
		red.global.add.f32 [%d1], 0f4CBEBC20; red.global.add.f32 [%d1], %f1; red.global.add.f32 [%d1], 0fCCBEBC20; red.global.add.f32 [%d1], 0f3E800000; ret; }`)
	for _, blocks := range []uint32{16, 100, 1000} {
		require.NoError(t, asOne(t, k, launch(blocks, 1, nil, uint64(0x10000)), interp.Bytes{0x10000: make([]byte, 64)}, fmt.Sprint(blocks)))
	}
}

// A launch that runs again, because its blocks meet, begins with the memory as it was: rows that each block increments, page after page, are
// incremented once.
func TestGoroutinesThatMeetBeginAgain(t *testing.T) {
	t.Parallel()
	const blocks, pages = 4, 3
	for width, each := range map[string]int{"8": 1, "32": 4, "64": 8} {
		k := compile(t, prelude+fmt.Sprintf(`mov.u32 %%r4, %%ctaid.x; mov.u32 %%r5, 0; mad.lo.u32 %%r6, %%r4, %[2]d, %%r1; mul.lo.u32 %%r6, %%r6, %[3]d;
			cvt.u64.u32 %%d3, %%r6; add.u64 %%d3, %%d3, %%d1;
			again: ld.global.u%[1]s %%d4, [%%d3+4096]; add.u64 %%d4, %%d4, 1; st.global.u%[1]s [%%d3+4096], %%d4;
			add.u64 %%d3, %%d3, 4096; add.u32 %%r5, %%r5, 1; setp.lt.u32 %%p1, %%r5, %[4]d;
			@%%p1 bra again;
			st.global.u32 [%%d1], 7; ret; }`, width, 64, each, pages))
		memory, want := make([]byte, 4096*(pages+2)), make([]byte, 4096*(pages+2))
		require.NoError(t, asOne(t, k, launch(blocks, 64, nil, uint64(0x10000)), interp.Bytes{0x10000: memory}, width))
		after, err := onGoroutines(k, launch(blocks, 64, nil, uint64(0x10000)), interp.Bytes{0x10000: memory}, 2)
		require.NoError(t, err)
		want[0] = 7
		for page := range pages {
			for n := range blocks * 64 {
				want[4096*(page+1)+each*n]++
			}
		}
		require.Equal(t, want, after[0x10000], "%s bits", width)
	}
}

// Random programs of blocks have the same fault and the same results on any number of goroutines.
func TestGoroutinesOfRandomBlocks(t *testing.T) {
	t.Parallel()
	faults := 0
	for seed := range uint64(shorter(400)) {
		p := randomBlocks(rand.New(rand.NewPCG(seed, 8))) //nolint:gosec // a test
		k := compile(t, prelude+p.text()+"\n}")
		l := launch(uint32(len(p.steps)), uint32(p.threads), nil, uint64(0x10000)) //nolint:gosec // few
		if err := asOne(t, k, l, interp.Bytes{0x10000: make([]byte, 1024)}, p.text()); err != nil {
			faults++
		}
	}
	require.Greater(t, faults, shorter(40))
}

// A launch that does not look for values that nobody wrote finds zeros, in each block and on any number of goroutines: no values of blocks that its
// goroutine executed before, nor of earlier launches. So it is with the flag of a carry chain that nothing began.
func TestGoroutinesFindNoValuesOfOtherBlocks(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{ // of the blocks 1, 4, 7 and so on %r7 is 5
		"a register":  "setp.eq.u32 %p1, %r5, 1; @%p1 mov.u32 %r7, 5; add.u32 %r7, %r7, 0;",
		"a predicate": "setp.eq.u32 %p1, %r5, 1; @%p1 setp.eq.u32 %p2, %r1, %r1; selp.u32 %r7, 5, 0, %p2;",
		"a shuffle": `setp.ne.u32 %p1, %r5, 1; mov.u32 %r7, 5;
			@!%p1 shfl.sync.idx.b32 %r6, %r7, 0, 31, 0xffffffff;
			setp.gt.and.u32 %p2, %r1, 15, %p1; @%p2 bra store;
			@%p1 shfl.sync.idx.b32 %r7, %r1, 20, 31, 0x0000ffff;
			store: @%p2 mov.u32 %r7, 0;`,
		"a flag": "mov.u32 %r6, 0; addc.u32 %r7, %r6, 0; setp.eq.u32 %p1, %r5, 1; @%p1 mov.u32 %r7, 5; mov.u32 %r6, -1; add.cc.u32 %r6, %r6, 1;",
	} {
		k := compile(t, prelude+"mov.u32 %r4, %ctaid.x; rem.u32 %r5, %r4, 3;\n"+text+" mul.wide.u32 %d3, %r4, 128; add.u64 %d3, %d3, %d2; st.global.u32 [%d3], %r7; ret; }")
		const blocks = 16
		var want []uint32
		for n := range uint32(blocks * 32) {
			want = append(want, map[bool]uint32{true: 5}[n/32%3 == 1])
		}
		l := launch(blocks, 32, nil, uint64(0x10000))
		if name != "a flag" {
			require.ErrorIs(t, asOne(t, k, l, interp.Bytes{0x10000: make([]byte, 128*blocks)}, name), interp.Uninitialised)
			l.Ignore = []interp.Kind{interp.Uninitialised}
		}
		for _, goroutines := range []int{1, 2, 3, 16} {
			got, err := onGoroutines(k, l, interp.Bytes{0x10000: make([]byte, 128*blocks)}, goroutines)
			require.NoError(t, err, name)
			assert.Equal(t, words(want...), got[0x10000], "%s on %d goroutines", name, goroutines)
		}
	}
}

// parted is memory that is found in parts: each begins and ends somewhere around the access.
type parted struct {
	bytes []byte
	part  func(offset, bytes, size int) (start, end int)
}

// Range finds the part around an access.
func (m parted) Range(address uint64, bytes int, _ bool) (interp.Region, error) {
	start, end := m.part(int(address-0x10000), bytes, len(m.bytes))                      //nolint:gosec // small
	return interp.Region{Start: 0x10000 + uint64(start), Bytes: m.bytes[start:end]}, nil //nolint:gosec // not negative
}

// Memory may be found in parts, which overlap: the results and the fault do not depend on the goroutine that has found one, and on the others that
// it has found.
func TestGoroutinesOfMemoryInParts(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]func(offset, bytes, size int) (start, end int){
		"up to the access":   func(offset, bytes, _ int) (int, int) { return 0, offset + bytes },
		"from the access on": func(offset, _, size int) (int, int) { return offset &^ 15, size },
		"the access":         func(offset, _, _ int) (int, int) { return offset &^ 15, offset&^15 + 16 },
		"all":                func(_, _, size int) (int, int) { return 0, size },
	} {
		for access, want := range map[string]error{
			"": nil, "ld.global.u32 %r5, [%d3+64];": interp.GlobalRace, "ld.global.u32 %r5, [%d3+1024];": nil, "ld.global.u32 %r5, [%d1];": interp.GlobalRace,
		} {
			if want != nil && (name == "up to the access" || name == "the access") {
				continue // parts that one goroutine has found overlap, and each has accesses of its own
			}
			k := compile(t, prelude+"mov.u32 %r4, %ctaid.x; mul.wide.u32 %d3, %r4, 64; add.u64 %d3, %d3, %d1; st.global.u32 [%d3], %r4;\n"+access+"\nret; }")
			for _, goroutines := range []int{1, 2, 3, 16} {
				m := parted{make([]byte, 2048+16), part}
				l := launch(16, 1, m, uint64(0x10000))
				l.Goroutines = goroutines
				require.ErrorIs(t, k.Run(l), want, "%s, %s on %d goroutines", name, access, goroutines)
				for n := 0; n < 16 && want == nil; n++ {
					require.Equal(t, uint32(n), wordAt(m.bytes, 16*n), "%s on %d goroutines", name, goroutines) //nolint:gosec // small
				}
			}
		}
	}
}

// Bytes that one block writes count as written, as declared and as not read before, on any number of goroutines.
func TestGoroutinesKeepTheContents(t *testing.T) {
	t.Parallel()
	k := compile(t, prelude+"mov.u32 %r4, %ctaid.x; shl.b32 %r5, %r4, 2; cvt.u64.u32 %d3, %r5; add.u64 %d3, %d1, %d3; st.global.u32 [%d3], %r4; ld.global.u32 %r6, [%d3]; ret; }")
	for _, goroutines := range []int{1, 4} {
		r := &followed{written: make([]uint64, 16), bytes: make([]byte, 1024)}
		l := launch(32, 1, r, uint64(0x10000))
		l.Goroutines = goroutines
		require.NoError(t, k.Run(l))
		assert.Equal(t, []uint64{^uint64(0), ^uint64(0), 0}, r.written[:3], "%d goroutines", goroutines)
	}
}

// followed is memory that a launch declares to write, and whose contents are followed.
type followed struct {
	written []uint64
	bytes   []byte
}

// Range is the whole memory.
func (f *followed) Range(uint64, int, bool) (interp.Region, error) {
	return interp.Region{
		Start: 0x10000, Bytes: f.bytes, Initialised: f.written, Declared: []interp.Declared{{Start: 0x10000, Bytes: 128, Write: true}},
	}, nil
}

// panics is memory whose search fails in the program's own code.
type panics struct{}

// Range panics.
func (panics) Range(uint64, int, bool) (interp.Region, error) { panic("memory") }

// A panic of the launch's memory is the caller's, and a launch that is stopped leaves memory as it was.
func TestGoroutinesThatDoNotEnd(t *testing.T) {
	t.Parallel()
	k := compile(t, prelude+"st.global.u32 [%d2], 7; ret; }")
	l := launch(16, 1, panics{}, uint64(0x10000))
	l.Goroutines = 2
	require.PanicsWithValue(t, "memory", func() { _ = k.Run(l) })
	b := make([]byte, 1024)
	l.Memory, l.Stop = interp.Bytes{0x10000: b}, func() bool { return true }
	require.ErrorIs(t, k.Run(l), interp.ErrStopped)
	assert.Equal(t, make([]byte, 1024), b)
}
