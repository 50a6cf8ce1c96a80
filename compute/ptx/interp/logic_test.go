package interp_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	mathbits "math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx/interp"
)

// Logic, shifts, comparisons and choices are held against references, in all their forms.
func TestLogicAgainstReferences(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(13, 14))
	for _, row := range table(t) {
		op, _, _ := strings.Cut(row.name, ".")
		if row.group != "Logic, comparisons, choices" && op != "testp" {
			continue
		}
		for _, name := range row.names(rnd, shorter(150)) {
			checkLogic(t, rnd, row, name)
		}
	}
}

// checkLogic executes an instruction on 64 threads; its operands are numbers and predicates.
func checkLogic(t *testing.T, rnd *rand.Rand, row tableRow, name string) {
	t.Helper()
	const threads, most = 64, 5
	i := split(name)
	var text strings.Builder
	text.WriteString(".version 8.6\n.target sm_100\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {\n")
	text.WriteString(".reg .b16 %b16_<6>; .reg .b32 %b32_<6>, %t, %u; .reg .b64 %b64_<6>, %in, %out, %o, %r; .reg .pred %p<8>; mov.u32 %t, %tid.x;\n")
	text.WriteString("ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mul.wide.u32 %o, %t, 8; add.u64 %out, %out, %o;\n")
	text.WriteString("mul.wide.u32 %o, %t, 64; add.u64 %in, %in, %o;\n")
	var operands, types []string
	constant := uint64(rnd.IntN(256))
	for n, word := range strings.Split(row.operands, ", ") {
		bare := strings.Trim(word, "=!|")
		switch bare {
		case "T", "U":
			bare = i.types[btoi(bare == "U")]
		}
		types = append(types, bare)
		width := max(bits(bare), 16)
		switch {
		case strings.HasPrefix(bare, "int("):
			operands = append(operands, fmt.Sprint(constant))
			continue
		case bare == "pred":
			operands = append(operands, fmt.Sprintf("%%p%d", n))
			if strings.HasSuffix(word, "|") {
				operands[n] += "|%p7"
			}
			if n > 0 {
				fmt.Fprintf(&text, "ld.global.b32 %%u, [%%in+%d]; and.b32 %%u, %%u, 1; setp.ne.u32 %%p%d, %%u, 0;\n", 8*n, n)
				if strings.HasPrefix(word, "!") && constant&1 != 0 {
					operands[n] = "!" + operands[n]
				}
			}
			continue
		}
		operands = append(operands, fmt.Sprintf("%%b%d_%d", width, n))
		if n > 0 {
			fmt.Fprintf(&text, "ld.global.b%d %%b%d_%d, [%%in+%d];\n", width, width, n, 8*n)
		}
	}
	fmt.Fprintf(&text, "setp.ne.u32 %%p7, 0, 0;\n%s %s;\n", name, strings.Join(operands, ", "))
	if types[0] == "pred" {
		text.WriteString("selp.b64 %b64_0, 1, 0, %p0; selp.b64 %r, 2, 0, %p7; or.b64 %b64_0, %b64_0, %r; st.global.b64 [%out], %b64_0;\n")
	} else {
		fmt.Fprintf(&text, "st.global.b%d [%%out], %s;\n", max(bits(types[0]), 16), operands[0])
	}
	text.WriteString("ret;\n}\n")
	in, out := make([]byte, 64*threads), make([]byte, 8*threads)
	var values [threads][most]uint64
	for thread := range threads {
		for n := 1; n < len(types); n++ {
			v := constant
			if types[n] == "pred" {
				v = rnd.Uint64() & 1
			} else if !strings.HasPrefix(types[n], "int(") {
				v = operandsOf(rnd, types[n])
				if n > 1 && rnd.IntN(4) == 0 && types[n] == types[1] {
					v = values[thread][0]
				}
				if types[n] == "b32" && rnd.IntN(3) > 0 {
					v = uint64(rnd.IntN(70))
				}
			}
			values[thread][n-1] = v
			binary.LittleEndian.PutUint64(in[64*thread+8*n:], v)
			if types[n] == "pred" && strings.HasPrefix(operands[n], "!") {
				values[thread][n-1] = 1 - v
			}
		}
	}
	require.NoError(t, compile(t, text.String()).Run(launch(1, threads, interp.Bytes{0x10000: in, 0x20000: out}, uint64(0x10000), uint64(0x20000))), name)
	for thread := range threads {
		want := logicReference(i, values[thread], strings.HasSuffix(strings.Split(row.operands, ",")[0], "|"))
		if got := binary.LittleEndian.Uint64(out[8*thread:]); got != want {
			assert.Failf(t, name, "operands %#x: got %#x, want %#x", values[thread][:len(types)-1], got, want)
			return
		}
	}
}

// logicReference returns the result; a comparison returns the second predicate above the first.
func logicReference(i instruction, v [5]uint64, paired bool) uint64 {
	t := i.types[0]
	width := bits(t)
	ones := ^uint64(0) >> (64 - width)
	switch i.op {
	case "and":
		return v[0] & v[1]
	case "or":
		return v[0] | v[1]
	case "xor":
		return v[0] ^ v[1]
	case "not":
		return ^v[0] & ones
	case "cnot":
		return uint64(btoi(v[0] == 0))
	case "shl":
		return wrap(new(big.Int).Lsh(new(big.Int).SetUint64(v[0]), uint(min(v[1], 100))), width)
	case "shr":
		return wrap(new(big.Int).Rsh(signed(v[0], t), uint(min(v[1], 100))), width)
	case "selp":
		return []uint64{v[1], v[0]}[v[2]]
	case "slct":
		x := formats["f32"].float(v[2])
		if i.types[1] == "s32" {
			x = float64(int32(uint32(v[2])))
		} else if i.mods["ftz"] {
			x = formats["f32"].float(formats["f32"].flush(v[2]))
		}
		if x >= 0 {
			return v[0]
		}
		return v[1]
	case "clz":
		return uint64(mathbits.LeadingZeros64(v[0]) - 64 + width)
	case "popc":
		return uint64(mathbits.OnesCount64(v[0]))
	case "testp":
		return uint64(btoi(testReference(i, v[0])))
	case "setp", "set":
		return compareReference(i, v, paired)
	}
	return fieldReference(i, v)
}

// fieldReference is about bits and bytes: the pseudocode of the manual, bit by bit.
func fieldReference(i instruction, v [5]uint64) (r uint64) {
	t := i.types[0]
	width := bits(t)
	switch i.op {
	case "shf":
		n := uint(v[2] & 31)
		if i.mods["clamp"] {
			n = uint(min(v[2], 32))
		}
		pair := new(big.Int).SetUint64(v[1]<<32 | v[0])
		if i.mods["l"] {
			return wrap(pair.Rsh(pair.Lsh(pair, n), 32), 32)
		}
		return wrap(pair.Rsh(pair, n), 32)
	case "bfe":
		position, length := v[1]&0xff, v[2]&0xff
		var sign uint64
		if t[0] == 's' && length > 0 {
			sign = v[0] >> min(position+length-1, uint64(width-1)) & 1
		}
		for n := range uint64(width) {
			bit := sign
			if n < length && position+n < uint64(width) {
				bit = v[0] >> (position + n) & 1
			}
			r |= bit << n
		}
	case "bfi":
		r = v[1]
		position, length := v[2]&0xff, v[3]&0xff
		for n := uint64(0); n < length && position+n < uint64(width); n++ {
			r = r&^(1<<(position+n)) | v[0]>>n&1<<(position+n)
		}
	case "bfind":
		x := signed(v[0], t)
		if x.Sign() < 0 {
			x.Not(x)
		}
		switch n := x.BitLen() - 1; {
		case n < 0:
			return 0xffffffff
		case i.mods["shiftamt"]:
			return uint64(width - 1 - n)
		default:
			return uint64(n)
		}
	case "brev":
		for n := range width {
			r |= v[0] >> n & 1 << (width - 1 - n)
		}
	case "lop3":
		for n := range 32 {
			index := v[0]>>n&1<<2 | v[1]>>n&1<<1 | v[2]>>n&1
			r |= v[3] >> index & 1 << n
		}
	case "prmt":
		var source [8]byte
		binary.LittleEndian.PutUint64(source[:], v[1]<<32|v[0])
		tables := map[string][4][4]int{
			"f4e": {{0, 1, 2, 3}, {1, 2, 3, 4}, {2, 3, 4, 5}, {3, 4, 5, 6}}, "b4e": {{0, 7, 6, 5}, {1, 0, 7, 6}, {2, 1, 0, 7}, {3, 2, 1, 0}},
			"rc8": {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}}, "ecl": {{0, 1, 2, 3}, {1, 1, 2, 3}, {2, 2, 2, 3}, {3, 3, 3, 3}},
			"ecr": {{0, 0, 0, 0}, {0, 1, 1, 1}, {0, 1, 2, 2}, {0, 1, 2, 3}}, "rc16": {{0, 1, 0, 1}, {2, 3, 2, 3}, {0, 1, 0, 1}, {2, 3, 2, 3}},
		}
		for n := range 4 {
			index, sign := int(v[2]>>(4*n)&7), v[2]>>(4*n)&8 != 0
			for mode, selected := range tables {
				if i.mods[mode] {
					index, sign = selected[v[2]&3][n], false
				}
			}
			b := source[index]
			if sign {
				b = byte(int8(b) >> 7)
			}
			r |= uint64(b) << (8 * n)
		}
	}
	return r
}

func testReference(i instruction, v uint64) bool {
	f := formats[i.types[0]]
	x := f.float(v)
	small := x != 0 && math.Abs(x) < math.Ldexp(1, f.minExp) // zeros are normal numbers
	switch {
	case i.mods["finite"]:
		return !math.IsNaN(x) && !math.IsInf(x, 0)
	case i.mods["infinite"]:
		return math.IsInf(x, 0)
	case i.mods["number"]:
		return !math.IsNaN(x)
	case i.mods["notanumber"]:
		return math.IsNaN(x)
	case i.mods["normal"]:
		return !math.IsNaN(x) && !math.IsInf(x, 0) && !small
	}
	return small
}

func compareReference(i instruction, v [5]uint64, paired bool) uint64 {
	t := i.types[len(i.types)-1]
	one := func(a, b uint64) bool { return compareOne(i, t, a, b) }
	combine := func(result bool) uint64 {
		r := uint64(btoi(result))
		switch {
		case i.mods["and"]:
			return r & v[2]
		case i.mods["or"]:
			return r | v[2]
		case i.mods["xor"]:
			return r ^ v[2]
		}
		return r
	}
	switch {
	case strings.HasSuffix(t, "x2"):
		t = strings.TrimSuffix(t, "x2")
		lower, upper := combine(one(v[0]&0xffff, v[1]&0xffff)), combine(one(v[0]>>16, v[1]>>16))
		if i.op == "set" {
			yes := map[string]uint64{"f16x2": 0x3c00, "bf16x2": 0x3f80, "u32": 0xffff, "s32": 0xffff}[i.types[0]]
			return lower*yes | upper*yes<<16
		}
		return lower | upper<<1
	case paired:
		return combine(one(v[0], v[1])) | combine(!one(v[0], v[1]))<<1
	case i.op == "setp":
		return combine(one(v[0], v[1]))
	}
	yes := map[string]uint64{"f32": uint64(math.Float32bits(1)), "f16": 0x3c00, "bf16": 0x3f80, "u16": 0xffff, "s16": 0xffff, "u32": 0xffffffff, "s32": 0xffffffff}
	return combine(one(v[0], v[1])) * yes[i.types[0]]
}

func compareOne(i instruction, t string, a, b uint64) bool {
	order, nan := 0, false
	if f, isFloat := formats[t]; isFloat {
		if i.mods["ftz"] && t != "f64" {
			a, b = f.flush(a), f.flush(b)
		}
		x, y := f.float(a), f.float(b)
		nan = math.IsNaN(x) || math.IsNaN(y)
		order = btoi(x > y) - btoi(x < y)
	} else {
		order = signed(a, t).Cmp(signed(b, t))
	}
	for name, holds := range map[string]bool{
		"eq": !nan && order == 0, "ne": !nan && order != 0, "lt": !nan && order < 0, "le": !nan && order <= 0, "gt": !nan && order > 0, "ge": !nan && order >= 0,
		"lo": order < 0, "ls": order <= 0, "hi": order > 0, "hs": order >= 0,
		"equ": nan || order == 0, "neu": nan || order != 0, "ltu": nan || order < 0, "leu": nan || order <= 0, "gtu": nan || order > 0, "geu": nan || order >= 0,
		"num": !nan, "nan": nan,
	} {
		if i.mods[name] {
			return holds
		}
	}
	panic("no comparison")
}
