package plan_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/ptx"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
)

var update = flag.Bool("update", false, "write the texts of testdata anew")

// The texts of some kernels are kept: a change of one is seen.
func TestTexts(t *testing.T) {
	a, b := inputs(tensor.Float32)
	x := expr.Input(0, tensor.BFloat16)
	big, err := layout.New([]int{1 << 20, 1 << 12}, []int{1 << 12, 1}, 0)
	require.NoError(t, err)
	turned, err := of(t, 64, 32).Transpose(0, 1)
	require.NoError(t, err)
	narrow, err := of(t, 8, 32).Transpose(0, 1)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		program *plan.Program
		layouts []layout.Layout
	}{
		"fused":        {program(t, nil, a.Mul(b).Add(a).Relu().Mul(expr.Number(2)).Sub(b)), []layout.Layout{of(t, 999), of(t, 999), of(t, 999)}},
		"bias":         {program(t, nil, a.Add(b)), []layout.Layout{of(t, 64, 32), of(t, 32), of(t, 64, 32)}},
		"strided":      {program(t, nil, a.Cast(tensor.Int8)), []layout.Layout{narrow, of(t, 32, 8)}},
		"transposed":   {program(t, nil, a.Cast(tensor.Int8)), []layout.Layout{turned, of(t, 32, 64)}},
		"bfloat16":     {program(t, nil, x.Gelu()), []layout.Layout{of(t, 4096), of(t, 4096)}},
		"wide":         {program(t, nil, a.Neg()), []layout.Layout{big, big}},
		"rows":         {program(t, []int{-1}, a.Softmax()), []layout.Layout{of(t, 100, 4096), of(t, 100, 4096)}},
		"smallrows":    {program(t, []int{-1}, a.ArgMax()), []layout.Layout{of(t, 1000, 64), of(t, 1000)}},
		"sum":          {program(t, plan.All, a.Sum()), []layout.Layout{of(t, 1<<20), of(t)}},
		"longsoftmax":  {program(t, plan.All, a.Softmax()), []layout.Layout{of(t, 1<<20), of(t, 1<<20)}},
		"columns":      {program(t, []int{-2}, a.Mean()), []layout.Layout{of(t, 100, 4096), of(t, 4096)}},
		"splitcolumns": {program(t, []int{-2}, a.Sum()), []layout.Layout{of(t, 4096, 4096), of(t, 4096)}},
	} {
		var g plan.Geometry
		require.NoError(t, c.program.Fit(&g, c.layouts, make([]uint64, len(c.layouts))))
		text := c.program.Emit(g.Variant)
		module, err := ptx.Parse(text)
		require.NoError(t, err)
		require.NoError(t, ptx.Check(module))
		path := filepath.Join("testdata", name+".ptx")
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, string(want), text, name)
		assemble(t, path)
	}
}

// assemble has the toolkit's assembler look at a text, where there is one.
func assemble(t *testing.T, path string) {
	t.Helper()
	assembler, err := exec.LookPath("ptxas")
	if err != nil {
		return
	}
	out, err := exec.Command(assembler, "-arch=sm_80", "-v", "-o", os.DevNull, path).CombinedOutput()
	assert.NoError(t, err, "%s", out)
	t.Logf("%s: %s", path, out)
}
