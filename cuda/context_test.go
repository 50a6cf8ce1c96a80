package cuda_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
)

// Every method of a context that was closed refuses the call, but for those that only tell about it.
func TestAClosedContextIsRefused(t *testing.T) {
	r, open := newRig(t)
	closed, err := cuda.NewContext(open.Stream())
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	require.NoError(t, closed.Close())
	assert.Same(t, open.Stream(), closed.Stream())
	assert.Equal(t, open.Info(), closed.Info())
	assert.Equal(t, "closed "+open.String(), closed.String())

	x := r.alloc(open, 64)
	defer r.free(x)
	given := map[reflect.Type]any{
		reflect.TypeFor[context.Context](): t.Context(), reflect.TypeFor[*cuda.Context](): open, reflect.TypeFor[*cuda.Function](): r.empty,
		reflect.TypeFor[cuda.Buffer](): x, reflect.TypeFor[cuda.Range](): cuda.Part(x, 0, 64), reflect.TypeFor[[]byte](): make([]byte, 64),
		reflect.TypeFor[cuda.Geometry](): cuda.Geometry{Grid: cudadrv.Dim3{X: 1, Y: 1, Z: 1}, Block: cudadrv.Dim3{X: 1, Y: 1, Z: 1}},
	}
	told := map[string]bool{"Stream": true, "Info": true, "String": true, "Close": true, "Device": true, "NewQueue": true}
	of, count := reflect.ValueOf(closed), 0
	for i := range of.NumMethod() {
		name, method := of.Type().Method(i).Name, of.Method(i)
		if told[name] {
			continue
		}
		var args []reflect.Value
		for j := range method.Type().NumIn() {
			in := method.Type().In(j)
			if method.Type().IsVariadic() && j == method.Type().NumIn()-1 {
				break
			}
			value := reflect.Zero(in)
			if given[in] != nil {
				value = reflect.ValueOf(given[in])
			}
			if in.Kind() == reflect.Func {
				value = reflect.MakeFunc(in, func([]reflect.Value) []reflect.Value {
					t.Errorf("%s calls its function", name)
					results := make([]reflect.Value, in.NumOut())
					for k := range results {
						results[k] = reflect.Zero(in.Out(k))
					}
					return results
				})
			}
			args = append(args, value)
		}
		results := method.Call(args)
		require.NotEmpty(t, results, name)
		err, _ := results[len(results)-1].Interface().(error)
		require.ErrorIs(t, err, cuda.ErrNotOpen, name)
		count++
	}
	assert.Greater(t, count, 20)

	require.ErrorIs(t, cuda.CopyIn(closed, x, []byte{1}), cuda.ErrNotOpen)
	require.ErrorIs(t, cuda.CopyOut(closed, make([]byte, 1), x), cuda.ErrNotOpen)
	require.ErrorIs(t, open.Wait(closed), cuda.ErrNotOpen)
	g, err := open.Capture(func() error { return open.Fill8(cuda.Whole(x), 1) })
	require.NoError(t, err)
	require.ErrorIs(t, g.Launch(closed), cuda.ErrNotOpen)
	require.ErrorIs(t, g.Upload(closed), cuda.ErrNotOpen)
	require.NoError(t, g.Launch(open))
	r.sync(open)
	require.NoError(t, g.Close())
}
