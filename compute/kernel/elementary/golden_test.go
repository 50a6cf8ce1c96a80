package elementary_test

import (
	"flag"
	"strings"
	"testing"

	"github.com/go-vram/vram/compute/kernel/elementary"
	"github.com/go-vram/vram/compute/kernel/internal/code"
	"github.com/go-vram/vram/internal/kept"
)

var update = flag.Bool("update", false, "write testdata/functions.ptx again")

// Each function has the instructions that testdata has: a change of a digit, or of the order of operations, is seen.
func TestTextsOfFunctions(t *testing.T) {
	var text strings.Builder
	for _, f := range []struct {
		name  string
		build func(on code.Machine, x code.Value) code.Value
	}{
		{"exp", elementary.BuildExp},
		{"exp_below", elementary.BuildExpBelow},
		{"exp2", elementary.BuildExp2},
		{"expm1", elementary.BuildExpm1},
		{"tanh", elementary.BuildTanh},
		{"erf", elementary.BuildErf},
		{"log", elementary.BuildLog},
		{"log2", elementary.BuildLog2},
		{"log1p", elementary.BuildLog1p},
		{"rsqrt", elementary.BuildRsqrt},
		{"sin", elementary.BuildSin},
		{"cos", elementary.BuildCos},
		{"pow", func(on code.Machine, x code.Value) code.Value {
			return elementary.BuildPow(on, x, on.Op2(code.AddF32, x, code.F32(1)))
		}},
	} {
		text.WriteString(code.Module([]string{f.name}, 32, false, func(w *code.Writer, _ int) {
			w.Line("st.global.b32 [%v], %v", w.Param(8), f.build(w, w.Float(4)))
		}))
	}
	kept.Text(t, *update, "testdata/functions.ptx", text.String())
}
