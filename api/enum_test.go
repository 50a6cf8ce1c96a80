package api_test

import (
	"go/constant"
	"go/types"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// enums are the exported integer types, by name, that have two or more exported constants in a package for users; aliases are
// followed.
func enums(packages map[string]*types.Package) map[string]*types.Named {
	found := map[string]*types.Named{}
	for _, p := range packages {
		counts := map[*types.Named]int{}
		for _, name := range p.Scope().Names() {
			c, ok := p.Scope().Lookup(name).(*types.Const)
			if !ok || !c.Exported() || c.Val().Kind() != constant.Int {
				continue
			}
			if n, ok := types.Unalias(c.Type()).(*types.Named); ok && strings.HasPrefix(n.Obj().Pkg().Path(), module) {
				counts[n]++
			}
		}
		for n, count := range counts {
			if basic, ok := n.Underlying().(*types.Basic); ok && basic.Info()&types.IsInteger != 0 && count > 1 && n.Obj().Exported() {
				found[strings.TrimPrefix(strings.TrimPrefix(n.Obj().Pkg().Path(), module), "/")+"."+n.Obj().Name()] = n
			}
		}
	}
	return found
}

// withoutText are the enums of the insides: attributes and types of the driver, and the steps and operands that generated kernels are
// made of.
var withoutText = []string{
	"cudadrv.FunctionAttribute", "cudadrv.TensorSwizzle", "cudadrv.TensorType", "cudadrv/hazard/internal/core.Host", "compute/kernel/plan.ParamKind",
	"compute/kernel/plan.Step", "compute/ptx.Class", "compute/ptx.ModifierKind", "compute/ptx.OperandKind",
}

// writtenOnly are the enums that are written as text and that nobody reads back: results, states and reports, and the words of
// kernels, tensors and PTX, of which files on disk have the numbers.
var writtenOnly = []string{
	"cuda/cublaslt.Status", "cuda/gemm.Epilogue", "cuda/gemm.Precision", "cuda/gemm.Type", "cuda/share.Refusal", "cuda/share.Way",
	"cuda/sleep.Contents", "cuda/sleep.State", "cudadrv.Capability", "cudadrv.CaptureMode", "cudadrv.CaptureStatus", "cudadrv.NodeKind",
	"cudadrv.Result", "cudadrv/hazard/internal/core.Kind", "host.Kind", "compute/kernel.Origin", "compute/kernel/expr.Op", "compute/kernel/tune.State",
	"compute/ptx.Linkage", "compute/ptx.Modifier", "compute/ptx.Opcode", "compute/ptx.Space", "compute/ptx.Special", "compute/ptx.Type", "compute/ptx/interp.Kind", "compute/tensor.Kind", "compute/tensor.Type",
}

// Every enum has its names as text, and reads them, or stands in a list above: a new one is a decision.
func TestEnumsHaveText(t *testing.T) {
	listed := map[string]bool{}
	has := func(of types.Type, method string) bool { return types.NewMethodSet(of).Lookup(nil, method) != nil }
	for name, n := range enums(load(t)) {
		listed[name] = true
		assert.NotEqual(t, has(n, "String") && has(n, "MarshalText"), slices.Contains(withoutText, name), name)
		reads := has(types.NewPointer(n), "UnmarshalText")
		assert.NotEqual(t, reads, slices.Contains(withoutText, name) || slices.Contains(writtenOnly, name), name)
	}
	for _, name := range slices.Concat(withoutText, writtenOnly) {
		assert.Contains(t, listed, name, "it is gone, and the list has it")
	}
	for _, name := range []string{".Waits", ".Footprint", ".StatsLevel", ".Segments", "pool.RemedyKind", "internal/pressure.Level"} {
		assert.Contains(t, listed, name)
	}
}
