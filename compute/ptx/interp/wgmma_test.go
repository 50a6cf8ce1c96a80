package interp_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx/interp"
)

// sharedMatrix is a matrix of wgmma in shared memory: lines are rows of A or columns of B.
type sharedMatrix struct {
	swizzle         int // bytes of a line; 0 none
	across          bool
	start           int // in shared memory
	leading, stride int // bytes
}

// descriptor encodes a matrix as the PTX manual says.
func (m sharedMatrix) descriptor() uint64 {
	mode := map[int]uint64{0: 0, 128: 1, 64: 2, 32: 3}[m.swizzle]
	return uint64(m.start>>4) | uint64(m.leading>>4)<<16 | uint64(m.stride>>4)<<32 | mode<<62
}

// place is the address of an element, from the canonical layouts of CUTLASS: T elements are 16 bytes.
func (m sharedMatrix) place(line, k, bytes int) int {
	T, W := 16/bytes, max(m.swizzle, 16)
	var at int
	switch {
	case !m.across && m.swizzle == 0: // ((8,m),(T,2)):((1T,SBO),(1,LBO))
		at = line%8*16 + line/8*m.stride + k%T*bytes + k/T*m.leading
	case !m.across: // ((8,m),(T,2)):((WT,SBO),(1,T))
		at = line%8*W + line/8*m.stride + k*bytes
	case m.swizzle == 0: // ((T,1,m),(8,k)):((1,T,SBO),(1T,LBO))
		at = line%T*bytes + line/T*m.stride + k%8*16 + k/8*m.leading
	default: // ((T,W,m),(8,k)):((1,T,LBO),(WT,SBO))
		at = line%(W/bytes)*bytes + line/(W/bytes)*m.leading + k%8*W + k/8*m.stride
	}
	at += m.start
	switch m.swizzle {
	case 128:
		at ^= at >> 7 & 7 << 4
	case 64:
		at ^= at >> 7 & 3 << 4
	case 32:
		at ^= at >> 7 & 1 << 4
	}
	return at
}

// product is one wgmma.mma_async in a kernel.
type product struct {
	element        string
	columns        int
	left, right    sharedMatrix
	inRegisters    bool // A
	scale          int  // of D: 0 or 1
	signA, signB   int
	sharedBytes    int
	a              [64][16]float64
	b              [256][16]float64
	shared, fromA  []byte // that the kernel copies to shared memory, and to the registers of A
	before, result []byte // D
}

func (p *product) bytes() int { return map[string]int{"tf32": 4, "bf16": 2, "f16": 2}[p.element] }
func (p *product) depth() int { return 32 / p.bytes() }

// fill gives the matrices numbers, with lower bits that tf32 lacks and the product ignores.
func (p *product) fill(rnd *rand.Rand) {
	f, bytes := formats[p.element], p.bytes()
	p.shared, p.fromA = make([]byte, p.sharedBytes), make([]byte, 128*16)
	p.before, p.result = make([]byte, 128*p.columns*2), make([]byte, 128*p.columns*2)
	number := func(to []byte) float64 {
		v := uint64(math.Float32bits(float32(rnd.IntN(2048)-1024) / 64))
		switch p.element {
		case "bf16":
			v >>= 16
		case "f16":
			v = formats["f16"].encodeFloat(float64(math.Float32frombits(uint32(v))))
		}
		x := f.float(v)
		if bytes == 2 {
			binary.LittleEndian.PutUint16(to, uint16(v))
		} else {
			binary.LittleEndian.PutUint32(to, uint32(v)|uint32(rnd.IntN(0x1000)))
		}
		return x
	}
	for k := range p.depth() {
		for column := range p.columns {
			p.b[column][k] = number(p.shared[p.right.place(column, k, bytes):])
		}
		for row := range 64 {
			if !p.inRegisters {
				p.a[row][k] = number(p.shared[p.left.place(row, k, bytes):])
				continue
			}
			// the fragment of mma.m16n8k8 and mma.m16n8k16, for each warp's 16 rows
			var thread, register, part int
			if bytes == 4 {
				thread, register = row/16*32+row%8*4+k%4, row%16/8+k/4*2
			} else {
				thread, register, part = row/16*32+row%8*4+k%8/2, row%16/8+k/8*2, k%2
			}
			p.a[row][k] = number(p.fromA[thread*16+register*4+part*2:])
		}
	}
	for n := range 64 * p.columns {
		binary.LittleEndian.PutUint32(p.before[4*n:], math.Float32bits(float32(rnd.IntN(256)-128)/8))
	}
}

// text is a kernel of a warpgroup with the product.
func (p *product) text() string {
	var b strings.Builder
	registers := func(name string, n int) string {
		var names []string
		for k := range n {
			names = append(names, fmt.Sprintf("%%%s%d", name, k))
		}
		return "{" + strings.Join(names, ", ") + "}"
	}
	fmt.Fprintf(&b, ".version 8.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 s[];\n")
	b.WriteString(".visible .entry k(.param .u64 shared, .param .u64 a, .param .u64 before, .param .u64 out) {\n")
	fmt.Fprintf(&b, ".reg .pred %%p; .reg .b32 %%t, %%n, %%a<4>, %%v<4>; .reg .f32 %%d<%d>; .reg .b64 %%x, %%o, %%s, %%l, %%r;\n", p.columns/2)
	b.WriteString("mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 16; ld.param.u64 %x, [shared]; add.u64 %x, %x, %o; mov.u64 %s, s; add.u64 %s, %s, %o; mul.lo.u32 %n, %t, 16;\n")
	fmt.Fprintf(&b, "again: ld.global.v4.u32 {%%v0, %%v1, %%v2, %%v3}, [%%x]; st.shared.v4.u32 [%%s], {%%v0, %%v1, %%v2, %%v3};\nadd.u64 %%x, %%x, 2048; add.u64 %%s, %%s, 2048; add.u32 %%n, %%n, 2048; setp.lt.u32 %%p, %%n, %d; @%%p bra again;\n", p.sharedBytes)
	b.WriteString("fence.proxy.async.shared::cta; bar.sync 0;\n")
	b.WriteString("mul.wide.u32 %o, %t, 16; ld.param.u64 %x, [a]; add.u64 %x, %x, %o; ld.global.v4.u32 {%a0, %a1, %a2, %a3}, [%x];\n")
	fmt.Fprintf(&b, "mul.wide.u32 %%o, %%t, %d; ld.param.u64 %%x, [before]; add.u64 %%x, %%x, %%o;\n", p.columns*2)
	for k := range p.columns / 2 {
		fmt.Fprintf(&b, "ld.global.f32 %%d%d, [%%x+%d];\n", k, 4*k)
	}
	// the descriptors hold addresses from the start of the variable on
	fmt.Fprintf(&b, "mov.u64 %%s, s; shr.u64 %%s, %%s, 4; mov.b64 %%l, 0x%x; add.u64 %%l, %%l, %%s; mov.b64 %%r, 0x%x; add.u64 %%r, %%r, %%s; setp.ne.b32 %%p, 0, %d;\n",
		p.left.descriptor(), p.right.descriptor(), p.scale)
	left, shape := "%l", map[string]string{"tf32": "k8.f32.tf32.tf32", "bf16": "k16.f32.bf16.bf16", "f16": "k16.f32.f16.f16"}[p.element]
	if p.inRegisters {
		left = registers("a", 4)
	}
	fmt.Fprintf(&b, "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n%d%s %s, %s, %%r, %%p, %d, %d", p.columns, shape, registers("d", p.columns/2), left, p.signA, p.signB)
	if p.element != "tf32" && !p.inRegisters {
		fmt.Fprintf(&b, ", %d", btoi(p.left.across))
	}
	if p.element != "tf32" {
		fmt.Fprintf(&b, ", %d", btoi(p.right.across))
	}
	b.WriteString(";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nld.param.u64 %x, [out]; add.u64 %x, %x, %o;\n")
	for k := range p.columns / 2 {
		fmt.Fprintf(&b, "st.global.f32 [%%x+%d], %%d%d;\n", 4*k, k)
	}
	b.WriteString("ret;\n}\n")
	return b.String()
}

// check compares the result with sums in double precision.
func (p *product) check(t *testing.T) {
	t.Helper()
	for row := range 64 {
		for column := range p.columns {
			thread, register := row/16*32+row%8*4+column%8/2, column/8*4+row%16/8*2+column%2
			n := thread*p.columns/2 + register
			var want float64
			for k := range p.depth() {
				want += p.a[row][k] * p.b[column][k]
			}
			want = want*float64(p.signA*p.signB) + float64(p.scale)*float64(floatAt(p.before, n))
			if got := float64(floatAt(p.result, n)); math.Abs(got-want) > math.Abs(want)*1e-6 {
				require.InDelta(t, want, got, 0, "row %d, column %d", row, column)
			}
		}
	}
}

// products are one for each way that matrices may lie, with the fewest, some and the most columns.
func products() map[string]*product {
	all := map[string]*product{}
	for _, element := range []string{"tf32", "bf16", "f16"} {
		for _, columns := range []int{8, 24, 64, 256} {
			for _, swizzle := range []int{0, 32, 64, 128} {
				for _, inRegisters := range []bool{false, true} {
					for across := range 4 {
						if across > 0 && element == "tf32" || across&1 != 0 && inRegisters {
							continue
						}
						p := &product{
							element: element, columns: columns, inRegisters: inRegisters, scale: 1, signA: 1, signB: 1, sharedBytes: 112 << 10,
						}
						p.left = matrix(swizzle, across&1 != 0, 0)
						p.right = matrix(swizzle, across&2 != 0, 40<<10)
						p.scale = columns / 8 % 2
						p.signA, p.signB = 1-columns/64%2*2, 1-across&2
						all[fmt.Sprintf("%s/n=%d/swizzle=%d/registers=%v/across=%d", element, columns, swizzle, inRegisters, across)] = p
					}
				}
			}
		}
	}
	return all
}

// matrix is placed after some start, with gaps between its parts.
func matrix(swizzle int, across bool, start int) sharedMatrix {
	m := sharedMatrix{swizzle: swizzle, across: across, start: start + 3*128, leading: 16, stride: 8*swizzle + 1024}
	switch {
	case across && swizzle == 0:
		m.stride, m.leading = 256+128, 128+32
	case across:
		m.leading, m.stride = 16*swizzle+1024, 8*swizzle
	case swizzle == 0:
		m.stride, m.leading = 256+16, 128
	case swizzle > 32: // one step along the depth
		m.start += 32
	}
	return m
}

// Products of warpgroups are held against sums in double precision, for each way that the matrices may lie.
func TestProductsOfWarpgroups(t *testing.T) {
	t.Parallel()
	for name, p := range products() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p.fill(rand.New(rand.NewPCG(21, 22)))
			l := launch(1, 128, interp.Bytes{0x10000: p.shared, 0x40000: p.fromA, 0x50000: p.before, 0x80000: p.result},
				uint64(0x10000), uint64(0x40000), uint64(0x50000), uint64(0x80000))
			l.SharedBytes = p.sharedBytes
			err := compile(t, p.text()).Run(l)
			require.NoError(t, err)
			p.check(t)
			assert.NotEqual(t, p.before, p.result)
		})
	}
}
