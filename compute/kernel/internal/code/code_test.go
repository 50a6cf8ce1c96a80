package code_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/internal/code"
	"github.com/go-vram/vram/compute/ptx"
	"github.com/go-vram/vram/compute/ptx/interp"
	"github.com/go-vram/vram/compute/tensor"
)

// The addresses of the two parameters of kernels.
const inAt, outAt = 0x10000, 0x80000

// run has so many threads of one block execute a kernel with the addresses of words that it reads and of others that it writes.
func run(t *testing.T, threads int, wide bool, in []uint64, out int, write func(w *code.Writer, in, out code.Value)) []uint64 {
	t.Helper()
	text := code.Module([]string{"k"}, threads, wide, func(w *code.Writer, _ int) {
		a, b := w.Param(8), w.Param(8)
		write(w, a, b)
	})
	module, err := ptx.Parse(text)
	require.NoError(t, err, text)
	require.NoError(t, ptx.Check(module), text)
	k, err := interp.Compile(module, "k")
	require.NoError(t, err, text)
	read, written := make([]byte, 8*len(in)), make([]byte, 8*out)
	for i, x := range in {
		binary.LittleEndian.PutUint64(read[8*i:], x)
	}
	params := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, inAt), outAt)
	require.NoError(t, k.Run(interp.Launch{
		Grid: interp.Dim3{X: 1, Y: 1, Z: 1}, Block: interp.Dim3{X: uint32(threads), Y: 1, Z: 1}, Params: params, SharedBytes: 64,
		Memory: interp.Bytes{inAt: read, outAt: written},
	}), text)
	words := make([]uint64, out)
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(written[8*i:])
	}
	return words
}

// element returns the address of a word: so many for each thread, and one of them.
func element(w *code.Writer, base code.Value, each, at int) code.Value {
	offset := w.Op2(code.MulWideU32, w.Special("tid.x"), code.U32(uint32(8*each)))
	return w.Op2(code.AddS64, w.Op2(code.AddS64, base, offset), code.U64(uint64(8*at)))
}

// load returns a word as a register of a class.
func load(w *code.Writer, class code.Class, address code.Value) code.Value {
	to := w.New(map[code.Class]code.Class{code.Pred: code.B32, code.B16: code.B16, code.B32: code.B32, code.B64: code.B64}[class])
	w.Line("ld.global.u%d %v, [%v]", map[code.Class]int{code.Pred: 32, code.B16: 16, code.B32: 32, code.B64: 64}[class], to, address)
	if class == code.Pred {
		return w.Op2(code.NeS32, to, code.U32(0))
	}
	return to
}

// store writes a register as a word.
func store(w *code.Writer, v, address code.Value) {
	if v.Class == code.Pred {
		v = w.Op3(code.Select32, code.U32(1), code.U32(0), v)
	}
	w.Line("st.global.u%d [%v], %v", map[code.Class]int{code.B16: 16, code.B32: 32, code.B64: 64}[v.Class], address, w.Register(v))
}

// typeOf returns the class and the type of an operand by the suffix of an instruction.
func typeOf(suffix string) (code.Class, string) {
	switch {
	case suffix == "pred":
		return code.Pred, suffix
	case strings.HasSuffix(suffix, "16"):
		return code.B16, suffix
	case strings.HasSuffix(suffix, "64"):
		return code.B64, suffix
	}
	return code.B32, suffix
}

// signature returns the classes of the operands and of the result of an operation, and the types of an operand and the result, by
// its text.
func signature(op code.Op) (operands []code.Class, result code.Class, of, to string) {
	text := strings.Split(op.Text(), ".")
	class, of := typeOf(text[len(text)-1])
	switch op { // those without a text of their own
	case code.U32FromHi:
		return []code.Class{code.B64}, code.B32, "b64", "b32"
	case code.U64FromHalves:
		return []code.Class{code.B32, code.B32}, code.B64, "b32", "b64"
	case code.SelectPred:
		return []code.Class{code.Pred, code.Pred, code.Pred}, code.Pred, "pred", "pred"
	}
	switch text[0] {
	case "cvt":
		result, to = typeOf(text[len(text)-2])
		return []code.Class{class}, result, of, to
	case "setp":
		return []code.Class{class, class}, code.Pred, of, "pred"
	case "selp":
		return []code.Class{class, class, code.Pred}, class, of, of
	case "shl", "shr":
		return []code.Class{class, code.B32}, class, of, of
	case "fma":
		return []code.Class{class, class, class}, class, of, of
	case "neg", "abs", "sqrt", "not", "clz":
		return []code.Class{class}, class, of, of
	case "mul":
		if text[1] == "wide" {
			return []code.Class{class, class}, code.B64, of, "u64"
		}
	}
	return []code.Class{class, class}, class, of, of
}

// interesting returns the bits of numbers of a type at the edges of its range, and where operations differ, and random ones.
func interesting(of string, random *rand.Rand) (all []uint64) {
	floats := []float64{
		0, math.Copysign(0, -1), 1, -1, 0.5, 1.5, 2.5, -2.5, -0.75, 3, 7, 1e-40, -1e-310, 1e9, -3e9, 1e19, -1e20, 65504, 65520, 1e-7,
		math.MaxFloat32, math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN(), 1 << 31, 1 << 32, 1 << 53, 1<<24 + 1, math.Pi,
	}
	switch of {
	case "f32":
		for _, x := range floats {
			all = append(all, uint64(math.Float32bits(float32(x))))
		}
	case "f64":
		for _, x := range floats {
			all = append(all, math.Float64bits(x))
		}
	case "pred":
		return []uint64{0, 1}
	}
	all = append(all, 0, 1, 2, 3, 31, 32, 33, 63, 64, 65, 0x7f, 0xff, 0x7fff, 0x8000, 0xffff, 0x3c00, 0x7c00, 1<<31-1, 1<<31, 1<<32-1, 1<<32, 1<<63-1, 1<<63,
		math.MaxUint64, random.Uint64(), random.Uint64(), random.Uint64()&0xffff)
	return all
}

// near returns the bits of a float32 whose products with others like it are halfway between two, or next to that.
func near(random *rand.Rand) uint64 {
	x := (1 + float64(random.IntN(8))/(1<<12)) * math.Ldexp(1, -12*random.IntN(4)-random.IntN(3))
	return uint64(math.Float32bits(float32(math.Copysign(x, float64(random.IntN(2))-0.5))))
}

// value is a constant of a class.
func value(class code.Class, bits uint64) code.Value {
	switch class {
	case code.Pred:
		return code.Bool(bits != 0)
	case code.B16:
		return code.Value{Class: class, Const: true, Bits: bits & 0xffff}
	case code.B32:
		return code.U32(uint32(bits))
	}
	return code.U64(bits)
}

// perform performs an operation on one to three operands.
func perform(m code.Machine, op code.Op, operands []code.Value) code.Value {
	switch len(operands) {
	case 1:
		return m.Op1(op, operands[0])
	case 2:
		return m.Op2(op, operands[0], operands[1])
	}
	return m.Op3(op, operands[0], operands[1], operands[2])
}

// isNaN reports whether the bits are of no number.
func isNaN(of string, bits uint64) bool {
	switch of {
	case "f16":
		return bits&0x7fff > 0x7c00
	case "f32":
		return bits&0x7fffffff > 0x7f800000
	case "f64":
		return bits&(1<<63-1) > 0x7ff<<52
	}
	return false
}

// Every operation has the result on the Evaluator that the Emitter's instruction has on the interpreter of PTX, of registers and
// of a constant at any operand, for numbers at the edges of types and random ones.
func TestMachinesAgree(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const threads = 128
	for op := code.AddF32; op <= code.B32FromB16; op++ {
		classes, result, of, to := signature(op)
		pool := interesting(of, random)
		in := make([]uint64, 3*threads)
		operands := make([][]code.Value, threads)
		for n := range threads {
			for i, class := range classes {
				bits := pool[random.IntN(len(pool))]
				switch {
				case len(classes) == 1:
					bits = pool[n%len(pool)]
				case op == code.FmaF32 && n%4 > 0:
					bits = near(random)
				case class == code.Pred:
					bits = random.Uint64() & 1
				case i == 1 && class == code.B32 && classes[0] == code.B64 || strings.HasPrefix(op.Text(), "sh"):
					if i == 1 {
						bits = random.Uint64N(70) // how far to shift
					}
				}
				operands[n] = append(operands[n], value(class, bits))
				in[3*n+i] = operands[n][i].Bits
			}
		}
		for constant := -1; constant < len(classes); constant++ { // an operand that all threads have, or none
			if constant >= 0 && (len(classes) == 1 || classes[constant] == code.B16) {
				continue
			}
			for kept := range 4 {
				if constant < 0 && kept > 0 {
					break
				}
				words := run(t, threads, false, in, threads, func(w *code.Writer, a, b code.Value) {
					all := make([]code.Value, len(classes))
					for i, class := range classes {
						all[i] = load(w, class, element(w, a, 3, i))
						if i == constant {
							all[i] = operands[kept][i]
						}
					}
					v := perform(w, op, all)
					if v != all[0] && v != all[len(all)/2] { // a choice that is known
						assert.Equal(t, result, v.Class, "%v %s", op, op.Text())
					}
					assert.Equal(t, v, perform(w, op, all), "it is not written again")
					store(w, v, element(w, b, 1, 0))
				})
				for n, got := range words {
					all := append([]code.Value(nil), operands[n]...)
					if constant >= 0 {
						all[constant] = operands[kept][constant]
					}
					want := perform(code.Evaluator{}, op, all)
					if !isNaN(to, want.Bits) || !isNaN(to, got) {
						require.Equal(t, want.Bits, got, "operation %d %s of %x, constant %d", op, op.Text(), fmt.Sprint(all), constant)
					}
				}
			}
		}
	}
}

// Products and sums that are halfway between two numbers of float32, or next to that, are rounded once.
func TestFmaIsRoundedOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const threads = 1024
	in := make([]uint64, 3*threads)
	for i := range in {
		in[i] = near(random)
	}
	words := run(t, threads, false, in, threads, func(w *code.Writer, a, b code.Value) {
		x, y, z := load(w, code.B32, element(w, a, 3, 0)), load(w, code.B32, element(w, a, 3, 1)), load(w, code.B32, element(w, a, 3, 2))
		store(w, w.Op3(code.FmaF32, x, y, z), element(w, b, 1, 0))
	})
	for n, got := range words {
		want := code.Evaluator{}.Op3(code.FmaF32, code.U32(uint32(in[3*n])), code.U32(uint32(in[3*n+1])), code.U32(uint32(in[3*n+2])))
		require.Equal(t, want.Bits, got, "%x", in[3*n:3*n+3])
	}
}

// A Writer's indices of 32 and of 64 bits have the results of arithmetic on the host, of constants and of registers.
func TestIndices(t *testing.T) {
	const threads, each = 105, 14
	shape := []int{3, 5, 7}
	in := make([]uint64, threads)
	for i := range in {
		in[i] = uint64(1000 + i)
	}
	for _, wide := range []bool{false, true} {
		words := run(t, threads, wide, in, threads*each, func(w *code.Writer, a, b code.Value) {
			at, sizes := w.Index(w.Special("tid.x")), make([]code.Value, len(shape))
			for i, n := range shape {
				sizes[i] = w.Constant(n)
			}
			split := w.Split(at, sizes)
			assert.Empty(t, w.Split(at, nil))
			zero := w.Constant(0)
			assert.Equal(t, at, w.Add(at, zero))
			assert.Equal(t, at, w.Add(zero, at))
			assert.Equal(t, a, w.Address(a, zero, 8))
			assert.Equal(t, map[bool]code.Class{false: code.B32, true: code.B64}[wide], at.Class)
			assert.Equal(t, code.B32, w.Narrow(at).Class)
			for i, v := range []code.Value{
				split[0], split[1], split[2], w.Add(at, split[0]), w.Sub(at, split[1]), w.Mul(at, split[2]), w.Div(at, w.Constant(4)),
				w.Less(at, w.Constant(50)), w.Min(at, w.Constant(9)), load(w, code.B64, w.Address(a, at, 8)), load(w, code.B64, w.Address(a, w.Constant(3), 8)),
				w.Narrow(at), load(w, code.B64, w.Address(a, w.Add(at, w.Constant(0)), 8)), w.Add(w.Constant(5), w.Constant(6)),
			} {
				store(w, v, element(w, b, each, i))
			}
		})
		for n := range threads {
			z, y, x := uint64(n/35), uint64(n/7%5), uint64(n%7)
			at := uint64(n)
			less := uint64(0)
			if n < 50 {
				less = 1
			}
			want := []uint64{z, y, x, at + z, at - y, at * x, at / 4, less, min(at, 9), 1000 + at, 1003, at, 1000 + at, 11}
			require.Equal(t, want, words[each*n:each*(n+1)], "wide %t, thread %d", wide, n)
		}
	}
}

// Branches, loops and variables run as they are written; both machines have one result of Rare.
func TestBranches(t *testing.T) {
	const threads, each = 40, 4
	words := run(t, threads, false, []uint64{0}, threads*each, func(w *code.Writer, _, b code.Value) {
		thread := w.Special("tid.x")
		sum, left := w.Variable(code.U32(7)), w.Variable(thread)
		w.Loop(func(end string) { // the sum of the numbers to thread
			now := w.Get(left)
			w.If(w.Op2(code.EqS32, now, code.U32(0)), func() { w.Line("bra %s", end) })
			w.Set(sum, w.Op2(code.AddS32, w.Get(sum), now))
			w.Set(left, w.Op2(code.SubS32, now, code.U32(1)))
		})
		odd := w.Op2(code.NeS32, w.Op2(code.And32, thread, code.U32(1)), code.U32(0))
		rare := w.Rare(odd, code.U32(100), func() code.Value { return w.Op2(code.AddS32, thread, code.U32(1)) })
		assert.Equal(t, code.U32(1), w.Rare(code.Bool(true), code.U32(0), func() code.Value { return code.U32(1) }))
		assert.Equal(t, code.U32(0), w.Rare(code.Bool(false), code.U32(0), func() code.Value { return code.U32(1) }))
		kept := w.Reserve(4 * threads)
		assert.Equal(t, 4*threads, w.Reserve(8), "it follows")
		shared := func(base, thread code.Value) code.Value {
			return w.Op2(code.AddS32, base, w.Op2(code.MulS32, thread, code.U32(4)))
		}
		at := w.Op2(code.AddS32, w.SharedBase(), code.U32(uint32(kept)))
		w.Line("st.shared.b32 [%v], %v", shared(at, thread), thread)
		w.Barrier()
		mirrored := w.Op2(code.SubS32, code.U32(threads-1), thread)
		other := w.New(code.B32)
		w.Line("ld.shared.b32 %v, [%v]", other, shared(at, mirrored))
		dynamic := w.DynamicBase()
		w.If(w.Op2(code.EqS32, thread, code.U32(0)), func() { w.Line("st.shared.b32 [%v], 77", dynamic) })
		w.Barrier()
		of := w.New(code.B32)
		w.Line("ld.shared.b32 %v, [%v]", of, dynamic)
		for i, v := range []code.Value{w.Get(sum), rare, other, of} {
			store(w, v, element(w, b, each, i))
		}
	})
	for n := range uint64(threads) {
		rare := uint64(100)
		if n%2 == 1 {
			rare = n + 1
		}
		require.Equal(t, []uint64{7 + n*(n+1)/2, rare, threads - 1 - n, 77}, words[each*n:each*(n+1)], "thread %d", n)
	}
	assert.Equal(t, code.U32(1), code.Evaluator{}.Rare(code.Bool(true), code.U32(0), func() code.Value { return code.U32(1) }))
	assert.Equal(t, code.U32(0), code.Evaluator{}.Rare(code.Bool(false), code.U32(0), func() code.Value { return code.U32(1) }))
}

// Elements of each type are loaded and stored as they are, by as many instructions as they need.
func TestElements(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, of := range tensor.Types() {
		for _, count := range []int{1, 2, 4, 8, 16} {
			words := count * of.Size() / 8
			if words == 0 {
				words = 1
			}
			in := make([]uint64, words)
			for i := range in {
				in[i] = random.Uint64()
				switch of { // those whose bits may be no number
				case tensor.Float16, tensor.BFloat16:
					in[i] &= 0xbfffbfffbfffbfff // finite
				case tensor.Bool:
					in[i] &= 0x0101010101010101
				}
			}
			got := run(t, 1, false, in, words, func(w *code.Writer, a, b code.Value) {
				all := w.Load("global", of, a, count)
				assert.Len(t, all, count)
				w.Store(of, b, all...)
			})
			bytes := func(words []uint64) (all []byte) {
				for _, word := range words {
					all = binary.LittleEndian.AppendUint64(all, word)
				}
				return all[:count*of.Size()]
			}
			require.Equal(t, bytes(in), bytes(got), "%v, %d", of, count)
		}
	}
	for _, c := range []struct{ count, size, want int }{{1, 1, 1}, {8, 1, 4}, {8, 2, 4}, {3, 4, 3}, {8, 4, 4}, {8, 8, 2}, {4, 16, 1}} {
		assert.Equal(t, c.want, code.PieceLen(c.count, c.size), "%v", c)
	}
	got := run(t, 1, false, []uint64{0}, 3, func(w *code.Writer, _, b code.Value) {
		one := w.Op2(code.EqS32, w.Special("tid.x"), code.U32(0))
		w.Store(tensor.Bool, b, one, w.Op1(code.NotPred, one), code.Bool(true), one)
		w.Store(tensor.BFloat16, w.Op2(code.AddS64, b, code.U64(8)), code.F32(1), code.F32(float32(math.NaN())), code.F32(1+1.0/128), code.F32(1+3.0/512))
		w.Store(tensor.Float16, w.Op2(code.AddS64, b, code.U64(16)), code.F32(1), code.F32(-2))
	})
	assert.Equal(t, []uint64{0x01010001, 0x3f80 | 0x7fff<<16 | 0x3f81<<32 | 0x3f81<<48, 0x3c00 | 0xc000<<16}, got)
}
