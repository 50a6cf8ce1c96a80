package ops_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
)

// zeroArguments are arguments of a method after the first two: no tensors, and zeros.
func zeroArguments(m reflect.Method, first ...reflect.Value) []reflect.Value {
	args := first
	for i := len(first); i < m.Type.NumIn(); i++ {
		in := m.Type.In(i)
		if in == reflect.TypeFor[[]*tensor.Tensor]() {
			args = append(args, reflect.ValueOf([]*tensor.Tensor{nil}))
			continue
		}
		args = append(args, reflect.Zero(in))
	}
	return args
}

// callOf calls a method and returns its error, which is the last result.
func callOf(m reflect.Method, args []reflect.Value) error {
	var results []reflect.Value
	if m.Type.IsVariadic() {
		results = m.Func.CallSlice(args)
	} else {
		results = m.Func.Call(args)
	}
	err, _ := results[len(results)-1].Interface().(error)
	return err
}

// Every operation refuses tensors that are none, contexts that are none, and operations that were not made by New: with an error,
// without a panic, and with no launch.
func TestNothingIsNoOperand(t *testing.T) {
	r := newRigOn(t, launching(t))
	x := r.zeros(4, 4)
	tried, accepted, optional := 0, []string(nil), []string(nil)
	for m := range reflect.TypeFor[ops.Ops]().Methods() {
		if m.Type.NumIn() < 2 || m.Type.In(1) != reflect.TypeFor[tensor.Context]() {
			continue
		}
		o, s := reflect.ValueOf(r.o), reflect.ValueOf(&r.s).Elem()
		takes := slices.ContainsFunc(slices.Collect(m.Type.Ins()), func(in reflect.Type) bool {
			return in == reflect.TypeFor[*tensor.Tensor]() || in == reflect.TypeFor[[]*tensor.Tensor]()
		})
		tried++
		assert.NotPanics(t, func() {
			for way, args := range map[string][]reflect.Value{
				"tensors": zeroArguments(m, o, s), "operations": zeroArguments(m, reflect.ValueOf(ops.Ops{}), s),
				"context": zeroArguments(m, o, reflect.Zero(m.Type.In(1))),
			} {
				if callOf(m, args) == nil && (way != "tensors" || takes) {
					accepted = append(accepted, m.Name+" without "+way)
				}
			}
			// All tensors but one are there.
			for without := 2; without < m.Type.NumIn(); without++ {
				if m.Type.In(without) != reflect.TypeFor[*tensor.Tensor]() {
					continue
				}
				args := zeroArguments(m, o, s)
				for i := 2; i < len(args); i++ {
					if i != without && m.Type.In(i) == reflect.TypeFor[*tensor.Tensor]() {
						args[i] = reflect.ValueOf(x)
					}
				}
				if callOf(m, args) == nil {
					optional = append(optional, fmt.Sprintf("%s %d", m.Name, without))
				}
			}
		}, m.Name)
	}
	assert.Greater(t, tried, 100)
	slices.Sort(accepted)
	var wanted []string // where no gradient is wanted, nothing is needed
	for _, name := range []string{"AddBackwardInto", "DivBackwardInto", "MulBackwardInto", "SubBackwardInto", "WhereBackwardInto"} {
		wanted = append(wanted, name+" without context", name+" without operations", name+" without tensors")
	}
	assert.Equal(t, wanted, accepted)
	assert.Equal(t, []string{
		"AddBackwardInto 2", "AddBackwardInto 3", "DivBackwardInto 2", "DivBackwardInto 3", "MulBackwardInto 2", "MulBackwardInto 3",
		"SubBackwardInto 2", "SubBackwardInto 3", "WhereBackwardInto 2", "WhereBackwardInto 3",
	}, optional, "with the other tensors alike")
}

// An error of an operation names it, with or without Into, and each output and operand that Into was given.
func TestErrorsNameTheOperationAndItsTensors(t *testing.T) {
	r := newRigOn(t, launching(t))
	memory := r.zeros(2, 40)
	names := map[string]string{}
	for m := range reflect.TypeFor[ops.Ops]().Methods() {
		if m.Type.NumIn() < 2 || m.Type.In(1) != reflect.TypeFor[tensor.Context]() {
			continue
		}
		args := zeroArguments(m, reflect.ValueOf(r.o), reflect.ValueOf(&r.s).Elem())
		var given []*tensor.Tensor
		for i := 2; i < len(args); i++ {
			if m.Type.In(i) == reflect.TypeFor[*tensor.Tensor]() {
				x, err := memory.Narrow(1, 0, 3+len(given))
				require.NoError(t, err)
				given = append(given, x)
				args[i] = reflect.ValueOf(x)
			}
		}
		e, refused := errors.AsType[*ops.Error](callOf(m, args))
		if len(given) < 2 || !assert.True(t, refused, m.Name) {
			continue
		}
		name, into := strings.CutSuffix(m.Name, "Into")
		if before, known := names[name]; known {
			assert.Equal(t, before, e.Op, m.Name)
		}
		names[name] = e.Op
		for _, x := range given {
			if into {
				assert.Equal(t, 1, strings.Count(e.Error(), x.String()), "%s %v: %v", m.Name, x, e)
			}
		}
	}
	assert.Greater(t, len(names), 50)
}

// An operation whose result cannot be made names itself, as the form that writes into a tensor does, and no operand twice.
func TestErrorsOfScopesThatHaveEnded(t *testing.T) {
	r := newRigOn(t, launching(t))
	ended, err := tensor.NewScope(r.c)
	require.NoError(t, err)
	require.NoError(t, ended.Close())
	kinds := map[reflect.Type]any{reflect.TypeFor[tensor.Type](): tensor.Float32, reflect.TypeFor[[]int](): []int{4}, reflect.TypeFor[float64](): 1.0}
	names, reached := map[string]string{}, 0
	for m := range reflect.TypeFor[ops.Ops]().Methods() {
		if m.Type.NumIn() < 2 || m.Type.In(1) != reflect.TypeFor[tensor.Context]() {
			continue
		}
		var given []*tensor.Tensor
		made := func() *tensor.Tensor { // some are views, which their text tells
			x := r.zeros(4, 4)
			if len(given)%2 == 1 {
				x, err = x.Transpose(0, 1)
				require.NoError(t, err)
			}
			given = append(given, x)
			return x
		}
		args := zeroArguments(m, reflect.ValueOf(r.o), reflect.ValueOf(&ended).Elem())
		for i := 2; i < len(args); i++ {
			switch kind, known := kinds[m.Type.In(i)]; {
			case known:
				args[i] = reflect.ValueOf(kind)
			case m.Type.In(i) == reflect.TypeFor[*tensor.Tensor]():
				args[i] = reflect.ValueOf(made())
			case m.Type.In(i) == reflect.TypeFor[[]*tensor.Tensor]():
				args[i] = reflect.ValueOf([]*tensor.Tensor{made(), made()})
			}
		}
		err := callOf(m, args)
		e, refused := errors.AsType[*ops.Error](err)
		if !assert.True(t, refused, "%s: %v", m.Name, err) {
			continue
		}
		if errors.Is(err, tensor.ErrScopeEnded) {
			reached++
		}
		name := strings.TrimSuffix(m.Name, "Into")
		if before, known := names[name]; known {
			assert.Equal(t, before, e.Op, m.Name)
		}
		names[name] = e.Op
		if text := strings.Join(e.Operands, ", "); len(given) > 1 {
			views := strings.Count(text, "a view")
			assert.LessOrEqual(t, views, len(given)/2, "%s: %s", m.Name, text)
			assert.LessOrEqual(t, strings.Count(text, "float32[4 4]")-views, (len(given)+1)/2, "%s: %s", m.Name, text)
		}
	}
	assert.Greater(t, reached, 120)
}

// A step of AdamW that is refused for any reason names all tensors that it was given.
func TestErrorsOfAdamWNameItsTensors(t *testing.T) {
	r := newRig(t)
	made := func() ops.AdamWState {
		return ops.AdamWState{Param: r.zeros(2), Grad: r.zeros(2), First: r.zeros(2), Second: r.zeros(2)}
	}
	repeated, err := r.zeros(1).Broadcast(2)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		change func(s *ops.AdamWState)
		config ops.AdamWConfig
		want   error
	}{
		"a number":              {func(*ops.AdamWState) {}, ops.AdamWConfig{Beta1: 1}, ops.ErrNumber},
		"a shape":               {func(s *ops.AdamWState) { s.Grad = r.zeros(3) }, ops.AdamWConfig{}, ops.ErrShape},
		"a copy":                {func(s *ops.AdamWState) { s.Copy = r.zeros(2) }, ops.AdamWConfig{}, ops.ErrShape},
		"an overlap":            {func(s *ops.AdamWState) { s.Grad = s.Param }, ops.AdamWConfig{}, kernel.ErrOverlap},
		"moments":               {func(s *ops.AdamWState) { s.First = s.Second }, ops.AdamWConfig{}, kernel.ErrOverlap},
		"a moment that repeats": {func(s *ops.AdamWState) { s.First = repeated }, ops.AdamWConfig{}, kernel.ErrRepeats},
	} {
		s, rate, step := made(), r.zeros(1), r.zeros(1, 1)
		c.change(&s)
		err := r.o.AdamW(r.s, s, rate, step, c.config)
		require.ErrorIs(t, err, c.want, name)
		e, ok := errors.AsType[*ops.Error](err)
		require.True(t, ok, "%s: %v", name, err)
		want := []string{
			"parameter " + s.Param.String(), "gradient " + s.Grad.String(), "first moment " + s.First.String(), "second moment " + s.Second.String(),
			"rate " + rate.String(), "step " + step.String(),
		}
		if s.Copy != nil {
			want = slices.Insert(want, 4, "copy "+s.Copy.String())
		}
		assert.Equal(t, want, e.Operands, name)
	}
}
