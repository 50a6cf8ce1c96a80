package ops_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
)

// programs plays random programs, one for each seed. VRAM_PROGRAMS is for how long, such as 10m, from the seed VRAM_SEED on.
func programs(t *testing.T, play func(d *drawn)) {
	t.Helper()
	span, _ := time.ParseDuration(os.Getenv("VRAM_PROGRAMS"))
	first, _ := strconv.ParseUint(os.Getenv("VRAM_SEED"), 10, 64)
	least := uint64(12)
	if testing.Short() {
		least = 4
	}
	begun, seed := time.Now(), first
	for ; seed < first+least || time.Since(begun) < span; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := newRig(t)
			r.random = rand.New(rand.NewPCG(seed, 0))
			play(&drawn{rig: r})
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d programs, the last of seed %d", seed-first, seed-1)
}

// drawn draws calls of operations.
type drawn struct {
	*rig

	tensor func() *tensor.Tensor // an operand or output
	broken bool                  // whether contexts, types and numbers may be wrong
}

func oneOf[T any](d *drawn, all ...T) T { return all[d.random.IntN(len(all))] }

// method is a random one with a tensor or more, but for those that name places: these end with a trap.
func (d *drawn) method(wants func(name string) bool) (string, reflect.Value) {
	all := reflect.ValueOf(d.o)
	for {
		i := d.random.IntN(all.NumMethod())
		name := all.Type().Method(i).Name
		places := strings.HasPrefix(name, "Gather") || strings.HasPrefix(name, "Scatter") || strings.HasPrefix(name, "Embedding")
		if of := all.Method(i).Type(); !places && of.NumIn() > 0 && of.In(0) == reflect.TypeFor[tensor.Context]() && wants(name) {
			return name, all.Method(i)
		}
	}
}

// arguments are some for a method.
func (d *drawn) arguments(method reflect.Value) []reflect.Value {
	var all []reflect.Value
	for in := range method.Type().Ins() {
		all = append(all, d.value(in))
	}
	return all
}

// value is one of a type.
func (d *drawn) value(of reflect.Type) reflect.Value {
	switch of {
	case reflect.TypeFor[*tensor.Tensor]():
		return reflect.ValueOf(d.tensor())
	case reflect.TypeFor[tensor.Context]():
		if d.broken && d.random.IntN(30) == 0 {
			return oneOf(d, reflect.Zero(of), reflect.ValueOf((*tensor.Scope)(nil)), reflect.ValueOf((*cuda.Context)(nil)), reflect.ValueOf(&tensor.Scope{}))
		}
		return reflect.ValueOf(d.s)
	case reflect.TypeFor[ops.LossOption]():
		return reflect.ValueOf(ops.Ignored(1))
	case reflect.TypeFor[ops.Product]():
		return reflect.ValueOf(own)
	case reflect.TypeFor[tensor.Type]():
		return reflect.ValueOf(oneOf(d, append(tensor.Types(), 0, 99)...))
	}
	return d.plain(of)
}

// plain is a value of a type that is none of package ops.
func (d *drawn) plain(of reflect.Type) reflect.Value {
	switch of.Kind() {
	case reflect.Int:
		if d.broken {
			return reflect.ValueOf(oneOf(d, 0, 1, -1, 2, -2, 3, -9, 100, math.MaxInt, math.MinInt))
		}
		return reflect.ValueOf(oneOf(d, 0, 1, -1, 2, -2))
	case reflect.Uint64:
		return reflect.ValueOf(d.random.Uint64())
	case reflect.Bool:
		return reflect.ValueOf(d.random.IntN(2) == 0)
	case reflect.Float64:
		if d.broken {
			return reflect.ValueOf(oneOf(d, 0, 1, -1, 0.5, 1e-5, math.NaN(), math.Inf(1), math.Inf(-1), 1e300, 256, -200))
		}
		return reflect.ValueOf(oneOf(d, 0.5, 0.9, 1e-5, 1, 2))
	case reflect.Slice:
		all := reflect.MakeSlice(of, 0, 3)
		for range d.random.IntN(4) {
			all = reflect.Append(all, d.value(of.Elem()))
		}
		return all
	}
	all := reflect.New(of).Elem() // a struct
	for i := range all.NumField() {
		if name := of.Field(i).Name; !strings.HasSuffix(name, "At") && name != "Ahead" { // of one element
			all.Field(i).Set(d.value(all.Field(i).Type()))
		}
	}
	return all
}

// invoke has the results of a call but for the error.
func invoke(method reflect.Value, arguments []reflect.Value) (results []reflect.Value, err error) {
	if method.Type().IsVariadic() {
		results = method.CallSlice(arguments)
	} else {
		results = method.Call(arguments)
	}
	last := len(results) - 1
	err, _ = results[last].Interface().(error)
	return results[:last], err
}

// text is a call.
func text(name string, arguments []reflect.Value) string {
	var all []string
	for _, a := range arguments {
		all = append(all, fmt.Sprint(a.Interface()))
	}
	return name + "(" + strings.Join(all, ", ") + ")"
}

// Operations of any arguments have a result, or are an *ops.Error and make no tensor. None panics, and none spoils the context.
func TestAnyArguments(t *testing.T) {
	programs(t, func(d *drawn) {
		d.broken = true
		shape := d.shape(d.random.IntN(4))
		if count(shape) > 300 {
			shape = shape[:0]
		}
		freed, err := tensor.From(d.c, []float32{1})
		require.NoError(d, err)
		require.NoError(d, freed.Free())
		pool := []*tensor.Tensor{nil, {}, freed}
		for range 12 {
			x := d.view(oneOf(d, append(tensor.Types(), tensor.Float32, tensor.Float32, tensor.Int64)...), oneOf(d, shape, shape, d.part(shape)))
			require.NoError(d, d.o.FillInto(d.s, x, 1))
			pool = append(pool, x)
		}
		d.tensor = func() *tensor.Tensor { return oneOf(d, pool...) }
		for range 60 {
			name, method := d.method(func(name string) bool { return name != "Arange" }) // of any length
			arguments := d.arguments(method)
			results, err := invoke(method, arguments)
			if err != nil {
				var typed *ops.Error
				require.ErrorAs(d, err, &typed, text(name, arguments))
				for _, made := range results {
					if made.Kind() == reflect.Pointer {
						require.True(d, made.IsNil(), text(name, arguments))
					}
				}
			}
			require.NoError(d, d.c.Synchronize(d.Context()), text(name, arguments))
		}
	})
}

// shared is a tensor in the memory of others, and one with its elements in memory of its own.
type shared struct {
	among, alone *tensor.Tensor
	had          []float64
}

// partOf is a part of a tensor of one dimension, with some order of the dimensions and elements in between or none.
func (d *drawn) partOf(store *tensor.Tensor, shape []int) shared {
	d.Helper()
	n, step := count(shape), oneOf(d, 1, 1, 1, 2, -1)
	from := oneOf(d, 0, 0, 0, 1, d.random.IntN(8))
	to := from + n*step
	if step < 0 {
		from, to = from+n-1, from-1
	}
	x, err := store.Slice(0, from, to, step)
	require.NoError(d, err)
	if turned := slices.Clone(shape); d.random.IntN(3) == 0 {
		slices.Reverse(turned)
		x, err = x.Reshape(turned...)
		require.NoError(d, err)
		if len(shape) == 2 {
			x, err = x.Transpose(0, 1)
		}
	} else {
		x, err = x.Reshape(shape...)
	}
	require.NoError(d, err)
	had := d.read(x).values
	alone, err := tensor.New(d.s, tensor.Float32, shape...)
	require.NoError(d, err)
	d.write(alone, slices.Clone(had))
	return shared{x, alone, had}
}

// among is a value whose tensors are those in the memory of others.
func among(v reflect.Value, all []shared) reflect.Value {
	switch of := v.Type(); {
	case of == reflect.TypeFor[*tensor.Tensor]():
		for _, x := range all {
			if v.Interface() == any(x.alone) {
				return reflect.ValueOf(x.among)
			}
		}
	case of.Kind() == reflect.Slice:
		changed := reflect.MakeSlice(of, 0, v.Len())
		for i := range v.Len() {
			changed = reflect.Append(changed, among(v.Index(i), all))
		}
		return changed
	case of == reflect.TypeFor[ops.AdamWState]():
		changed := reflect.New(of).Elem()
		for i := range v.NumField() {
			changed.Field(i).Set(among(v.Field(i), all))
		}
		return changed
	}
	return v
}

// Every form that writes into tensors has, in memory that these share in any way, the result that it has in memory of their
// own, or is refused before it writes anything.
func TestSharedMemory(t *testing.T) {
	right, refused := 0, 0
	programs(t, func(d *drawn) {
		store, err := tensor.New(d.s, tensor.Float32, 64)
		require.NoError(d, err)
		into := intoOperations()
		for range 60 {
			d.write(store, newArray([]int{64}, func() float64 { return float64(d.random.IntN(64)) / 8 }).values)
			a := 1 + d.random.IntN(4)
			b := oneOf(d, a, a, 1+d.random.IntN(4))
			var all []shared
			d.tensor = func() *tensor.Tensor {
				all = append(all, d.partOf(store, oneOf(d, []int{a, b}, []int{a, b}, []int{a, b}, []int{b}, []int{a}, []int{a, 1}, []int{})))
				return all[len(all)-1].alone
			}
			name, method := d.method(func(name string) bool { return slices.Contains(into, name) })
			arguments := d.arguments(method)
			if _, err := invoke(method, arguments); err != nil {
				continue // of shapes that do not fit
			}
			had := d.read(store).values
			for i, a := range arguments {
				arguments[i] = among(a, all)
			}
			if _, err := invoke(method, arguments); err != nil {
				refused++
				require.True(d, errors.Is(err, kernel.ErrOverlap) || errors.Is(err, kernel.ErrRepeats), err)
				require.Equal(d, had, d.read(store).values, text(name, arguments))
				continue
			}
			right++
			for _, x := range all {
				if want := d.read(x.alone).values; !slices.Equal(want, x.had) { // an output
					d.near(want, x.among, 1e-5, 1, name, x.among.Layout())
				}
			}
		}
	})
	t.Logf("%d calls had the result of other memory, and %d were refused", right, refused)
}
