package cuda_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/cpu"
)

// weigh multiplies each of n numbers by a constant of the module, and counts its threads in a variable.
const weigh = `.version 7.0
.target sm_70
.address_size 64
.visible .const .align 4 .f32 weights[2] = {0f40000000, 0f40400000};
.visible .global .align 4 .u32 threads = 10;
.visible .entry weigh(.param .u64 x, .param .u32 which) {
	.reg .b32 %r<3>; .reg .b64 %d<5>; .reg .f32 %f<3>;
	ld.param.u64 %d1, [x]; ld.param.u32 %r1, [which];
	mul.wide.u32 %d2, %r1, 4; mov.u64 %d3, weights; add.u64 %d3, %d3, %d2; ld.const.f32 %f1, [%d3];
	mov.u32 %r2, %tid.x; mul.wide.u32 %d2, %r2, 4; add.u64 %d1, %d1, %d2;
	ld.global.f32 %f2, [%d1]; mul.f32 %f2, %f2, %f1; st.global.f32 [%d1], %f2;
	mov.u64 %d4, threads; atom.global.add.u32 %r1, [%d4], 1;
	ret;
}`

// Constants and global variables have their initial values until they are set, in the order of the context's work.
func TestVariablesOfModules(t *testing.T) {
	c := computing(t)
	m, err := c.LoadModule([]byte(weigh))
	require.NoError(t, err)
	f, err := m.Function("weigh")
	require.NoError(t, err)
	weights, err := m.Variable("weights")
	require.NoError(t, err)
	threads, err := m.Variable("threads")
	require.NoError(t, err)
	assert.EqualValues(t, 8, weights.Bytes())
	assert.Equal(t, "weights", weights.Name())
	assert.Equal(t, "variable weights, 8 bytes", weights.String())

	x, err := cuda.From(c, []float32{1, 10, 100})
	require.NoError(t, err)
	run := func(which uint32) {
		t.Helper()
		require.NoError(t, c.Launch(f, cuda.Cover(3, 3), cuda.InOut(x), cuda.Value(which)))
	}
	run(1) // by 3
	require.NoError(t, cuda.Set(c, weights, []float32{5, 7}))
	run(0) // by 5
	require.NoError(t, cuda.Set(c, weights.Part(4, 4), []float32{0.5}))
	run(1)                                                    // by a half
	require.NoError(t, cuda.Set(c, weights, []float32{0, 0})) // after the launches
	got, err := cuda.Load[float32](c, cuda.Whole(x), 3)
	require.NoError(t, err)
	assert.Equal(t, []float32{7.5, 75, 750}, got)
	counted, err := cuda.Get[uint32](c, threads, 1)
	require.NoError(t, err)
	assert.Equal(t, []uint32{19}, counted)
	first, err := cuda.Get[float32](c, weights.Part(0, 8).Part(4, 4), 1)
	require.NoError(t, err)
	assert.Equal(t, []float32{0}, first)

	require.NoError(t, m.Unload())
	require.ErrorIs(t, cuda.Set(c, threads, []uint32{1}), cuda.ErrUnloaded)
	_, err = m.Variable("threads")
	require.ErrorIs(t, err, cuda.ErrUnloaded)
	require.NoError(t, errors.Join(x.Free(), c.Close()))
}

// Mistakes with variables are refused, and change nothing.
func TestVariablesThatCannotBeSet(t *testing.T) {
	c := computing(t)
	m, err := c.LoadModule([]byte(weigh))
	require.NoError(t, err)
	for name, want := range map[string]cudadrv.Result{"": cudadrv.InvalidValue, "weigh": cudadrv.InvalidValue, "nothing": cudadrv.NotFound} {
		_, err := m.Variable(name)
		require.ErrorIs(t, err, want, name)
	}
	weights, err := m.Variable("weights")
	require.NoError(t, err)
	var length *cuda.LengthError
	require.ErrorAs(t, cuda.Set(c, weights, make([]float32, 3)), &length)
	assert.Equal(t, cuda.LengthError{DstBytes: 8, SrcBytes: 12}, *length)
	_, err = cuda.Get[float64](c, weights, 2)
	require.ErrorAs(t, err, &length)
	_, err = cuda.Get[float64](c, weights, -1)
	require.ErrorAs(t, err, &length)
	var outside *cuda.RangeError
	for _, part := range []cuda.Variable{weights.Part(4, 8), weights.Part(-4, 4), weights.Part(0, -1), weights.Part(9, 0), weights.Part(4, 4).Part(0, 8), weights.Part(9, 0).Part(0, 0)} {
		require.ErrorAs(t, cuda.Set(c, part, []float32{}), &outside)
		assert.Zero(t, part.Bytes())
	}
	require.NoError(t, cuda.Set(c, weights, []float32{}))
	require.ErrorIs(t, cuda.Set(nil, weights, []float32{1}), cuda.ErrNotOpen)
	require.ErrorIs(t, cuda.Set(c, cuda.Variable{}, []float32{1}), cuda.ErrNotOpen)
	assert.Equal(t, "no variable", cuda.Variable{}.String())
	_, err = (*cuda.Module)(nil).Variable("weights")
	require.ErrorIs(t, err, cuda.ErrNotOpen)
	_, err = c.Capture(func() error { return cuda.Set(c, weights, []float32{1}) })
	require.ErrorIs(t, err, cuda.ErrCapturing)

	foreign, err := cuda.Open(vram.Config{DriverName: cpu.Name})
	require.NoError(t, err)
	require.ErrorIs(t, cuda.Set(foreign, weights, []float32{1}), cuda.ErrForeign)
	require.NoError(t, foreign.Close())
	still, err := cuda.Get[float32](c, weights, 2)
	require.NoError(t, err)
	assert.Equal(t, []float32{2, 3}, still)
	require.NoError(t, c.Close())
}
