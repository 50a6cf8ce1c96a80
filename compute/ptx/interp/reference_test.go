package interp_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx"
	"github.com/go-vram/vram/compute/ptx/interp"
)

// The references are written with math/big and share nothing with the interpreter but the manual.

// number is a floating-point format of the reference.
type number struct{ bits, precision, minExp, maxExp int }

var formats = map[string]number{
	"f16": {16, 11, -14, 15}, "bf16": {16, 8, -126, 127}, "f32": {32, 24, -126, 127}, "f64": {64, 53, -1022, 1023}, "tf32": {32, 11, -126, 127},
}

// decode is a number of a format: exact, or special.
func (f number) decode(v uint64) (x *big.Float, special float64) {
	mantissaBits := f.precision - 1
	if f.bits == 32 && f.precision == 11 {
		mantissaBits = 23
	}
	exponentBits := f.bits - 1 - mantissaBits
	m := v & (1<<mantissaBits - 1)
	e := int(v >> mantissaBits & (1<<exponentBits - 1))
	negative := v>>(f.bits-1)&1 != 0
	sign := 1.0
	if negative {
		sign = -1
	}
	switch {
	case e == 1<<exponentBits-1 && m != 0:
		return nil, math.NaN()
	case e == 1<<exponentBits-1:
		return nil, math.Inf(int(sign))
	case e == 0 && m == 0:
		return nil, math.Copysign(0, sign)
	}
	x = new(big.Float).SetPrec(6000)
	if e > 0 {
		m |= 1 << mantissaBits
	} else {
		e = 1
	}
	x.SetMantExp(new(big.Float).SetUint64(m), e-(1<<(exponentBits-1)-1)-mantissaBits)
	if negative {
		x.Neg(x)
	}
	return x, 0
}

func (f number) float(v uint64) float64 {
	x, special := f.decode(v)
	if x == nil {
		return special
	}
	r, _ := x.Float64()
	return r
}

// encode rounds an exact number that is not zero.
func (f number) encode(x *big.Float, mode string) uint64 {
	mantissaBits := f.precision - 1
	width := mantissaBits
	if f.bits == 32 && f.precision == 11 {
		width = 23
	}
	var sign uint64
	if x.Signbit() {
		sign = 1 << (f.bits - 1)
	}
	exponent := max(x.MantExp(nil)-1, f.minExp)
	scaled := new(big.Float).SetPrec(6000).SetMantExp(new(big.Float).SetPrec(6000).Abs(x), mantissaBits-exponent)
	whole, _ := scaled.Int(nil)
	rest := new(big.Float).SetPrec(6000).Sub(scaled, new(big.Float).SetPrec(6000).SetInt(whole))
	half := rest.Cmp(big.NewFloat(0.5))
	up := false
	switch mode {
	case "rz":
	case "rm":
		up = sign != 0 && rest.Sign() > 0
	case "rp":
		up = sign == 0 && rest.Sign() > 0
	case "rna":
		up = half >= 0
	default:
		up = half > 0 || half == 0 && whole.Bit(0) == 1
	}
	if up {
		whole.Add(whole, big.NewInt(1))
	}
	m := whole.Uint64()
	if m == 1<<f.precision {
		m >>= 1
		exponent++
	}
	biased := uint64(0)
	bias := 1<<(f.bits-2-width) - 1
	if m >= 1<<mantissaBits {
		biased = uint64(exponent + bias)
	}
	if exponent > f.maxExp {
		infinite := uint64(2*bias+1) << width
		if mode == "rz" || mode == "rm" && sign == 0 || mode == "rp" && sign != 0 {
			return sign | infinite - 1<<(width-mantissaBits)
		}
		return sign | infinite
	}
	return sign | biased<<width | (m&(1<<mantissaBits-1))<<(width-mantissaBits)
}

// special are the bits of NaN, an infinity or a zero.
func (f number) special(x float64) uint64 {
	width := f.precision - 1
	if f.bits == 32 {
		width = 23
	}
	if f.bits == 32 && f.precision == 8 {
		width = 7
	}
	var sign uint64
	if math.Signbit(x) {
		sign = 1 << (f.bits - 1)
	}
	infinite := uint64(1<<(f.bits-1)) - 1<<width
	switch {
	case math.IsNaN(x):
		return 1<<(f.bits-1) - 1
	case math.IsInf(x, 0):
		return sign | infinite
	}
	return sign
}

// isNaN reports whether bits are NaN.
func (f number) isNaN(v uint64) bool { return math.IsNaN(f.float(v)) }

// instruction is a name in parts.
type instruction struct {
	op    string
	mods  map[string]bool
	types []string
}

func split(name string) instruction {
	parts := strings.Split(name, ".")
	i := instruction{op: parts[0], mods: map[string]bool{}, types: typesOf(name)}
	for _, p := range parts[1:] {
		i.mods[p] = true
	}
	return i
}

func (i instruction) mode() string {
	for _, m := range []string{"rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"} {
		if i.mods[m] {
			return m
		}
	}
	return "rn"
}

// signed is an integer of a type.
func signed(v uint64, typ string) *big.Int {
	width := bits(typ)
	x := new(big.Int).SetUint64(v & (^uint64(0) >> (64 - width)))
	if typ[0] == 's' && x.Bit(width-1) == 1 {
		x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(width)))
	}
	return x
}

// wrap are the low bits of an integer.
func wrap(x *big.Int, width int) uint64 {
	return new(big.Int).And(x, new(big.Int).SetUint64(^uint64(0)>>(64-width))).Uint64()
}

// clamp cuts an integer to a type.
func clamp(x *big.Int, typ string) *big.Int {
	width := uint(bits(typ))
	least, most := big.NewInt(0), new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), width), big.NewInt(1))
	if typ[0] == 's' {
		most.Rsh(most, 1)
		least.Sub(new(big.Int).Neg(most), big.NewInt(1))
	}
	if x.Cmp(least) < 0 {
		return least
	}
	if x.Cmp(most) > 0 {
		return most
	}
	return x
}

// reference is the result of an instruction without memory; known is false where there is no reference.
func reference(i instruction, v [3]uint64) (result uint64, known bool) {
	t := i.types[0]
	switch {
	case i.op == "cvt":
		return convertReference(i, v)
	case i.op == "dp4a":
		sum := new(big.Int).SetUint64(v[2])
		for n := range 4 {
			a, b := signed(v[0]>>(8*n), i.types[0][:1]+"8"), signed(v[1]>>(8*n), i.types[1][:1]+"8")
			sum.Add(sum, a.Mul(a, b))
		}
		return wrap(sum, 32), true
	case t[0] == 'u' || t[0] == 's':
		return integerReference(i, v)
	case formats[t].bits > 0:
		return floatReference(i, formats[t], v)
	case strings.HasSuffix(t, "x2"):
		half := i
		half.types = []string{strings.TrimSuffix(t, "x2")}
		low, known := floatReference(half, formats[half.types[0]], [3]uint64{v[0] & 0xffff, v[1] & 0xffff, v[2] & 0xffff})
		high, _ := floatReference(half, formats[half.types[0]], [3]uint64{v[0] >> 16 & 0xffff, v[1] >> 16 & 0xffff, v[2] >> 16 & 0xffff})
		return high<<16 | low, known
	}
	return 0, false
}

func integerReference(i instruction, v [3]uint64) (uint64, bool) {
	t := i.types[0]
	width := bits(t)
	a, b, c := signed(v[0], t), signed(v[1], t), signed(v[2], t)
	r := new(big.Int)
	product := func() *big.Int {
		p := new(big.Int).Mul(a, b)
		if i.mods["hi"] {
			p.Rsh(p, uint(width))
			p = signed(wrap(p, width), t)
		}
		return p
	}
	switch i.op {
	case "add", "addc": // of a chain that begins here
		r.Add(a, b)
	case "sub", "subc":
		r.Sub(a, b)
	case "mul":
		if r = product(); i.mods["wide"] {
			return wrap(r, 2*width), true
		}
	case "mad", "madc":
		if r = product(); i.mods["wide"] {
			wide := t[:1] + fmt.Sprint(2*width)
			return wrap(r.Add(r, signed(v[2], wide)), 2*width), true
		}
		r.Add(r, c)
	case "sad":
		r.Add(c, r.Abs(r.Sub(a, b)))
	case "div":
		if b.Sign() == 0 {
			return ^uint64(0) >> (64 - width), true
		}
		r.Quo(a, b)
	case "rem":
		if b.Sign() == 0 {
			return wrap(a, width), true
		}
		r.Rem(a, b)
	case "abs":
		r.Abs(a)
	case "neg":
		r.Neg(a)
	case "min":
		if r = a; b.Cmp(a) < 0 {
			r = b
		}
	case "max":
		if r = a; b.Cmp(a) > 0 {
			r = b
		}
	default:
		return 0, false
	}
	if i.mods["sat"] {
		r = clamp(r, t)
	}
	return wrap(r, width), true
}

func floatReference(i instruction, f number, v [3]uint64) (uint64, bool) {
	if i.mods["ftz"] {
		for n := range v {
			v[n] = f.flush(v[n])
		}
	}
	r, known := f.compute(i, v)
	return f.finish(i, r), known
}

// flush makes a subnormal number zero.
func (f number) flush(v uint64) uint64 {
	if math.Abs(f.float(v)) < math.Ldexp(1, f.minExp) {
		return v & (1 << (f.bits - 1))
	}
	return v
}

// finish applies the modifiers that follow the rounding.
func (f number) finish(i instruction, r uint64) uint64 {
	x := f.float(r)
	if i.mods["sat"] {
		switch {
		case math.IsNaN(x) || x <= 0:
			r = 0
		case x > 1:
			r = f.encode(big.NewFloat(1), "rn")
		}
	}
	if i.mods["relu"] && x <= 0 {
		r = 0
	}
	if i.mods["ftz"] {
		r = f.flush(r)
	}
	return r
}

func (f number) compute(i instruction, v [3]uint64) (uint64, bool) {
	x, y, z := f.float(v[0]), f.float(v[1]), f.float(v[2])
	sign := uint64(1) << (f.bits - 1)
	switch i.op {
	case "add":
		return f.sum(v[0], v[1], i.mode()), true
	case "sub":
		return f.sum(v[0], v[1]^sign, i.mode()), true
	case "mul":
		return f.fused(v[0], v[1], sign&(v[0]^v[1]), i.mode()), true
	case "fma", "mad":
		return f.fused(v[0], v[1], v[2], i.mode()), true
	case "div":
		return f.quotient(v[0], v[1], i.mode()), true
	case "rcp":
		return f.quotient(f.encode(big.NewFloat(1), "rn"), v[0], i.mode()), true
	case "sqrt":
		a, special := f.decode(v[0])
		switch {
		case a == nil:
			return f.special(math.Sqrt(special)), true
		case a.Sign() < 0:
			return f.special(math.NaN()), true
		}
		return f.encode(a.SetPrec(400).Sqrt(a), i.mode()), true
	case "abs":
		return f.keepNaN(v[0], v[0]&^sign), true
	case "neg":
		return f.keepNaN(v[0], v[0]^sign), true
	case "copysign":
		return v[1]&^sign | v[0]&sign, true
	case "min", "max":
		return f.extreme(i, v), true
	}
	fn := map[string]func(float64) float64{
		"rsqrt": func(x float64) float64 { return 1 / math.Sqrt(x) }, "sin": math.Sin, "cos": math.Cos, "lg2": math.Log2, "ex2": math.Exp2, "tanh": math.Tanh,
	}[i.op]
	if fn == nil {
		return 0, false
	}
	_, _ = y, z
	r := fn(x)
	if r == 0 || math.IsNaN(r) || math.IsInf(r, 0) {
		return f.special(r), true
	}
	return f.encode(big.NewFloat(r), "rn"), true
}

func (f number) keepNaN(v, r uint64) uint64 {
	if f.isNaN(v) {
		return f.special(math.NaN())
	}
	return r
}

func (f number) extreme(i instruction, v [3]uint64) uint64 {
	sign := uint64(1) << (f.bits - 1)
	flip := uint64(0)
	if i.mods["xorsign"] {
		flip = (v[0] ^ v[1]) & sign
		v[0], v[1] = v[0]&^sign, v[1]&^sign
	}
	a, b := f.isNaN(v[0]), f.isNaN(v[1])
	r := v[0]
	switch {
	case a && b || (a || b) && i.mods["NaN"]:
		return f.special(math.NaN())
	case a:
		r = v[1]
	case !b:
		order := func(v uint64) int64 { // the bits of numbers are in the order of the numbers, but for the sign
			if v&sign != 0 {
				return -int64(v&^sign) - 1
			}
			return int64(v)
		}
		if (order(v[1]) < order(v[0])) == (i.op == "min") {
			r = v[1]
		}
	}
	return r ^ flip
}

func (f number) sum(a, b uint64, mode string) uint64 {
	return f.addUp(f.parts(a), f.parts(b), mode)
}

// part is a number: exact, or special.
type part struct {
	x       *big.Float
	special float64
}

func (f number) parts(v uint64) part { x, special := f.decode(v); return part{x, special} }

func (p part) float() float64 {
	if p.x == nil {
		return p.special
	}
	return float64(p.x.Sign())
}

func (f number) addUp(a, b part, mode string) uint64 {
	switch {
	case a.x == nil && b.x == nil:
		r := a.special + b.special
		if r == 0 && mode == "rm" && (math.Signbit(a.special) || math.Signbit(b.special)) {
			r = math.Copysign(0, -1)
		}
		return f.special(r)
	case a.x == nil && a.special != 0:
		return f.special(a.special)
	case b.x == nil && b.special != 0:
		return f.special(b.special)
	case a.x == nil:
		return f.encode(b.x, mode)
	case b.x == nil:
		return f.encode(a.x, mode)
	}
	r := new(big.Float).SetPrec(6000).Add(a.x, b.x)
	if r.Sign() == 0 {
		if mode == "rm" {
			return f.special(math.Copysign(0, -1))
		}
		return 0
	}
	return f.encode(r, mode)
}

func (f number) fused(a, b, c uint64, mode string) uint64 {
	p, q := f.parts(a), f.parts(b)
	product := part{special: p.float() * q.float()}
	if p.x != nil && q.x != nil {
		product = part{x: new(big.Float).SetPrec(6000).Mul(p.x, q.x)}
	}
	return f.addUp(product, f.parts(c), mode)
}

func (f number) quotient(a, b uint64, mode string) uint64 {
	p, q := f.parts(a), f.parts(b)
	if p.x == nil || q.x == nil {
		return f.special(p.float() / q.float())
	}
	return f.encode(new(big.Float).SetPrec(1000).Quo(p.x, q.x), mode)
}

// rounded is a number as an integer.
func rounded(x *big.Float, mode string) *big.Int {
	f := number{precision: 2000, minExp: -10000, maxExp: 10000}
	_ = f
	whole, _ := x.Int(nil) // towards zero
	rest := new(big.Float).SetPrec(6000).Sub(x, new(big.Float).SetPrec(6000).SetInt(whole))
	half := new(big.Float).Abs(rest).Cmp(big.NewFloat(0.5))
	step := big.NewInt(int64(rest.Sign()))
	switch {
	case strings.HasPrefix(mode, "rz"):
	case strings.HasPrefix(mode, "rm"):
		if rest.Sign() < 0 {
			whole.Sub(whole, big.NewInt(1))
		}
	case strings.HasPrefix(mode, "rp"):
		if rest.Sign() > 0 {
			whole.Add(whole, big.NewInt(1))
		}
	case half > 0 || half == 0 && whole.Bit(0) == 1:
		whole.Add(whole, step)
	}
	return whole
}

func convertReference(i instruction, v [3]uint64) (uint64, bool) {
	to, from := i.types[0], i.types[1]
	out, toFloat := formats[to]
	in, fromFloat := formats[from]
	switch {
	case strings.HasSuffix(to, "x2"):
		one := i
		one.types = []string{strings.TrimSuffix(to, "x2"), from}
		high, _ := convertReference(one, [3]uint64{v[0]})
		low, known := convertReference(one, [3]uint64{v[1]})
		return high<<16 | low, known
	case !toFloat && !fromFloat:
		x := signed(v[0], from)
		if i.mods["sat"] {
			x = clamp(x, to)
		}
		return wrap(signed(wrap(x, bits(to)), to), max(bits(to), 16)), true
	case !toFloat:
		a := v[0]
		if i.mods["ftz"] && from == "f32" {
			a = in.flush(a)
		}
		x, special := in.decode(a)
		r := new(big.Int)
		switch {
		case x != nil:
			r = rounded(x, i.mode())
		case math.IsInf(special, 0):
			r.Lsh(big.NewInt(int64(math.Copysign(1, special))), 100)
		case math.IsNaN(special) && (from == "f64" || bits(to) == 64): // else 0
			r.Lsh(big.NewInt(map[bool]int64{true: -1, false: 1}[to[0] == 's']), uint(bits(to)-1))
		}
		return wrap(signed(wrap(clamp(r, to), bits(to)), to), max(bits(to), 16)), true
	case !fromFloat:
		x := signed(v[0], from)
		if x.Sign() == 0 {
			return out.finish(i, 0), true
		}
		return out.finish(i, out.encode(new(big.Float).SetPrec(6000).SetInt(x), i.mode())), true
	}
	a := v[0]
	if i.mods["ftz"] && from == "f32" {
		a = in.flush(a)
	}
	x, special := in.decode(a)
	if x == nil {
		return out.convertFinish(i, out.special(special)), true
	}
	mode := i.mode()
	if strings.HasSuffix(mode, "i") {
		whole := rounded(x, mode)
		if whole.Sign() == 0 {
			return out.convertFinish(i, out.special(math.Copysign(0, float64(x.Sign())))), true
		}
		x = new(big.Float).SetPrec(6000).SetInt(whole)
		mode = "rn"
	}
	return out.convertFinish(i, out.encode(x, mode)), true
}

// convertFinish is finish, with .ftz for results of single precision alone.
func (f number) convertFinish(i instruction, r uint64) uint64 {
	if f.bits != 32 {
		i.mods = map[string]bool{"sat": i.mods["sat"], "relu": i.mods["relu"]}
	}
	return f.finish(i, r)
}

// operandsOf are operands with many edges.
func operandsOf(rnd *rand.Rand, typ string) uint64 {
	width := bits(typ)
	f, isFloat := formats[strings.TrimSuffix(typ, "x2")]
	one := func() uint64 {
		if !isFloat {
			edges := []uint64{0, 1, 2, ^uint64(0), 1 << (width - 1), 1<<(width-1) - 1, uint64(rnd.IntN(100))}
			if rnd.IntN(2) == 0 {
				return edges[rnd.IntN(len(edges))]
			}
			return rnd.Uint64()
		}
		sign := rnd.Uint64() & 1 << (f.bits - 1)
		switch rnd.IntN(8) {
		case 0:
			return f.special([]float64{0, math.Inf(1), math.NaN(), math.Copysign(0, -1), math.Inf(-1)}[rnd.IntN(5)])
		case 1:
			return sign | uint64(rnd.IntN(4)+1) // subnormal
		case 6:
			if rnd.IntN(2) == 0 { // around the least normal number
				return sign | (f.encode(big.NewFloat(math.Ldexp(1, f.minExp)), "rn") + uint64(rnd.IntN(3)) - 1)
			}
		case 2:
			return sign | f.encode(big.NewFloat(float64(rnd.IntN(20)+1)/4), "rn")
		case 3:
			return sign | f.encode(big.NewFloat(math.Exp2(rnd.Float64()*34)), "rn")
		case 4, 5:
			return sign | f.encode(big.NewFloat(1+rnd.Float64()), "rn")
		}
		return rnd.Uint64() & (^uint64(0) >> (64 - f.bits))
	}
	v := one()
	if strings.HasSuffix(typ, "x2") {
		v = v&0xffff | one()<<16
	}
	return v & (^uint64(0) >> (64 - width))
}

// allForms is more than any row has: all of them.
const allForms = 1 << 20

// Instructions that compute are held against references, in all their forms, on operands with many edges.
func TestArithmeticAgainstReferences(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, row := range table(t) {
		if op := row.op(); !strings.HasPrefix(row.group, "Arithmetic") && op != "cvt" || op == "testp" {
			continue
		}
		for _, name := range row.names(rnd, allForms) {
			checkAgainstReference(t, rnd, row, name)
		}
	}
}

// checkAgainstReference executes an instruction on some warps with random operands.
func checkAgainstReference(t *testing.T, rnd *rand.Rand, row tableRow, name string) {
	t.Helper()
	types := typesOfOperands(row, name)
	values := make([][3]uint64, 32+shorter(96))
	for thread := range values {
		for n, typ := range types[1:] {
			values[thread][n] = operandsOf(rnd, typ)
		}
	}
	checkOperands(t, row, name, values)
}

// typesOfOperands returns the type of the result and those of the operands.
func typesOfOperands(row tableRow, name string) (types []string) {
	i := split(name)
	for word := range strings.SplitSeq(row.operands, ", ") {
		word = strings.TrimRight(strings.TrimPrefix(word, "="), "~")
		switch word {
		case "T":
			word = i.types[0]
		case "U":
			word = i.types[1]
		case "2T":
			word = i.types[0][:1] + fmt.Sprint(2*bits(i.types[0]))
		}
		types = append(types, word)
	}
	return types
}

// Each operation that rounds as it is told does so for all pairs of the numbers at which a format changes, and for triples of some of them.
func TestRoundingsOfEdges(t *testing.T) {
	t.Parallel()
	count := 0
	for _, row := range table(t) {
		if !strings.HasPrefix(row.group, "Arithmetic") {
			continue
		}
		for _, name := range row.names(rand.New(rand.NewPCG(1, 2)), allForms) {
			i := split(name)
			f := formats[i.types[0]]
			if f.bits < 32 || !i.mods["rn"] && !i.mods["rz"] && !i.mods["rm"] && !i.mods["rp"] || testing.Short() && i.mods["sat"] {
				continue
			}
			one, normal, infinity := f.encode(big.NewFloat(1), "rn"), f.encode(big.NewFloat(math.Ldexp(1, f.minExp)), "rn"), f.special(math.Inf(1))
			edges, some := []uint64{0, 1, normal - 1, normal, one - 1, one, one + 1, infinity - 1, infinity}, []uint64{0, 1, one, infinity}
			checkOperands(t, row, name, tuples(f, edges, some, strings.Count(row.operands, ",")))
			count++
		}
	}
	require.Greater(t, count, 80)
}

// tuples returns all tuples of so many numbers, of both signs, and NaN: of pairs of the edges, and of triples of some.
func tuples(f number, edges, some []uint64, count int) (all [][3]uint64) {
	if count > 2 {
		edges = some
	}
	numbers := []uint64{f.special(math.NaN())}
	for _, v := range edges {
		numbers = append(numbers, v, v|1<<(f.bits-1))
	}
	all = [][3]uint64{{}}
	for n := range count {
		var longer [][3]uint64
		for _, v := range all {
			for _, x := range numbers {
				v[n] = x
				longer = append(longer, v)
			}
		}
		all = longer
	}
	return all
}

// before is the value of a result that an instruction leaves as it is.
const before = 0x5a5a5a5a5a5a5a5a

// checkOperands executes an instruction with the operands of each thread: in all threads, then in some of them, and then with each operand in
// turn as a constant, where it may be one: the value of the first thread.
func checkOperands(t *testing.T, row tableRow, name string, values [][3]uint64) {
	t.Helper()
	i, types, threads := split(name), typesOfOperands(row, name), len(values)
	var text strings.Builder
	fmt.Fprintf(&text, ".version 8.6\n.target sm_100\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {\n")
	text.WriteString(".reg .b16 %b16_<4>; .reg .b32 %b32_<4>, %t, %z; .reg .b64 %b64_<4>, %in, %out, %o; .reg .pred %p; mov.u32 %t, %tid.x; mov.u32 %z, 0;\n")
	text.WriteString("ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mul.wide.u32 %o, %t, 8; add.u64 %out, %out, %o;\n")
	text.WriteString("mul.wide.u32 %o, %t, 32; add.u64 %in, %in, %o; ld.global.u32 %t, [%in+24]; setp.ne.u32 %p, %t, 0;\n")
	var operands []string
	for n, typ := range types {
		width := max(bits(typ), 16)
		operands = append(operands, fmt.Sprintf("%%b%d_%d", width, n))
		if n > 0 {
			fmt.Fprintf(&text, "ld.global.b%d %%b%d_%d, [%%in+%d];\n", width, width, n, 8*(n-1))
		}
	}
	width := max(bits(types[0]), 16)
	left := uint64(before) & (^uint64(0) >> (64 - width))
	runs := 0
	run := func(guard string, operands []string) { // each begins with the flag of a carry chain as it is at first
		fmt.Fprintf(&text, "mov.b%[1]d %[2]s, %[3]d; add.cc.u32 %%z, %%z, 0;\n%[4]s%[5]s %[6]s;\nst.global.b%[1]d [%%out+%[7]d], %[2]s;\n",
			width, operands[0], left, guard, name, strings.Join(operands, ", "), 8*threads*runs)
		runs++
	}
	run("", operands)
	run("@%p ", operands)
	constants := []int{}
	for n := 1; n < len(types); n++ {
		if c := constantOf(types[n], values[0][n-1]); c != "" && i.op != "cvt" {
			with := slices.Clone(operands)
			with[n] = c
			run("", with)
			constants = append(constants, n)
		}
	}
	text.WriteString("ret;\n}\n")
	m, err := ptx.Parse(text.String())
	require.NoError(t, err, name)
	k, err := interp.Compile(m, "k")
	require.NoError(t, err, name)
	in, out := make([]byte, 32*threads), make([]byte, 8*threads*runs)
	guarded := func(thread int) bool { return thread*thread%7 < 4 }
	for thread := range threads {
		for n := range types[1:] {
			binary.LittleEndian.PutUint64(in[32*thread+8*n:], values[thread][n])
		}
		in[32*thread+24] = byte(btoi(guarded(thread)))
	}
	require.NoError(t, k.Run(interp.Launch{
		Grid: interp.Dim3{X: 1, Y: 1, Z: 1}, Block: interp.Dim3{X: uint32(threads), Y: 1, Z: 1},
		Params: params(uint64(0x10000), uint64(0x20000)), Memory: interp.Bytes{0x10000: in, 0x20000: out},
	}), name)
	for thread := range threads {
		want, known := reference(i, values[thread])
		if !assert.True(t, known, "%s has no reference", name) {
			return
		}
		for n := range runs {
			v, want := values[thread], want
			switch {
			case n == 1 && !guarded(thread):
				want = left
			case n > 1:
				v[constants[n-2]-1] = values[0][constants[n-2]-1]
				want, _ = reference(i, v)
			}
			got := binary.LittleEndian.Uint64(out[8*(threads*n+thread):])
			if !same(types[0], got, want) {
				assert.Failf(t, name, "run %d, constants %v: operands %#x: got %#x, want %#x", n, constants, v[:len(types)-1], got, want)
				return
			}
		}
	}
}

// constantOf returns a value as a constant of a type; "" if there is none.
func constantOf(typ string, v uint64) string {
	switch {
	case typ == "f32":
		return fmt.Sprintf("0f%08x", v)
	case typ == "f64":
		return fmt.Sprintf("0d%016x", v)
	case typ[0] == 'u' || typ[0] == 's':
		return signed(v, typ).String()
	}
	return ""
}

// same compares two results: one NaN is as good as another.
func same(typ string, a, b uint64) bool {
	f, isFloat := formats[strings.TrimSuffix(typ, "x2")]
	if !isFloat || a == b {
		return a == b
	}
	if one, isPair := strings.CutSuffix(typ, "x2"); isPair {
		return same(one, a&0xffff, b&0xffff) && same(one, a>>16, b>>16)
	}
	return slices.Max([]int{btoi(f.isNaN(a)) + btoi(f.isNaN(b)), 0}) == 2
}
