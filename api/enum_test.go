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

// withoutText are the enums that no statistic, setting or report has, and that do not marshal as text: codes and flags of the driver,
// and the words of kernels, tensors and PTX, of which files on disk have the numbers.
var withoutText = []string{
	"cuda/cublaslt.Status", "cuda/gemm.Epilogue", "cuda/gemm.Precision", "cuda/gemm.Type", "cuda/share.Refusal", "cuda/share.Way",
	"cuda/sleep.Contents", "cuda/sleep.State", "cudadrv.Capability", "cudadrv.CaptureMode", "cudadrv.CaptureStatus",
	"cudadrv.FunctionAttribute", "cudadrv.NodeKind", "cudadrv.Result", "cudadrv/hazard/internal/core.Host", "cudadrv/hazard/internal/core.Kind", "cudadrv/sim.Clock",
	"host.Kind", "kernel.Origin", "kernel.TuningMode", "kernel/expr.Op", "kernel/matmul.Choice", "kernel/plan.ParamKind", "kernel/plan.Step",
	"kernel/tune.State", "ptx.Class", "ptx.Linkage", "ptx.Modifier", "ptx.ModifierKind", "ptx.Opcode", "ptx.OperandKind", "ptx.Space",
	"ptx.Special", "ptx.Type", "ptx/interp.Kind", "tensor.Kind", "tensor.Type", "warm.Type",
}

// Every enum has its names as text and reads them, or stands in the list above: a new one is a decision.
func TestEnumsHaveText(t *testing.T) {
	listed := map[string]bool{}
	has := func(of types.Type, method string) bool { return types.NewMethodSet(of).Lookup(nil, method) != nil }
	for name, n := range enums(load(t)) {
		text := has(n, "String") && has(n, "MarshalText") && has(types.NewPointer(n), "UnmarshalText")
		listed[name] = slices.Contains(withoutText, name)
		assert.NotEqual(t, text, listed[name], name)
	}
	for _, name := range withoutText {
		assert.Contains(t, listed, name, "it is gone, and the list has it")
	}
	for _, name := range []string{".Waits", ".Footprint", ".StatsLevel", ".Segments", "pool.RemedyKind", "internal/pressure.Level"} {
		assert.Contains(t, listed, name)
	}
}
