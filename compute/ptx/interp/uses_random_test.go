package interp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/compute/ptx"
	"github.com/go-vram/vram/compute/ptx/interp"
)

// The buffers of a random program: loads are from the lower half, stores to the upper one, so that the interpreter, which lets a
// launch read its own stores, sees each use by itself.
const (
	bufferBytes = 4096
	bufferHalf  = bufferBytes / 2
	buffers     = 5 // three parameters, and two words of a parameter that is an array
	scratch     = buffers
	firstBuffer = uint64(0x100000)
	pointers    = 6 // registers that a program moves pointers between
)

// program is a random text that moves pointers, with the offset of each in its buffer.
type program struct {
	t       *rapid.T
	body    strings.Builder
	offsets [pointers]int
	label   int
	opaque  bool // pointers may go through memory that Uses does not follow
}

func (p *program) line(format string, args ...any) {
	fmt.Fprintf(&p.body, "\t"+format+"\n", args...)
}

func (p *program) pick(what string) int { return rapid.IntRange(0, pointers-1).Draw(p.t, what) }

// fresh loads a pointer of a parameter.
func (p *program) fresh(to int) {
	switch b := rapid.IntRange(0, buffers-1).Draw(p.t, "buffer"); {
	case b < 3:
		p.line("ld.param.u64 %%p%d, [a%d];", to, b)
	case rapid.Bool().Draw(p.t, "by address"):
		p.line("mov.b64 %%rd0, pair; ld.param.u64 %%p%d, [%%rd0+%d];", to, 8*(b-3))
	default:
		p.line("ld.param.u64 %%p%d, [pair+%d];", to, 8*(b-3))
	}
	if rapid.Bool().Draw(p.t, "cvta") {
		p.line("cvta.to.global.u64 %%p%d, %%p%d;", to, to)
	}
	p.offsets[to] = 0
}

// step adds one random move of a pointer, or an access.
func (p *program) step() {
	to, from, other := p.pick("to"), p.pick("from"), p.pick("other")
	kinds := 24
	if p.opaque {
		kinds = 26
	}
	switch rapid.IntRange(0, kinds-1).Draw(p.t, "step") {
	case 0:
		p.fresh(to)
		return
	case 1:
		by := 8 * rapid.IntRange(-64, 64).Draw(p.t, "by")
		p.line("add.s64 %%p%d, %%p%d, %d;", to, from, by)
		p.offsets[to] = p.offsets[from] + by
		return
	case 2: // %r1 is 3, from memory
		p.line("ld.param.u64 %%rd0, [index]; ld.global.u32 %%r1, [%%rd0]; mul.wide.s32 %%rd1, %%r1, 8; add.s64 %%p%d, %%p%d, %%rd1;", to, from)
		p.offsets[to] = p.offsets[from] + 24
		return
	case 3:
		p.line("ld.param.u64 %%rd1, [count]; shl.b64 %%rd1, %%rd1, 3; add.s64 %%p%d, %%rd1, %%p%d;", to, from)
		p.offsets[to] = p.offsets[from] + 40
		return
	case 4: // both offsets are made equal
		p.line("add.s64 %%rd1, %%p%d, %d; setp.%s.u32 %%q0, %%r0, 3; selp.b64 %%p%d, %%p%d, %%rd1, %%q0;",
			other, p.offsets[from]-p.offsets[other], rapid.SampledFrom([]string{"eq", "ne"}).Draw(p.t, "compare"), to, from)
	case 5:
		p.line("add.s64 %%rd1, %%p%d, %d; setp.lt.u32 %%q0, %%r0, 3; mov.b64 %%p%d, %%p%d; @%%q0 mov.b64 %%p%d, %%rd1;",
			other, p.offsets[from]-p.offsets[other], to, from, to)
		if to == other { // the sum was taken before
			p.offsets[to] = p.offsets[from]
			return
		}
	case 6: // through local memory
		at := 8 * rapid.IntRange(0, 3).Draw(p.t, "at")
		p.line("st.local.u64 [depot+%d], %%p%d; ld.local.u64 %%p%d, [depot+%d];", at, from, to, at)
	case 7: // through local memory, by its name or a generic address
		at := 8 * rapid.IntRange(0, 3).Draw(p.t, "at")
		p.line("mov.u64 %%rd0, depot; cvta.local.u64 %%rd0, %%rd0; add.u64 %%rd0, %%rd0, %d;", at)
		p.line("st%s, %%p%d;", p.place64("local", "depot", at), from)
		p.line("ld%s;", strings.Replace(p.place64("local", "depot", at), ".u64 ", ".v2.u32 {%r1, %r2}, ", 1))
		p.line("mov.b64 %%p%d, {%%r1, %%r2};", to)
	case 8: // in halves
		p.line("mov.b64 {%%r1, %%r2}, %%p%d; shfl.sync.idx.b32 %%r1, %%r1, 0, 31, -1; mov.b64 %%p%d, {%%r1, %%r2};", from, to)
	case 9:
		p.line("cvt.u32.u64 %%r1, %%p%d; shr.u64 %%rd1, %%p%d, 32; shl.b64 %%rd1, %%rd1, 32; cvt.u64.u32 %%rd2, %%r1; or.b64 %%p%d, %%rd1, %%rd2;", from, from, to)
	case 10: // through a function
		p.line("{ .param .b64 x; .param .b64 y; st.param.b64 [x], %%p%d; call (y), same, (x); ld.param.b64 %%p%d, [y]; }", from, to)
	case 11: // with the difference of two, as bytes or as a number of elements
		scale := rapid.SampledFrom([]string{
			"", "shr.s64 %rd1, %rd1, 3; shl.b64 %rd1, %rd1, 3;", "div.s64 %rd1, %rd1, 8; mul.lo.s64 %rd1, %rd1, 8;",
		}).Draw(p.t, "scale")
		p.line("sub.s64 %%rd1, %%p%d, %%p%d; %s add.s64 %%p%d, %%p%d, %%rd1;", from, other, scale, to, other)
	case 12: // as one compiles a loop over two arrays
		p.line("ld.param.u64 %%rd0, [a0]; sub.s64 %%rd1, %%p%d, %%rd0; add.s64 %%rd0, %%rd0, 8; add.s64 %%p%d, %%rd0, %%rd1;", from, to)
		p.offsets[to] = p.offsets[from] + 8
		return
	case 13:
		p.line("not.b64 %%rd1, %%p%d; neg.s64 %%rd1, %%rd1; add.s64 %%p%d, %%rd1, -1;", from, to)
	case 14:
		p.loop(from)
		return
	case 15: // through shared memory, by its name or a generic address
		p.line("mov.u64 %%rd0, tile; cvta.shared.u64 %%rd0, %%rd0; st%s, %%p%d;", p.place64("shared", "tile", 0), from)
		p.line("ld%s;", strings.Replace(p.place64("shared", "tile", 0), ".u64 ", fmt.Sprintf(".u64 %%p%d, ", to), 1))
	case 16:
		p.line("and.b64 %%p%d, %%p%d, -8;", to, from)
	case 17:
		p.line("shr.u64 %%rd1, %%p%d, 3; mul.lo.s64 %%p%d, %%rd1, 8;", from, to)
	case 18: // three exchanges in a loop
		p.label++
		p.line("mov.u32 %%r4, 0;\nL%d:", p.label)
		p.line("mov.b64 %%rd1, %%p%d; mov.b64 %%p%d, %%p%d; mov.b64 %%p%d, %%rd1; add.u32 %%r4, %%r4, 1; setp.lt.u32 %%q1, %%r4, 3; @%%q1 bra L%d;",
			to, to, from, from, p.label)
		p.offsets[to], p.offsets[from] = p.offsets[from], p.offsets[to]
		return
	case 19: // two ways
		p.label++
		p.line("setp.eq.u32 %%q0, %%r0, 2; add.s64 %%rd1, %%p%d, %d; @%%q0 bra L%d; mov.b64 %%rd1, %%p%d;\nL%d: mov.b64 %%p%d, %%rd1;",
			other, p.offsets[from]-p.offsets[other], p.label, from, p.label, to)
	case 20:
		p.line("mov.b64 {%%r1, %%r2}, %%p%d; add.cc.u32 %%r1, %%r1, 16; addc.u32 %%r2, %%r2, 0; mov.b64 %%p%d, {%%r1, %%r2};", from, to)
		p.offsets[to] = p.offsets[from] + 16
		return
	case 21: // the parameter's own memory, with an index
		p.line("mov.b64 %%rd0, pair; ld.param.u64 %%rd1, [count]; mad.lo.s64 %%rd0, %%rd1, 8, %%rd0; ld.param.u64 %%p%d, [%%rd0+-40];", to)
		p.offsets[to] = 0
		return
	case 22: // the parameter's own memory, with a constant
		word := 8 * rapid.IntRange(0, 1).Draw(p.t, "word")
		sum := rapid.SampledFrom([]string{"add.s64 %%rd0, %%rd0, %d;", "add.s64 %%rd0, %d, %%rd0;", "sub.s64 %%rd0, %%rd0, -%d;"}).Draw(p.t, "sum")
		p.line("mov.b64 %%rd0, pair; "+sum+" ld.param.u64 %%p%d, [%%rd0];", word, to)
		p.offsets[to] = 0
		return
	case 23: // two halves whose bits are joined
		join := rapid.SampledFrom([]string{"or", "xor", "add"}).Draw(p.t, "join")
		p.line("and.b64 %%rd1, %%p%d, 0xffffffff; shr.u64 %%rd2, %%p%d, 32; shl.b64 %%rd2, %%rd2, 32; %s.%s64 %%p%d, %%rd1, %%rd2;",
			from, from, join, map[bool]string{true: "s", false: "b"}[join == "add"], to)
	case 24:
		space := func() string { return rapid.SampledFrom([]string{"", ".global"}).Draw(p.t, "space") }
		p.line("ld.param.u64 %%rd0, [scratch]; st%s.u64 [%%rd0+%d], %%p%d; ld%s.u64 %%p%d, [%%rd0+%d];", space(), bufferHalf, from, space(), to, bufferHalf)
	case 25:
		p.line("ld.param.u64 %%rd0, [scratch]; xor.b64 %%rd1, %%rd0, %%p%d; xor.b64 %%p%d, %%rd1, %%rd0;", from, to)
	}
	p.offsets[to] = p.offsets[from]
}

// place64 returns the end of a load or a store of 64 bits in a variable whose generic address is in rd0: by its name or by that address.
func (p *program) place64(space, variable string, at int) string {
	if rapid.Bool().Draw(p.t, "generic") {
		return ".u64 [%rd0]"
	}
	return fmt.Sprintf(".%s.u64 [%s+%d]", space, variable, at)
}

// place returns a displacement from a pointer to a place of its buffer from start on.
func (p *program) place(of, start int) int {
	return start + 16*rapid.IntRange(8, bufferHalf/16-8).Draw(p.t, "place") - p.offsets[of]
}

// access adds a load, a store or an atomic operation.
func (p *program) access() {
	of := p.pick("pointer")
	space := rapid.SampledFrom([]string{"", ".global"}).Draw(p.t, "space")
	low, high := p.place(of, 0), p.place(of, bufferHalf)
	switch rapid.IntRange(0, 6).Draw(p.t, "access") {
	case 0:
		p.line("ld%s.u32 %%r3, [%%p%d+%d];", space, of, low)
	case 1:
		p.line("ld.global.nc.v2.u64 {%%rd3, %%rd4}, [%%p%d+%d];", of, low)
	case 2:
		p.line("st%s.u32 [%%p%d+%d], 7;", space, of, high)
	case 3:
		p.line("atom%s.add.u32 %%r3, [%%p%d+%d], 1;", space, of, high)
	case 4:
		p.line("red%s.add.u32 [%%p%d+%d], 1;", space, of, high)
	case 5:
		p.line("add.s64 %%rd1, %%p%d, %d; { .param .b64 x; st.param.b64 [x], %%rd1; call write, (x); }", of, high)
	case 6:
		p.line("cp.async.ca.shared.global [tile+16], [%%p%d+%d], 16; cp.async.wait_all;", of, low)
	}
}

// loop advances a pointer and reads on the way.
func (p *program) loop(of int) {
	p.label++
	p.line("mov.u32 %%r4, 0;\nL%d:", p.label)
	p.line("ld.global.u32 %%r3, [%%p%d+%d]; add.s64 %%p%d, %%p%d, 16; add.u32 %%r4, %%r4, 1; setp.lt.u32 %%q1, %%r4, 3; @%%q1 bra L%d;",
		of, p.place(of, 0), of, of, p.label)
	p.offsets[of] += 48
}

// text returns the module.
func (p *program) text() string {
	return `.version 7.8
.target sm_80
.address_size 64
.func (.param .b64 r) same(.param .b64 a) { .reg .b64 %x; ld.param.b64 %x, [a]; st.param.b64 [r], %x; ret; }
.func write(.param .b64 a) { .reg .b64 %x; ld.param.b64 %x, [a]; st.global.u32 [%x], 1; ret; }
.visible .entry k(.param .u64 a0, .param .u64 a1, .param .u64 a2, .param .align 8 .b8 pair[16], .param .u64 scratch, .param .u64 index, .param .u64 count)
{
	.local .align 8 .b8 depot[32];
	.shared .align 16 .b8 tile[32];
	.reg .pred %q<2>; .reg .b32 %r<5>; .reg .b64 %rd<5>, %p<` + fmt.Sprint(pointers) + `>;
	mov.u32 %r0, %ctaid.x;
` + p.body.String() + "\tret;\n}\n"
}

// Of random programs that move pointers, Uses has all that the interpreter does.
func TestUsesOfRandomPrograms(t *testing.T) {
	t.Parallel()
	known, rounds := 0, 10
	if testing.Short() {
		rounds = 1
	}
	for range rounds {
		rapid.Check(t, func(t *rapid.T) { known += randomUses(t) })
	}
	require.Positive(t, known, "every pointer was unknown")
}

// randomUses plays one program, and returns the number of pointers that are known.
func randomUses(t *rapid.T) int {
	p := &program{t: t, opaque: rapid.IntRange(0, 3).Draw(t, "opaque") == 0}
	for n := range pointers {
		p.fresh(n)
	}
	for range rapid.IntRange(3, 20).Draw(t, "steps") {
		if rapid.Bool().Draw(t, "moves") {
			p.step()
		} else {
			p.access()
		}
	}
	return requireWithin(t, p.text())
}

// requireWithin runs a random program with the accesses that Uses declares, and returns the number of pointers that are known.
func requireWithin(t *rapid.T, text string) (known int) {
	m, err := ptx.Parse(text)
	require.NoError(t, err)
	require.NoError(t, ptx.Check(m), text)
	k, err := interp.Compile(m, "k")
	require.NoError(t, err)
	memory := declaring{}
	address := func(n int) uint64 { return firstBuffer + uint64(n)<<20 }
	for n := range buffers + 2 {
		memory[address(n)] = &interp.Region{Start: address(n), Bytes: make([]byte, bufferBytes), Declared: []interp.Declared{{Start: 1, Bytes: 0}}}
	}
	memory[address(buffers+1)].Bytes[0] = 3
	for _, u := range ptx.Uses(m, m.Function("k")) {
		if u.Param == 6 { // a number, which Uses may not be able to tell
			require.NotEmpty(t, u.Unknown, text)
			continue
		}
		buffer := [...]int{0, 1, 2, 3 + u.Offset/8, scratch, scratch + 1}[u.Param]
		r := memory[address(buffer)]
		for _, write := range []bool{false, true} {
			if u.Writes && write || u.Reads && !write {
				r.Declared = append(r.Declared, interp.Declared{Start: r.Start, Bytes: bufferBytes, Write: write})
			}
		}
		if u.Unknown == "" {
			known++
		}
	}
	var values []any
	for n := range buffers + 2 {
		values = append(values, address(n))
	}
	l := launch(1, 1, memory, append(values, uint64(5))...)
	l.Grid.X = 4
	l.Ignore = []interp.Kind{interp.GlobalRace}
	require.NoError(t, k.Run(l), text)
	return known
}

// declaring is memory whose regions declare accesses.
type declaring map[uint64]*interp.Region

// Range finds the region around an address.
func (m declaring) Range(address uint64, bytes int, write bool) (interp.Region, error) {
	for start, r := range m {
		if address >= start && address < start+uint64(len(r.Bytes)) {
			return *r, nil
		}
	}
	return interp.Bytes{}.Range(address, bytes, write)
}
