package cuda_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/sim"
)

const refusingPTX = `.visible .entry k(.param .u64 .ptr to, .param .f32 by, .param .align 4 .b8 s[16]) { ret; }`

// mistakes are arguments that a kernel of refusingPTX refuses, by the text of the error.
func mistakes(x cuda.Buffer) map[string][]cuda.Arg {
	type wide struct{ A, B float64 }
	type short struct{ A uint32 }
	by, s := cuda.Value(float32(1)), cuda.Value([4]float32{})
	return map[string][]cuda.Arg{
		"cuda: argument 1 of kernel k, parameter by: int32 for .f32, which takes float32":                                                             {cuda.Out(x), cuda.Value(int32(1)), s},
		"cuda: argument 1 of kernel k, parameter by: a buffer of 8 bytes for .f32 of 4":                                                               {cuda.Out(x), cuda.In(x), s},
		"cuda: argument 1 of kernel k, parameter by: float64 of 8 bytes for .f32 of 4":                                                                {cuda.Out(x), cuda.Value(1.0), s},
		"cuda: argument 0 of kernel k, parameter to: uint64 for .u64 .ptr, which takes a buffer, a nil pointer or a cudadrv.Ptr":                      {cuda.Value(uint64(1)), by, s},
		"cuda: argument 2 of kernel k, parameter s: cuda_test.wide for .align 4 .b8[16], which takes values that are aligned to at most 4 bytes":      {cuda.Out(x), by, cuda.Value(wide{})},
		"cuda: argument 2 of kernel k, parameter s: cuda_test.short of 4 bytes for .align 4 .b8[16] of 16":                                            {cuda.Out(x), by, cuda.Value(short{})},
		"cuda: argument 2 of kernel k, parameter s: a kernel takes no int by value: it takes numbers of a fixed size, and structs and arrays of them": {cuda.Out(x), by, cuda.Value(1)},
		"cuda: kernel k has 3 parameters, not 2": {cuda.Out(x), by},
		"cuda: kernel k has 3 parameters, not 4": {cuda.Out(x), by, s, s},
	}
}

// A launch that is refused for the size, the type or the number of its arguments allocates nothing when the mistake is made again.
func TestTheSameRefusalAllocatesNothing(t *testing.T) {
	r, c := newFailing(t, sim.Config{})
	k := kernelsOf(t, c, refusingPTX)("k")
	x := r.alloc(c, 4096)
	for text, args := range mistakes(x) {
		var last error
		got := testing.AllocsPerRun(100, func() { last = c.Launch(k, cuda.Cover(1, 1), args...) })
		require.EqualError(t, last, text)
		assert.Zero(t, got, text)
	}
	require.NoError(t, x.Free())
}

// Each refusal is complete, also after others, and stays as it is after later ones: also where goroutines make
// different mistakes with one kernel.
func TestRefusalsOfOneKernelDoNotMix(t *testing.T) {
	r, c := newRig(t)
	k := kernelsOf(t, c, refusingPTX)("k")
	x := r.alloc(c, 4096)
	var all sync.WaitGroup
	for text, args := range mistakes(x) {
		all.Go(func() {
			var errs []error
			for range 50 {
				errs = append(errs, c.Launch(k, cuda.Cover(1, 1), args...))
			}
			for _, err := range errs {
				var refused *cuda.ArgumentError
				assert.ErrorAs(t, err, &refused)
				assert.EqualError(t, err, text)
			}
		})
	}
	all.Wait()
	r.free(x)
}
