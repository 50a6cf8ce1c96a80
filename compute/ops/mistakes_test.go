package ops_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

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
