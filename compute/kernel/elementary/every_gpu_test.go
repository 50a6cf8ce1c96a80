//go:build gpu

package elementary_test

import (
	"math"
	"os"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/dynamic"
)

// chunkBits is how many inputs one launch has, as a power of 2.
const chunkBits = 24

// Every float32, or one chunk of 16 of them, goes through each function on the GPU. VRAM_ALL_FLOATS=1 takes all 2^32 of them, some 25
// seconds a function on 16 cores.
func TestEveryFloatOnTheGPU(t *testing.T) {
	dev, err := vram.Open(vram.Config{Driver: dynamic.New(dynamic.Config{})})
	require.NoError(t, err)
	defer func() { assert.NoError(t, dev.Close()) }()
	s, err := dev.NewStream()
	require.NoError(t, err)
	c, err := cuda.NewContext(s)
	require.NoError(t, err)
	kernels, err := kernel.NewCompiler(c)
	require.NoError(t, err)
	step := 16
	if os.Getenv("VRAM_ALL_FLOATS") != "" {
		step = 1
	}
	x := expr.Index(-1).Add(expr.Input(0, tensor.Int64)).Cast(tensor.Int32).Bitcast()
	built := map[string]expr.Expr{
		"exp": x.Exp(), "exp2": x.Exp2(), "expm1": x.Expm1(), "log": x.Log(), "log2": x.Log2(), "log1p": x.Log1p(),
		"sin": x.Sin(), "cos": x.Cos(), "tanh": x.Tanh(), "erf": x.Erf(), "rsqrt": x.Rsqrt(),
	}
	first, err := tensor.New(c, tensor.Int64, 1)
	require.NoError(t, err)
	out, err := tensor.New(c, tensor.Float32, 1<<chunkBits)
	require.NoError(t, err)
	got := make([]float32, 1<<chunkBits)
	for _, f := range functions() {
		if f.name == "expbelow" {
			continue // an instruction sequence of softmax, with the bits of exp
		}
		t.Run(f.name, func(t *testing.T) {
			k, err := kernels.Elementwise(built[f.name])
			require.NoError(t, err)
			var worst worstUlp
			for chunk := 0; chunk < 1<<(32-chunkBits); chunk += step {
				base := int64(chunk) << chunkBits
				require.NoError(t, tensor.Write(first, []int64{base}))
				require.NoError(t, k.Run(c, []*tensor.Tensor{out}, first))
				require.NoError(t, tensor.ReadInto(got, out))
				worst.compare(t, f, uint32(base), got)
			}
			t.Logf("%-6s %.4f ulp at %v (%#08x) on the GPU", f.name, worst.ulps, worst.at, math.Float32bits(worst.at))
			assert.LessOrEqual(t, worst.ulps, f.limitUlp, "%s at %v", f.name, worst.at)
		})
	}
	require.NoError(t, first.Free())
	require.NoError(t, out.Free())
	require.NoError(t, kernels.Close())
	require.NoError(t, c.Close())
}

// worstUlp is the greatest error.
type worstUlp struct {
	ulps float64
	at   float32
}

// compare looks at results for consecutive bits; some of them are held against the function on the host, bit for bit.
func (w *worstUlp) compare(t *testing.T, f function, base uint32, got []float32) {
	t.Helper()
	parts := runtime.GOMAXPROCS(0)
	found := make([]worstUlp, parts)
	var group sync.WaitGroup
	for part := range parts {
		group.Go(func() {
			for i := part; i < len(got); i += parts {
				x := math.Float32frombits(base + uint32(i))
				if u := ulps(got[i], f.reference(float64(x))); u > found[part].ulps {
					found[part] = worstUlp{u, x}
				}
				if i%4093 == 0 {
					if own := f.of(x); math.Float32bits(own) != math.Float32bits(got[i]) && (own == own || got[i] == got[i]) {
						t.Errorf("%s(%v) is %v on the GPU and %v on the host", f.name, x, got[i], own)
					}
				}
			}
		})
	}
	group.Wait()
	for _, one := range found {
		if one.ulps > w.ulps {
			*w = one
		}
	}
}
