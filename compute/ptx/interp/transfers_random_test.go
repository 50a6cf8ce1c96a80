package interp_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx/interp"
)

// The memory of a transferProgram: its shared and global bytes end in the middle of the widest access, and the global ones are more than two pages.
const (
	transferShared = 4096 + 24
	transferGlobal = 2*4096 + 1024 + 8
	transferStart  = 0x100000
	transferOut    = 0x200000
)

// transferStep is a barrier, or an access by the threads from low to high: each to its own address.
type transferStep struct {
	barrier               string // "", "block" or "warp"
	space                 string // of the instruction: "shared", "global" or "generic"
	shared, write, signed bool
	each, vector          int
	base, stride, apart   int // the address of a thread is base + thread*stride + block*apart + warp*lane*bend
	bend                  int
	low, high             int
	value, step           uint64 // a thread stores value + (thread + block*threads)*step, and one more in each further register
}

// transferProgram is steps that all threads execute one after the other.
type transferProgram struct {
	blocks, threads int
	filled          int // each block begins with stores to so many words of its shared memory, and a barrier
	steps           []transferStep
	written         []uint64 // of the global memory; nil: all of it
	declared        []interp.Declared
}

// randomTransfers makes a program of which each thread mostly touches its own elements of a few arrays.
func randomTransfers(rnd *rand.Rand) transferProgram {
	p := transferProgram{blocks: 1 + rnd.IntN(3), threads: []int{32, 64, 64, 96, 40}[rnd.IntN(5)], filled: transferShared / 4}
	if rnd.IntN(6) == 0 {
		p.filled = rnd.IntN(p.filled)
	}
	least := 1 + 3*rnd.IntN(2) // of a word on, cells are words
	shape := func() transferStep {
		s := transferStep{shared: rnd.IntN(2) == 0, each: max(least, 1<<rnd.IntN(4)), vector: 1, high: p.threads}
		if rnd.IntN(2) == 0 {
			s.each = 4
		} else if rnd.IntN(3) == 0 {
			s.vector = min(1<<(1+rnd.IntN(2)), 16/s.each)
		}
		size := s.each * s.vector
		s.stride = []int{size, size, size, -size, 2 * size}[rnd.IntN(5)]
		room, page := transferShared, 2048
		if !s.shared {
			s.apart = []int{2048, p.threads * size}[rnd.IntN(2)]
			room, page = transferGlobal-(p.blocks-1)*s.apart, 4096
		}
		length := max(s.stride, -s.stride) * p.threads
		switch rnd.IntN(4) {
		case 0: // over the end of a page
			s.base = page - size*rnd.IntN(p.threads)
		case 1:
			s.base = page - 128
		case 2:
			s.base = size * rnd.IntN(40)
		default: // up to the end
			s.base = room
		}
		if s.base = max(min(s.base, room-length)/size*size, 0); s.stride < 0 {
			s.base += length - size
		}
		return s
	}
	arrays := []transferStep{shape(), shape()}
	for range 3 + rnd.IntN(8) {
		if rnd.IntN(3) == 0 {
			p.steps = append(p.steps, transferStep{barrier: []string{"block", "block", "warp"}[rnd.IntN(3)]})
			continue
		}
		s := arrays[rnd.IntN(2)]
		s.write, s.signed, s.value, s.step = rnd.IntN(2) == 0, rnd.IntN(3) == 0, rnd.Uint64(), rnd.Uint64()|1
		size := s.each * s.vector
		switch rnd.IntN(40) {
		case 0, 1:
			s.bend = 1 + rnd.IntN(8)
		case 2:
			s.stride, s.write = 0, rnd.IntN(4) == 0
		case 3:
			s.base += size
		case 4:
			s.base += size * rnd.IntN(p.threads) * (rnd.IntN(3) - 1)
		case 5:
			s.step = 0
		case 6:
			s.each = max(least, 1<<rnd.IntN(4))
			s.vector = min(s.vector, 16/s.each)
		case 7:
			s = shape()
		case 8:
			s.apart = 0
		}
		if s.space = "global"; s.shared {
			s.space = "shared"
		}
		if rnd.IntN(5) == 0 {
			s.space = "generic"
		}
		if rnd.IntN(4) == 0 {
			s.low = rnd.IntN(p.threads)
			s.high = s.low + 1 + rnd.IntN(p.threads-s.low)
		}
		p.steps = append(p.steps, s)
	}
	if rnd.IntN(3) == 0 {
		p.written = make([]uint64, (transferGlobal+63)/64)
		for n := range p.written {
			p.written[n] = ^uint64(0)
		}
		if rnd.IntN(4) > 0 {
			hole := min(arrays[0].base+arrays[0].stride*rnd.IntN(p.threads), transferGlobal-1)
			p.written[hole/64] &^= 1 << (hole % 64)
		} else {
			clear(p.written[:rnd.IntN(len(p.written))])
		}
	}
	if rnd.IntN(4) == 0 {
		first, second := uint64(rnd.IntN(transferGlobal/2)), uint64(rnd.IntN(transferGlobal/2)) //nolint:gosec // not negative
		p.declared = []interp.Declared{
			{Start: transferStart, Bytes: transferGlobal - first}, {Start: transferStart + second, Bytes: transferGlobal - second, Write: true},
		}
	}
	return p
}

// text is the kernel: each thread writes the values that it loads to memory of its own.
func (p transferProgram) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, `%s.extern .shared .align 16 .b8 tile[];
.visible .entry k(.param .u64 x, .param .u64 out) {
	.reg .pred %%p<3>; .reg .b32 %%t, %%c, %%i, %%a, %%w, %%lane, %%tile; .reg .b64 %%x, %%out, %%o, %%d, %%v<4>;
	ld.param.u64 %%x, [x]; ld.param.u64 %%out, [out]; mov.u32 %%t, %%tid.x; mov.u32 %%c, %%ctaid.x; mad.lo.u32 %%i, %%c, %d, %%t; mov.u32 %%tile, tile;
`, header, p.threads)
	if p.filled > 0 {
		fmt.Fprintf(&b, `mov.u32 %%a, %%t;
fill: setp.lt.u32 %%p1, %%a, %d;
@!%%p1 bra filled;
shl.b32 %%w, %%a, 2; add.u32 %%w, %%w, %%tile; st.shared.u32 [%%w], %%a; add.u32 %%a, %%a, %d; bra fill;
filled: bar.sync 0;
`, p.filled, p.threads)
	}
	for n, s := range p.steps {
		switch s.barrier {
		case "block":
			b.WriteString("bar.sync 0;\n")
			continue
		case "warp":
			b.WriteString("activemask.b32 %a; bar.warp.sync %a;\n")
			continue
		}
		guard := ""
		if s.low > 0 || s.high < p.threads {
			fmt.Fprintf(&b, "setp.ge.u32 %%p1, %%t, %d; setp.lt.and.u32 %%p1, %%t, %d, %%p1;\n", s.low, s.high)
			guard = "@%p1 "
		}
		fmt.Fprintf(&b, "mad.lo.s32 %%a, %%t, %d, %d; mad.lo.s32 %%a, %%c, %d, %%a;\n", s.stride, s.base, s.apart)
		if s.bend > 0 {
			fmt.Fprintf(&b, "shr.u32 %%w, %%t, 5; mul.lo.u32 %%w, %%w, %d; mov.u32 %%lane, %%laneid; mad.lo.s32 %%a, %%w, %%lane, %%a;\n", s.bend)
		}
		address, space := "%d", "."+s.space
		switch {
		case !s.shared:
			b.WriteString("cvt.s64.s32 %d, %a; add.s64 %d, %x, %d;\n")
		case s.space == "generic":
			b.WriteString("add.s32 %a, %a, %tile; cvt.u64.u32 %d, %a; cvta.shared.u64 %d, %d;\n")
		default:
			b.WriteString("add.s32 %a, %a, %tile;\n")
			address = "%a"
		}
		if s.space == "generic" {
			space = ""
		}
		registers, vector := "%v0", ""
		if s.vector > 1 {
			registers, vector = group(s.vector, 0, 0), fmt.Sprintf(".v%d", s.vector)
			registers = strings.ReplaceAll(registers, "%b0_", "%v")
		}
		if !s.write {
			sign := "u"
			if s.signed {
				sign = "s"
			}
			fmt.Fprintf(&b, "%sld%s%s.%s%d %s, [%s];\n", guard, space, vector, sign, 8*s.each, registers, address)
			fmt.Fprintf(&b, "mul.wide.u32 %%o, %%i, %d; add.u64 %%o, %%o, %%out;\n", 32*len(p.steps))
			for k := range s.vector {
				fmt.Fprintf(&b, "%sst.global.u64 [%%o+%d], %%v%d;\n", guard, 32*n+8*k, k)
			}
			continue
		}
		fmt.Fprintf(&b, "cvt.u64.u32 %%o, %%i; mad.lo.u64 %%v0, %%o, %d, %d;\n", int64(s.step), int64(s.value)) //nolint:gosec // the same bits
		for k := range s.vector - 1 {
			fmt.Fprintf(&b, "add.u64 %%v%d, %%v%d, 1;\n", k+1, k)
		}
		fmt.Fprintf(&b, "%sst%s%s.u%d [%s], %s;\n", guard, space, vector, 8*s.each, address, registers)
	}
	b.WriteString("ret; }\n")
	return b.String()
}

// byteAccess is an access of a thread to one byte.
type byteAccess struct {
	step, block, thread int
	write               bool
	value               byte
}

// transferModel executes a program thread after thread, and collects its mistakes.
type transferModel struct {
	transferProgram
	global, out []byte
	kinds       map[interp.Kind]bool
	unsure      bool // of a race: two threads have stored the same
	touched     [][]byteAccess
}

// ordered reports whether a comes before b, which comes later in the text or is of another thread.
func (m *transferModel) ordered(a, b byteAccess) bool {
	if a.block != b.block {
		return false
	}
	if a.thread == b.thread {
		return true
	}
	for _, s := range m.steps[a.step:b.step] {
		if s.barrier == "block" || s.barrier == "warp" && a.thread/32 == b.thread/32 {
			return true
		}
	}
	return false
}

// touch notes an access to a byte, and compares it with the earlier ones. It reports whether one of them is a store that comes before.
func (m *transferModel) touch(shared bool, at int, a byteAccess) (written bool) {
	key, kind := at, interp.GlobalRace
	if shared {
		key, kind = transferGlobal+transferShared*a.block+at, interp.SharedRace
		written = at < 4*m.filled
	}
	race, equal := false, false
	for _, o := range m.touched[key] {
		switch {
		case m.ordered(o, a):
			written = written || o.write
		case o.write && a.write && o.value == a.value:
			equal = true
		case o.write || a.write:
			race = true
		}
	}
	m.unsure = m.unsure || equal
	if race {
		m.kinds[kind] = true
	}
	m.touched[key] = append(m.touched[key], a)
	return written
}

// access executes a step in a thread.
func (m *transferModel) access(n, block, thread int, shared []byte) {
	s := m.steps[n]
	bytes, size, at := m.global, s.each*s.vector, s.base+thread*s.stride+block*s.apart+thread/32*(thread%32)*s.bend
	if s.shared {
		bytes = shared
	}
	switch {
	case at&(size-1) != 0:
		m.kinds[interp.Misaligned] = true
		return
	case at < 0 || at+size > len(bytes):
		m.kinds[interp.OutOfBounds] = true
		return
	}
	var value [32]byte
	for k := range s.vector {
		v := s.value + uint64(block*m.threads+thread)*s.step + uint64(k) //nolint:gosec // not negative
		binary.LittleEndian.PutUint64(value[k*s.each:], v)
	}
	for k := range size {
		written := m.touch(s.shared, at+k, byteAccess{n, block, thread, s.write, value[k]})
		switch {
		case !s.write && !written && (s.shared || m.written != nil && m.written[(at+k)/64]>>((at+k)%64)&1 == 0):
			m.kinds[interp.Uninitialised] = true
		case !s.shared && m.declared != nil && (s.write || !written) && !m.declares(at+k, s.write):
			m.kinds[interp.Undeclared] = true
		}
	}
	if s.write {
		copy(bytes[at:at+size], value[:])
		return
	}
	for k := range s.vector {
		var v [8]byte
		copy(v[:], bytes[at+k*s.each:][:s.each])
		if s.signed && v[s.each-1]&0x80 != 0 {
			for i := s.each; i < 8; i++ {
				v[i] = 0xff
			}
		}
		copy(m.out[((block*m.threads+thread)*len(m.steps)+n)*32+8*k:], v[:])
	}
}

// declares reports whether the launch declares an access to a byte.
func (m *transferModel) declares(at int, write bool) bool {
	return slices.ContainsFunc(m.declared, func(d interp.Declared) bool {
		return d.Write == write && transferStart+uint64(at)-d.Start < d.Bytes //nolint:gosec // not negative
	})
}

// transferMemory is the memory of a program.
type transferMemory struct{ global, out interp.Region }

// Range finds one of the two regions.
func (m *transferMemory) Range(address uint64, bytes int, _ bool) (interp.Region, error) {
	for _, g := range []interp.Region{m.global, m.out} {
		if address >= g.Start && address-g.Start+uint64(bytes) <= uint64(len(g.Bytes)) { //nolint:gosec // not negative
			return g, nil
		}
	}
	return interp.Region{}, errors.New("nothing is there")
}

// Loads and stores of random shapes give the results of threads one after the other, and each mistake among them is a fault: races, bytes that nobody
// wrote or declared, accesses out of bounds and misaligned ones. The number of goroutines changes neither.
func TestRandomTransfersAgainstAModel(t *testing.T) {
	t.Parallel()
	right, kinds := 0, map[interp.Kind]int{}
	for seed := range uint64(shorter(600)) {
		rnd := rand.New(rand.NewPCG(seed, 15)) //nolint:gosec // a test
		p := randomTransfers(rnd)
		initial := make([]byte, transferGlobal)
		for n := range initial {
			initial[n] = byte(rnd.Uint32())
		}
		m := &transferModel{
			transferProgram: p, global: slices.Clone(initial), out: make([]byte, 32*len(p.steps)*p.threads*p.blocks),
			kinds: map[interp.Kind]bool{}, touched: make([][]byteAccess, transferGlobal+transferShared*p.blocks),
		}
		for block := range p.blocks {
			shared := make([]byte, transferShared)
			for n := range p.filled {
				binary.LittleEndian.PutUint32(shared[4*n:], uint32(n)) //nolint:gosec // small
			}
			for n, s := range p.steps {
				for thread := s.low; thread < s.high; thread++ {
					m.access(n, block, thread, shared)
				}
			}
		}
		k := compile(t, p.text())
		var first error
		var memory *transferMemory
		for _, goroutines := range []int{1, 2} {
			run := &transferMemory{
				interp.Region{Start: transferStart, Bytes: slices.Clone(initial), Initialised: slices.Clone(p.written), Declared: p.declared},
				interp.Region{Start: transferOut, Bytes: make([]byte, len(m.out))},
			}
			l := launch(uint32(p.blocks), uint32(p.threads), run, uint64(transferStart), uint64(transferOut)) //nolint:gosec // few
			l.Goroutines, l.SharedBytes = goroutines, transferShared
			err := k.Run(l)
			if memory != nil {
				require.Equal(t, fmt.Sprint(first), fmt.Sprint(err), "seed %d on %d goroutines:\n%s", seed, goroutines, p.text())
				require.Equal(t, memory, run, "seed %d on %d goroutines:\n%s", seed, goroutines, p.text())
			}
			first, memory = err, run
		}
		if m.unsure {
			m.kinds[interp.SharedRace], m.kinds[interp.GlobalRace] = true, true
		}
		var fault *interp.Fault
		switch {
		case errors.As(first, &fault):
			require.True(t, m.kinds[fault.Kind], "seed %d: no fault of these %v was expected: %v\n%s", seed, m.kinds, first, p.text())
			kinds[fault.Kind]++
		case len(m.kinds) > 0 && !m.unsure:
			require.Error(t, first, "seed %d: one of these was expected: %v\n%s", seed, m.kinds, p.text())
		case !m.unsure:
			require.NoError(t, first)
			require.Equal(t, m.global, memory.global.Bytes, "seed %d:\n%s", seed, p.text())
			require.Equal(t, m.out, memory.out.Bytes, "seed %d:\n%s", seed, p.text())
			right++
		}
	}
	require.Greater(t, right, shorter(100))
	for _, kind := range []interp.Kind{interp.Misaligned, interp.OutOfBounds, interp.Uninitialised, interp.Undeclared, interp.SharedRace, interp.GlobalRace} {
		require.Positive(t, kinds[kind], "%v", kind)
	}
}

// Every access around the end of memory is right, misaligned or out of bounds by its own bytes alone: in each space, of each width and each vector.
func TestBoundsOfAccesses(t *testing.T) {
	t.Parallel()
	const end = 40 // half of the widest access is there
	for _, space := range []string{"global", "shared", "local", "param", "generic"} {
		for _, write := range []bool{false, true} {
			for each := 1; each <= 8; each *= 2 {
				for vector := 1; vector*each <= 16 && vector <= 4; vector *= 2 {
					if write && space == "param" {
						continue
					}
					checkBounds(t, space, write, each, vector, end)
				}
			}
		}
	}
}

// checkBounds makes one access at each offset from in front of the memory to some bytes after its end.
func checkBounds(t *testing.T, space string, write bool, each, vector, end int) {
	t.Helper()
	registers, suffix, named := "%v0", "", "."+space
	if vector > 1 {
		registers, suffix = strings.ReplaceAll(group(vector, 0, 0), "%b0_", "%v"), fmt.Sprintf(".v%d", vector)
	}
	address := map[string]string{"global": "mov.u64 %d, %x;", "shared": "mov.u64 %d, tile;", "local": "mov.u64 %d, depot;", "param": "mov.u64 %d, 0;"}[space]
	if space == "generic" {
		address, named = "mov.u64 %d, tile; cvta.shared.u64 %d, %d;", ""
	}
	access := fmt.Sprintf("ld%s%s.u%d %s, [%%d];", named, suffix, 8*each, registers)
	if write {
		access = fmt.Sprintf("st%s%s.u%d [%%d], %s;", named, suffix, 8*each, registers)
	}
	var fill strings.Builder // local memory ends at a multiple of 16
	for n := 0; n < end; n += 8 {
		fmt.Fprintf(&fill, "st.shared.u64 [tile+%d], 0;", n)
	}
	k := compile(t, header+fmt.Sprintf(`.extern .shared .align 16 .b8 tile[];
.visible .entry k(.param .u64 x, .param .s64 offset, .param .align 8 .b8 rest[%d]) {
	.local .align 16 .b8 depot[48]; .reg .b64 %%x, %%o, %%d, %%v<4>; ld.param.u64 %%x, [x]; ld.param.u64 %%o, [offset];
	mov.u64 %%v0, 0; mov.u64 %%v1, 0; mov.u64 %%v2, 0; mov.u64 %%v3, 0; %s st.local.u64 [depot], 0;
	%s add.s64 %%d, %%d, %%o; %s ret; }`, end-16, fill.String(), address, access))
	size := each * vector
	for offset := -size; offset <= end+32; offset++ {
		last := end
		if space == "local" {
			last = 48
		}
		memory := interp.Bytes{0x10000: make([]byte, end)}
		l := launch(1, 1, memory)
		l.Params, l.SharedBytes = append(params(uint64(0x10000), uint64(offset)), make([]byte, end-16)...), end //nolint:gosec // in two's complement
		err := k.Run(l)
		name := fmt.Sprintf("%s: %s at %d of %d", space, access, offset, last)
		switch {
		case offset%size != 0 && space != "param":
			require.ErrorIs(t, err, interp.Misaligned, name)
		case offset < 0 || offset+size > last:
			require.ErrorIs(t, err, interp.OutOfBounds, name)
		default:
			require.NoError(t, err, name)
		}
	}
}
