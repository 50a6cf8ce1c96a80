package kernel_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/half"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/sim/ptxrun"
)

// An error has the kernel, the side and the number of the tensor that is refused.
func TestErrorsNameTheTensor(t *testing.T) {
	r := newRig(t)
	x := expr.Input(0, tensor.Float32)
	k, err := r.kernels.Elementwise(x.Add(expr.Input(1, tensor.Float32)), x.Neg())
	require.NoError(t, err)
	const text = "add(float32[0], float32[1]), neg(float32[0])"
	assert.Equal(t, text, k.String())
	a, b, c, d := r.normal(1, 8), r.normal(2, 8), r.made(tensor.Float32, 8), r.made(tensor.Float32, 8)
	wide, err := r.made(tensor.Float32, 1).Broadcast(8)
	require.NoError(t, err)
	half := r.made(tensor.Float16, 8)
	reversed, err := a.Slice(0, 7, -1, -1)
	require.NoError(t, err)
	for _, one := range []struct {
		outputs, inputs []*tensor.Tensor
		want            string
	}{
		{outs(c, d), outs(nil, b), "input 0: "},
		{outs(c, d), outs(a, nil), "input 1: "},
		{outs(nil, d), outs(a, b), "output 0: "},
		{outs(c, nil), outs(a, b), "output 1: "},
		{outs(c, d), outs(a, half), "input 1: "},
		{outs(c, half), outs(a, b), "output 1: "},
		{outs(wide, d), outs(a, b), "output 0: "},
		{outs(c, wide), outs(a, b), "output 1: "},
		{outs(c, c), outs(a, b), "output 1: "},
		{outs(c, reversed), outs(a, b), "input 0: "},
		{outs(reversed, c), outs(b, a), "input 1: "},
	} {
		err := k.Run(r.c, one.outputs, one.inputs...)
		var refused *kernel.OperandError
		require.ErrorAs(t, err, &refused, one.want)
		assert.Truef(t, strings.HasPrefix(err.Error(), "kernel: "+text+": "+one.want), "want %s, got %v", one.want, err)
	}
	require.NoError(t, k.Run(r.c, outs(a, b), a, b), "in place")
	assert.EqualError(t, k.Run(r.c, outs(c), a, b), "kernel: "+text+" has 2 inputs and 2 outputs, not 2 and 1")
	assert.EqualError(t, k.Run(r.c, outs(c, d, c), a), "kernel: "+text+" has 2 inputs and 2 outputs, not 1 and 3")

	long := x
	for range 20 {
		long = long.Exp()
	}
	k, err = r.kernels.Elementwise(long)
	require.NoError(t, err)
	err = k.Run(r.c, outs(c), nil)
	require.ErrorContains(t, err, "kernel: vram_")
	assert.NotContains(t, err.Error(), "exp(exp(")
}

// A nil or zero kernel or compiler refuses each call.
func TestNoKernel(t *testing.T) {
	var none *kernel.Kernel
	var compiler *kernel.Compiler
	for name, err := range map[string]error{
		"Run":         none.Run(nil, nil),
		"Run, zero":   (&kernel.Kernel{}).Run(newRig(t).c, nil),
		"Prepare":     func() error { _, err := none.Prepare(nil).Await(t.Context()); return err }(),
		"PrepareFor":  func() error { _, err := none.PrepareFor().Await(t.Context()); return err }(),
		"Text":        func() error { _, err := none.Text(); return err }(),
		"Text, zero":  func() error { _, err := (&kernel.Kernel{}).Text(); return err }(),
		"Tune, zero":  func() error { _, err := (&kernel.Kernel{}).Tune(t.Context(), nil); return err }(),
		"Elementwise": func() error { _, err := compiler.Elementwise(); return err }(),
		"Reduction":   func() error { _, err := compiler.Reduction(plan.All); return err }(),
		"WarmUp":      compiler.WarmUp(t.Context(), nil, nil),
		"RawPTX":      func() error { _, err := compiler.RawPTX("", "").Await(t.Context()); return err }(),
		"RawCUDA":     func() error { _, err := compiler.RawCUDA(nil, "", "", "").Await(t.Context()); return err }(),
		"RawCUDA, no library": func() error {
			_, err := newRig(t).kernels.RawCUDA(nil, "", "", "").Await(t.Context())
			return err
		}(),
	} {
		require.ErrorIs(t, err, kernel.ErrNotOpen, name)
	}
	assert.Equal(t, "no kernel", none.String())
}

// Layouts of a wrong number are counted as inputs and outputs.
func TestLayoutsThatAreTooFew(t *testing.T) {
	r := newRig(t)
	k, err := r.kernels.Elementwise(fused())
	require.NoError(t, err)
	l := r.normal(1, 8).Layout()
	_, err = k.Text(l, l)
	require.ErrorContains(t, err, "has 2 inputs and 1 outputs, not 2 and 0")
	_, err = k.PrepareFor(l, l, l, l).Await(t.Context())
	require.ErrorContains(t, err, "has 2 inputs and 1 outputs, not 2 and 2")
	err = r.kernels.WarmUp(t.Context(), []kernel.Need{{Kernel: k, Layouts: nil}}, nil)
	var need *kernel.NeedError
	require.ErrorAs(t, err, &need)
	assert.Equal(t, "kernel: number 0 of the list: "+need.Err.Error(), need.Error())
}

// Enumerations have words, and the statistics have each count under its own name.
func TestWordsAndCounts(t *testing.T) {
	for i, want := range []string{"known", "compiled", "stored", "Origin(3)"} {
		text, err := kernel.Origin(i).MarshalText() //nolint:gosec // few
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
	for i, want := range []string{"never", "now", "aside"} {
		m := kernel.TuningMode(i) //nolint:gosec // few
		text, err := m.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
		var read kernel.TuningMode
		require.NoError(t, read.UnmarshalText(text))
		assert.Equal(t, m, read)
	}
	assert.Equal(t, "TuningMode(3)", kernel.TuningMode(3).String())
	read := kernel.TuneAside
	require.EqualError(t, read.UnmarshalText([]byte("soon")), `kernel: invalid TuningMode "soon": want never, now, aside`)
	assert.Equal(t, kernel.TuneAside, read, "the value stays")

	var s kernel.Stats
	v := reflect.ValueOf(&s).Elem()
	for i := range v.NumField() {
		v.Field(i).SetInt(int64(i+101) * 1e9)
	}
	text, err := json.Marshal(s)
	require.NoError(t, err)
	var fields map[string]float64
	require.NoError(t, json.Unmarshal(text, &fields))
	assert.Len(t, fields, v.NumField())
	for i := range v.NumField() {
		name, want := v.Type().Field(i).Tag.Get("json"), float64(i+101)*1e9
		if name == "-" {
			name, want = map[string]string{
				"CompileTime": "compile_time_seconds", "LoadTime": "load_time_seconds", "TuningTime": "tuning_time_seconds",
			}[v.Type().Field(i).Name], float64(i+101)
		}
		assert.InDelta(t, want, fields[name], 0, name)
		assert.Equal(t, 1, strings.Count(s.String(), fmt.Sprint(v.Field(i).Interface())), name)
	}
}

// A sum that several blocks compute leaves no scratch memory and no tickets where the driver refuses a call of it, and succeeds
// later; also in a capture.
func TestASplitSumThatFailsLeavesNothing(t *testing.T) {
	inner := sim.New(sim.Config{Bytes: true, Executor: ptxrun.New(ptxrun.Config{})})
	driver := fault.Wrap(inner)
	s := &split{rig: newRigOn(t, driver), driver: inner}
	var err error
	s.sum, err = s.kernels.Reduction(plan.All, expr.Input(0, tensor.Float32).Sum())
	require.NoError(t, err)
	s.in, s.total = s.normal(1, 40000), s.made(tensor.Float32)
	require.NoError(t, s.run())
	want, err := tensor.Item[float32](s.total)
	require.NoError(t, err)
	live := func() int64 { return s.dev.Stats().LiveBytes }
	before := live()
	capturedOn := func(c *cuda.Context) error {
		g, err := c.Capture(func() error { return s.sum.Run(c, outs(s.total), s.in) })
		if err != nil {
			return err
		}
		return g.Close()
	}
	refused := map[string]int{}
	for name, work := range map[string]struct {
		function string
		do       func() error
	}{
		"a run":               {"*", s.run},
		"a captured launch":   {"cuLaunchKernel", func() error { return capturedOn(s.c) }},
		"a fill in a capture": {"cuMemsetD8Async", func() error { return capturedOn(s.c) }},
		"a fill of the tickets of a first capture": {"cuMemsetD8Async", func() (err error) {
			c, err := cuda.NewContext(s.c.Stream())
			require.NoError(t, err)
			defer func() { err = errors.Join(err, c.Close()) }()
			return capturedOn(c)
		}},
	} {
		require.NoError(t, work.do())
		for call := uint64(1); ; call++ {
			injected := driver.Injected()
			require.NoError(t, driver.Add(fault.Rule{Func: work.function, First: call, Result: cudadrv.Unknown}))
			err := work.do()
			none := driver.Injected() == injected
			driver.Clear()
			if none {
				require.NoError(t, err)
				break
			}
			if err != nil {
				refused[name]++
				require.ErrorIs(t, err, cudadrv.Unknown, "%s, call %d", name, call)
				require.NotErrorIs(t, err, vram.ErrBadFree, "%s, call %d: there is nothing to free", name, call)
			}
			require.NoError(t, work.do(), "%s, call %d", name, call)
			require.NoError(t, s.c.Synchronize(t.Context()))
			require.Equal(t, before, live(), "%s, call %d", name, call)
		}
	}
	assert.Equal(t, map[string]int{"a run": 1, "a captured launch": 1, "a fill of the tickets of a first capture": 1}, refused)
	require.NoError(t, s.run())
	got, err := tensor.Item[float32](s.total)
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

// encoded are the bytes of numbers of a type.
func encoded(t *testing.T, of tensor.Type, all ...float64) []byte {
	t.Helper()
	var b []byte
	for _, x := range all {
		switch of {
		case tensor.Uint8, tensor.Int8:
			b = append(b, byte(int(x)))
		case tensor.Int16:
			b = binary.LittleEndian.AppendUint16(b, uint16(int(x))) //nolint:gosec // small
		case tensor.Int32:
			b = binary.LittleEndian.AppendUint32(b, uint32(int(x))) //nolint:gosec // small
		case tensor.Int64:
			b = binary.LittleEndian.AppendUint64(b, uint64(int(x))) //nolint:gosec // small
		case tensor.Float16:
			b = binary.LittleEndian.AppendUint16(b, uint16(half.NewFloat16(float32(x))))
		case tensor.BFloat16:
			b = binary.LittleEndian.AppendUint16(b, uint16(half.NewBFloat16(float32(x))))
		case tensor.Float32:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
		case tensor.Float64:
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
	}
	return b
}

// Results of each type may differ by its bound from the reference's, relative to the greatest, and by no more.
func TestBoundsOfEachType(t *testing.T) {
	for of, bound := range map[tensor.Type]float64{
		tensor.Uint8: 1, tensor.Int8: 1, tensor.Int16: 1, tensor.Int32: 1, tensor.Int64: 1,
		tensor.Float16: 0x1p-10, tensor.BFloat16: 0x1p-7, tensor.Float32: 0x1p-14, tensor.Float64: 0x1p-14,
	} {
		want := encoded(t, of, 1, 4, 3, 0)
		size := of.Size()
		same := func(exact bool, all ...float64) error {
			return kernel.Same(of, want, encoded(t, of, all...), size, 3*size, exact)
		}
		if bound < 1 {
			bound *= 4 // the greatest result
		}
		require.NoError(t, same(true, 1, 4, 3, 0), of)
		require.NoError(t, same(false, 1, 4, 3+bound, 0), of)
		require.NoError(t, same(false, 1, 4, 3-bound, 0), of)
		require.ErrorContains(t, same(false, 1, 4, 3+2*bound, 0), "output 0 differs at element 1 of its memory: ", of)
		require.ErrorContains(t, same(false, 1, 4-2*bound, 3, 0), "output 0 differs at element 0 of its memory: ", of)
		require.ErrorContains(t, same(true, 1, 4, 3+bound, 0), fmt.Sprintf(" of 0 to %d: ", 2*size), of)
		require.ErrorContains(t, same(false, 2, 4, 3, 0), "output 0 differs at byte -", of)
		require.ErrorContains(t, same(false, 1, 4, 3, 1), "output 0 differs at byte ", of)
	}
	for of := tensor.Uint8; of <= tensor.Float64; of++ { // each element is compared with its own
		want := encoded(t, of, 4, 4, 4, 4, 4)
		for n := range 5 {
			got := encoded(t, of, 4, 4, 4, 4, 4)
			copy(got[n*of.Size():], encoded(t, of, 7))
			require.ErrorContains(t, kernel.Same(of, want, got, 0, len(want), false), fmt.Sprintf("differs at element %d of", n), of)
		}
	}
	for _, large := range []float64{1 << 20, -1 << 20} { // of whole numbers, too, the bound is relative to the greatest
		want := encoded(t, tensor.Int32, large)
		require.NoError(t, kernel.Same(tensor.Int32, want, encoded(t, tensor.Int32, large+64), 0, 4, false))
		require.Error(t, kernel.Same(tensor.Int32, want, encoded(t, tensor.Int32, large+65), 0, 4, false))
	}
}
