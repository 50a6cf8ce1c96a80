//go:build !gpu

package ops_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/vramtest"
)

// sized is a tensor of a call.
type sized struct {
	of    tensor.Type
	shape []int
}

func floats(shape ...int) sized            { return sized{tensor.Float32, shape} }
func shorts(shape ...int) sized            { return sized{tensor.Float16, shape} }
func integers(shape ...int) sized          { return sized{tensor.Int32, shape} }
func identical(n int, s sized) (a []sized) { return slices.Repeat([]sized{s}, n) }

// several is an operation with several tensors of which the first ones are written.
type several struct {
	written int
	all     []sized
	ordered bool // it may write an output over an operand that it does not read any more
	run     func(r *rig, t []*tensor.Tensor) error

	prepares bool // by a launch before the one that is refused
}

func operationsOfMany() map[string]several {
	product := func(change func(how *ops.Product, t []*tensor.Tensor)) func(r *rig, t []*tensor.Tensor) error {
		return func(r *rig, t []*tensor.Tensor) error {
			how := own
			change(&how, t)
			_, err := r.o.MatmulInto(r.s, t[0], t[len(t)-2], t[len(t)-1], how)
			return err
		}
	}
	q, lengths := shorts(1, 1, 4, 64), ops.AttentionConfig{}
	return map[string]several{
		"product with a bias": {
			written: 1, all: []sized{floats(4, 5), floats(5), floats(4, 3), floats(3, 5)},
			run: product(func(how *ops.Product, t []*tensor.Tensor) { how.Bias = t[1] }),
		},
		"product that writes another operand": {
			written: 2, all: []sized{floats(4, 5), floats(4, 5), floats(5), floats(4, 3), floats(3, 5)},
			run: product(func(how *ops.Product, t []*tensor.Tensor) { how.Aux, how.Bias, how.Epilogue = t[1], t[2], gemm.GELUAux }),
		},
		"gradients of a product": {
			written: 2, all: []sized{floats(4, 3), floats(3, 5), floats(4, 5), floats(4, 3), floats(3, 5)}, ordered: true,
			run: func(r *rig, t []*tensor.Tensor) error {
				_, err := r.o.MatmulBackwardInto(r.s, t[0], t[1], t[2], t[3], t[4], own)
				return err
			},
		},
		"norm of gradients": {
			written: 3, all: []sized{floats(), floats(), {tensor.Bool, nil}, floats(3), floats(5), floats(2, 2)},
			run: func(r *rig, t []*tensor.Tensor) error { return r.o.GradNormInto(r.s, t[0], t[1], t[2], t[3:], 1) },
		},
		"AdamW": {
			written: 3, all: append(identical(4, floats(3)), floats(), floats()),
			run: func(r *rig, t []*tensor.Tensor) error {
				return r.o.AdamW(r.s, ops.AdamWState{Param: t[0], First: t[1], Second: t[2], Grad: t[3]}, t[4], t[5], ops.AdamWConfig{})
			},
		},
		"AdamW of all": {
			written: 7, all: append(append(identical(4, floats(3)), identical(3, floats(2))...), floats(3), floats(2), floats(), floats(), floats(), sized{tensor.Bool, nil}),
			run: func(r *rig, t []*tensor.Tensor) error {
				return r.o.AdamWAll(r.s, []ops.AdamWState{
					{Param: t[0], First: t[1], Second: t[2], Copy: t[3], Grad: t[7]}, {Param: t[4], First: t[5], Second: t[6], Grad: t[8]},
				}, ops.AdamWStep{RateAt: t[9], StepAt: t[10], ScaleAt: t[11], SkipAt: t[12]}, ops.AdamWConfig{})
			},
		},
		"concat": {
			written: 1, all: append([]sized{floats(6, 2)}, identical(3, floats(2, 2))...),
			run: func(r *rig, t []*tensor.Tensor) error { return r.o.ConcatInto(r.s, t[0], 0, t[1:]...) },
		},
		"gather": {
			written: 1, all: []sized{floats(2, 3), floats(4, 3), integers(2, 3)},
			run: func(r *rig, t []*tensor.Tensor) error { return r.o.GatherInto(r.s, t[0], t[1], t[2], 0) },
		},
		"embedding": {
			written: 1, all: []sized{floats(2, 3), floats(4, 3), integers(2)},
			run: func(r *rig, t []*tensor.Tensor) error { return r.o.EmbeddingInto(r.s, t[0], t[1], t[2]) },
		},
		"scatter": {
			written: 1, all: []sized{floats(4, 3), floats(2, 3), integers(2, 3)},
			run: func(r *rig, t []*tensor.Tensor) error { return r.o.ScatterAddInto(r.s, t[0], t[2], t[1], 0) },
		},
		"gradient of a table": {
			written: 1, all: []sized{floats(4, 3), floats(2, 3), integers(2)},
			run: func(r *rig, t []*tensor.Tensor) error { return r.o.EmbeddingBackwardInto(r.s, t[0], t[1], t[2]) },
		},
		"arange": {
			written: 1, all: []sized{floats()},
			run: func(r *rig, t []*tensor.Tensor) error { return r.o.ArangeInto(r.s, t[0], 0, 1) },
		},
		"uniform": {
			written: 1, all: []sized{floats(4, 3), {tensor.Int64, nil}},
			run: func(r *rig, t []*tensor.Tensor) error {
				return r.o.UniformInto(r.s, t[0], ops.Random{Ahead: t[1]}, 0, 1)
			},
		},
		"normal": {
			written: 1, all: []sized{floats(4, 3), {tensor.Int64, nil}},
			run: func(r *rig, t []*tensor.Tensor) error {
				return r.o.NormalInto(r.s, t[0], ops.Random{Ahead: t[1]}, 0, 1)
			},
		},
		"attention": {
			written: 2, all: append([]sized{q, floats(1, 1, 4)}, append(identical(3, q), integers(1))...),
			run: func(r *rig, t []*tensor.Tensor) error {
				how := lengths
				how.KeyLengths = t[5]
				return r.o.AttentionInto(r.s, t[0], t[1], t[2], t[3], t[4], how)
			},
		},
		"attention of sequences": {
			written: 2, all: []sized{shorts(1, 4, 64), floats(1, 4), shorts(1, 4, 64), shorts(1, 4, 64), shorts(1, 4, 64), integers(2), integers(2)},
			run: func(r *rig, t []*tensor.Tensor) error {
				return r.o.AttentionInto(r.s, t[0], t[1], t[2], t[3], t[4], ops.AttentionConfig{QueryOffsets: t[5], KeyOffsets: t[6]})
			},
		},
		"attention of pages": {
			written: 2, all: append([]sized{q, floats(1, 1, 4)}, append(identical(3, q), integers(1), integers(1, 1))...),
			run: func(r *rig, t []*tensor.Tensor) error {
				return r.o.AttentionInto(r.s, t[0], t[1], t[2], t[3], t[4], ops.AttentionConfig{KeyLengths: t[5], Table: t[6]})
			},
		},
		"gradients of attention": {
			written: 3, all: append(identical(8, q), floats(1, 1, 4)),
			run: func(r *rig, t []*tensor.Tensor) error {
				return r.o.AttentionBackwardInto(r.s, t[0], t[1], t[2], t[3], t[4], t[8], t[5], t[6], t[7], lengths)
			},
		},
		"cross entropy gradient": {
			written: 3, all: []sized{floats(), floats(4), floats(4, 3), integers(4), floats()},
			run: func(r *rig, t []*tensor.Tensor) error {
				return r.o.CrossEntropyGradientInto(r.s, t[0], t[1], t[2], t[3], ops.LossGradient{ScaleAt: t[4]})
			},
		},
		"gradients of a layer norm": {
			written: 3, all: []sized{floats(4, 8), floats(8), floats(8), floats(4, 8), floats(4, 8), floats(8)}, ordered: true,
			run: func(r *rig, t []*tensor.Tensor) error {
				return r.o.LayerNormBackwardInto(r.s, t[0], t[1], t[2], t[3], t[4], t[5], 1, epsilon)
			},
		},
		"gradients of a residual": {
			written: 3, all: []sized{floats(4, 8), floats(8), floats(8), floats(4, 8), floats(4, 8), floats(4, 8), floats(8)}, ordered: true,
			run: func(r *rig, t []*tensor.Tensor) error {
				return r.o.LayerNormResidualBackwardInto(r.s, t[0], t[1], t[2], t[3], t[4], t[5], t[6], 1, epsilon)
			},
		},
		"residual": {
			written: 2, all: []sized{floats(4, 8), floats(4, 8), floats(4, 8), floats(4, 8), floats(8), floats(8)}, ordered: true,
			run: func(r *rig, t []*tensor.Tensor) error {
				return r.o.LayerNormResidualInto(r.s, t[0], t[1], t[2], t[3], t[4], t[5], 1, epsilon)
			},
		},
		"gradients of an RMS norm": {
			written: 2, all: []sized{floats(4, 8), floats(8), floats(4, 8), floats(4, 8), floats(8)}, ordered: true,
			run: func(r *rig, t []*tensor.Tensor) error {
				return r.o.RMSNormBackwardInto(r.s, t[0], t[1], t[2], t[3], t[4], 1, epsilon)
			},
		},
		"gradient of a mean": {
			written: 1, all: []sized{floats(4, 3), floats(3)},
			run: func(r *rig, t []*tensor.Tensor) error { return r.o.MeanBackwardInto(r.s, t[0], t[1], 0) },
		},
		"gradient of a maximum": {
			written: 1, all: []sized{floats(4, 3), floats(3), floats(4, 3)},
			run: func(r *rig, t []*tensor.Tensor) error { return r.o.MaxBackwardInto(r.s, t[0], t[1], t[2], 0) },
		},
		"losses": {
			prepares: true, written: 1, all: []sized{floats(4), floats(4, 3), {tensor.Int64, []int{4}}},
			run: func(r *rig, t []*tensor.Tensor) error { return r.o.CrossEntropyInto(r.s, t[0], t[1], t[2]) },
		},
		"gradients of a quotient": {
			written: 2, all: identical(5, floats(4, 3)), ordered: true,
			run: func(r *rig, t []*tensor.Tensor) error { return r.o.DivBackwardInto(r.s, t[0], t[1], t[2], t[3], t[4]) },
		},
	}
}

// numbered makes the tensors of a call, with numbers: integers are 0.
func (r *rig) numbered(all []sized) (made []*tensor.Tensor) {
	r.Helper()
	for _, s := range all {
		t, err := tensor.Zeros(r.s, s.of, s.shape...)
		require.NoError(r, err)
		if s.of.Kind() == tensor.Floating {
			require.NoError(r, r.o.UniformInto(r.s, t, ops.Random{Seed: uint64(len(made))}, 0.5, 1.5))
		}
		made = append(made, t)
	}
	return made
}

// over returns views of one buffer for two tensors: the second one begins with the last byte of the first one, or before. A step
// above 1 leaves gaps between the elements of each row.
func (r *rig) over(a, b sized, stepA, stepB int) (x, y *tensor.Tensor, free func() error) {
	r.Helper()
	la, lb := r.stepped(a.shape, stepA, 0), r.stepped(b.shape, stepB, 0)
	_, end := la.Bounds()
	bytes := end * a.of.Size()
	at := (bytes - 1) / b.of.Size()
	if a.of == b.of && la.Len() == lb.Len() && la.Len() == 1 {
		at = 0
	}
	moved := r.stepped(b.shape, stepB, at)
	_, end = moved.Bounds()
	buffer, err := r.c.Alloc(int64(max(bytes, end*b.of.Size())))
	require.NoError(r, err)
	require.NoError(r, r.c.Fill8(cuda.Whole(buffer), 0))
	x, err = tensor.Over(r.s, buffer, a.of, la)
	require.NoError(r, err)
	y, err = tensor.Over(r.s, buffer, b.of, moved)
	require.NoError(r, err)
	return x, y, buffer.Free
}

// stepped returns a layout from a place on, with so much from one element to the next.
func (r *rig) stepped(shape []int, step, from int) layout.Layout {
	r.Helper()
	l, err := layout.Of(shape...)
	require.NoError(r, err)
	strides := l.Strides()
	for d := range strides {
		strides[d] *= step
	}
	l, err = layout.New(shape, strides, from)
	require.NoError(r, err)
	return l
}

// An output that shares one element with an operand, or with another output, is refused before anything is submitted, also one that is itself
// another operand; so is one that repeats elements. Where an operation orders its launches, it may have the result of other memory.
func TestEveryOutputIsApart(t *testing.T) {
	var faults *fault.Driver
	dev := vramtest.Open(t, vramtest.Kernels(), vramtest.Wrap(func(inner cudadrv.Driver) cudadrv.Driver {
		faults = fault.Wrap(inner)
		return faults
	}))
	r := newRigWith(t, dev.Device)
	submits := func(f func() error) (calls []string, err error) {
		faults.SetBefore(func(function string) {
			if strings.HasPrefix(function, "cuLaunch") || strings.HasPrefix(function, "cuMemset") || strings.HasPrefix(function, "cuMemcpy") {
				calls = append(calls, function)
			}
		})
		defer faults.SetBefore(nil)
		return calls, f()
	}
	for name, o := range operationsOfMany() {
		right := r.numbered(o.all)
		require.NoError(t, o.run(r, right), name)
		for i := range o.written {
			for j := range o.all {
				if i == j || j < o.written && j < i {
					continue
				}
				for k := range o.all {
					if k != i && (!o.ordered || k < o.written || k == j || !reflect.DeepEqual(o.all[i], o.all[k])) {
						continue
					}
					for _, steps := range [][2]int{{1, 1}, {2, 1}, {1, 2}} { // one with gaps may be copied before
						if k != i && steps != [2]int{1, 1} {
							continue
						}
						call := slices.Clone(right)
						x, y, free := r.over(o.all[i], o.all[j], steps[0], steps[1])
						call[i], call[j], call[k] = x, y, x // where k is an operand, the output is that operand, too
						gaps := steps[0] > 1 && !x.Layout().Contiguous() || steps[1] > 1 && !y.Layout().Contiguous()
						r.apart(o, call, gaps, submits, fmt.Sprintf("%s: output %d, as tensor %d, and tensor %d, %v", name, i, k, j, steps))
						require.NoError(t, free())
					}
				}
			}
			if s := o.all[i]; count(s.shape) > 1 {
				one, err := tensor.Zeros(r.s, s.of, slices.Repeat([]int{1}, len(s.shape))...)
				require.NoError(t, err)
				require.NoError(t, one.Allocate())
				repeated, err := one.Broadcast(s.shape...)
				require.NoError(t, err)
				call := slices.Clone(right)
				call[i] = repeated
				calls, err := submits(func() error { return o.run(r, call) })
				require.True(t, errors.Is(err, kernel.ErrRepeats) || errors.Is(err, ops.ErrShape), "%s: output %d: %v", name, i, err)
				if !o.prepares {
					require.Empty(t, calls, "%s: output %d", name, i)
				}
			}
		}
	}
}

// apart requires that a call is refused and submits nothing, or that it has the result that other memory has. An operation need not
// take tensors with gaps.
func (r *rig) apart(o several, call []*tensor.Tensor, gaps bool, submits func(func() error) ([]string, error), what string) {
	r.Helper()
	alone := make([]*tensor.Tensor, len(call))
	for i, t := range call {
		copied, err := r.o.Copy(r.s, t)
		require.NoError(r, err)
		alone[i] = copied
	}
	calls, err := submits(func() error { return o.run(r, call) })
	if err == nil && o.ordered {
		require.NoError(r, o.run(r, alone), what)
		for i := range o.written {
			r.near(r.read(alone[i]).values, call[i], 1e-5, 1, what, i)
		}
		return
	}
	if !gaps || !errors.Is(err, ops.ErrShape) {
		require.ErrorIs(r, err, kernel.ErrOverlap, what)
	}
	if !o.prepares {
		require.Empty(r, calls, what)
	}
}

// An operation returns the error of each tensor whose memory cannot be had, or was freed.
func TestTensorsWithoutMemory(t *testing.T) {
	faults := fault.Wrap(launching(t))
	r := newRigOn(t, faults)
	for name, o := range operationsOfMany() {
		right := r.numbered(o.all)
		require.NoError(t, o.run(r, right), name)
		for j, s := range o.all {
			call := slices.Clone(right)
			whole, err := tensor.New(r.s, s.of, 1<<24) // more than the stream has free
			require.NoError(t, err)
			call[j], err = r.narrowed(whole, count(s.shape)).Reshape(s.shape...)
			require.NoError(t, err)
			faults.SetCapacity(0)
			err = o.run(r, call)
			faults.SetCapacity(fault.Unlimited)
			require.ErrorIs(t, err, vram.ErrOutOfMemory, "%s: tensor %d", name, j)
			require.NoError(t, faults.Add(fault.Rule{Func: "cuMemCreate", First: 1, Result: cudadrv.Unknown}))
			if err = o.run(r, call); err != nil || !o.ordered && !strings.Contains(name, "attention") { // these ask a second time
				require.ErrorIs(t, err, cudadrv.Unknown, "%s: tensor %d", name, j)
			}
			faults.Clear()
			call[j] = r.numbered([]sized{s})[0]
			require.NoError(t, call[j].Allocate())
			require.NoError(t, call[j].Free())
			require.ErrorIs(t, o.run(r, call), tensor.ErrFreed, "%s: tensor %d", name, j)
		}
	}
}

// gapped makes the tensors of a call, with memory: those that may have gaps, every other element of which is copied.
func (r *rig) gapped(name string, o several) []*tensor.Tensor {
	r.Helper()
	call := r.numbered(o.all)
	for i, s := range o.all {
		if last := len(s.shape) - 1; last > 0 && s.of.Kind() == tensor.Floating && name != "product that writes another operand" {
			s.shape = slices.Clone(s.shape)
			s.shape[last] *= 2
			x, err := r.numbered([]sized{s})[0].Slice(-1, 0, s.shape[last], 2)
			require.NoError(r, err)
			call[i] = x
		}
		require.NoError(r, call[i].Allocate())
	}
	return call
}

// An operation that finds no temporary memory says so, and has no other error.
func TestNoTemporaryMemory(t *testing.T) {
	faults := fault.Wrap(launching(t))
	r := newRigOn(t, faults)
	refused := 0
	for name, o := range operationsOfMany() {
		call := r.gapped(name, o)
		require.NoError(t, o.run(r, call), name)
		faults.SetCapacity(0)
		var taken []cuda.Buffer // all that the stream has free
		for bytes := int64(1 << 30); bytes > 0; bytes /= 2 {
			b, err := r.c.Alloc(bytes)
			for ; err == nil; b, err = r.c.Alloc(bytes) {
				taken = append(taken, b)
			}
			require.ErrorIs(t, err, vram.ErrOutOfMemory)
		}
		if err := o.run(r, call); err != nil {
			refused++
			require.ErrorIs(t, err, vram.ErrOutOfMemory, name)
			require.NotErrorIs(t, err, tensor.ErrNoTensor, name)
		}
		faults.SetCapacity(fault.Unlimited)
		for _, b := range taken {
			require.NoError(t, b.Free())
		}
		require.NoError(t, o.run(r, call), name)
	}
	require.Greater(t, refused, 5)
}

// Temporary memory of operations has the tag of their scope, as their results have.
func TestTemporaryMemoryHasTheTag(t *testing.T) {
	var tags []string
	dev := vramtest.Open(t, vramtest.Kernels(), vramtest.Config(vram.Config{
		Observer: vram.Observer{Allocated: func(e vram.BufferEvent) { tags = append(tags, e.Tag) }},
	}))
	r := newRigWith(t, dev.Device)
	all := operationsOfMany()
	for name, o := range all {
		call := r.gapped(name, o)
		require.NoError(t, o.run(r, call), name)
		tags = nil
		r.s.SetTag("step")
		require.NoError(t, o.run(r, call), name)
		r.s.SetTag("")
		for _, tag := range tags {
			require.Equal(t, "step", tag, "%s: %d buffers", name, len(tags))
		}
	}
	repeated := r.numbered([]sized{floats(2, 3, 4, 5), floats(5, 6), floats(2, 3, 4, 6), floats(4, 3), {tensor.Int64, []int{4}}})
	for name, run := range map[string]func(s *tensor.Scope) error{
		"gradients of a product": func(s *tensor.Scope) error {
			_, _, _, err := r.o.MatmulBackward(s, repeated[2], repeated[0], repeated[1], own)
			return err
		},
		"a mean without a class": func(s *tensor.Scope) error {
			_, _, err := r.o.CrossEntropyGradient(s, repeated[3], repeated[4], ops.LossGradient{Mean: true}, ops.Ignored(1))
			return err
		},
		"losses": func(s *tensor.Scope) error { _, err := r.o.CrossEntropy(s, repeated[3], repeated[4]); return err },
	} {
		require.NoError(t, run(r.s), name)
		tags = nil
		require.NoError(t, tensor.Scoped(r.s, func(s *tensor.Scope) error {
			s.SetTag("step")
			return run(s)
		}), name)
		require.NotEmpty(t, tags)
		for _, tag := range tags {
			require.Equal(t, "step", tag, "%s: %d buffers", name, len(tags))
		}
	}
}

// Gradients of norms take other types and layouts than the gradients of one pass over the rows, with the same result.
func TestGradientsOfNormsOfOtherKinds(t *testing.T) {
	r := newRig(t)
	const rows, columns = 6, 16
	values := func(shape ...int) array { return newArray(shape, r.random.NormFloat64) }
	grad, sum, dsum, weight := values(rows, columns), values(rows, columns), values(rows, columns), values(columns)
	for i := range dsum.values {
		dsum.values[i] = float64(r.random.IntN(9)) / 8 // numbers of any type
	}
	of := func(of tensor.Type, a array) *tensor.Tensor { return r.contiguousOf(of, a) }
	single := tensor.Float32
	dx, dweight, dbias, err := r.o.LayerNormResidualBackward(r.s, of(single, grad), of(single, dsum), of(single, sum), of(single, weight), 1, epsilon)
	require.NoError(t, err)
	misaligned := r.viewAs(viewMisaligned, single, []int{columns})
	r.write(misaligned, weight.values)
	for name, change := range map[string]func(call map[string]*tensor.Tensor){
		"all alike":                       func(map[string]*tensor.Tensor) {},
		"a bias of float64":               func(call map[string]*tensor.Tensor) { call["dbias"] = r.made(tensor.Float64, columns) },
		"a bias with gaps":                func(call map[string]*tensor.Tensor) { call["dbias"] = r.viewAs(viewStep, single, []int{columns}) },
		"gradients of weights of float64": func(call map[string]*tensor.Tensor) { call["dweight"] = r.made(tensor.Float64, columns) },
		"a weight that is not aligned":    func(call map[string]*tensor.Tensor) { call["weight"] = misaligned },
		"a weight of float64":             func(call map[string]*tensor.Tensor) { call["weight"] = of(tensor.Float64, weight) },
		"another gradient of float16":     func(call map[string]*tensor.Tensor) { call["dsum"] = of(tensor.Float16, dsum) },
		"the gradient over the bias": func(call map[string]*tensor.Tensor) {
			part, err := call["dsum"].Narrow(0, 0, 1) // read with the rows: written after them
			require.NoError(t, err)
			call["dbias"], err = part.Reshape(columns)
			require.NoError(t, err)
		},
	} {
		call := map[string]*tensor.Tensor{
			"dx": r.made(single, rows, columns), "dweight": r.made(single, columns), "dbias": r.made(single, columns),
			"grad": of(single, grad), "dsum": of(single, dsum), "sum": of(single, sum), "weight": of(single, weight),
		}
		change(call)
		require.NoError(t, r.o.LayerNormResidualBackwardInto(r.s,
			call["dx"], call["dweight"], call["dbias"], call["grad"], call["dsum"], call["sum"], call["weight"], 1, epsilon), name)
		for result, want := range map[string]*tensor.Tensor{"dx": dx, "dweight": dweight, "dbias": dbias} {
			r.near(r.read(want).values, call[result], 1e-4, 1, name, result)
		}
	}
}
