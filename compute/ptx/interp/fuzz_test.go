package interp_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx"
	"github.com/go-vram/vram/compute/ptx/interp"
)

// Random kernels never panic, and do the same each time.
func FuzzKernels(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed)
	}
	f.Add(uint64(190)) // a loop around a barrier
	rows := table(f)
	f.Fuzz(func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 15))
		text := randomKernel(rnd, rows)
		m, err := ptx.Parse(text)
		if err != nil {
			return
		}
		k, err := interp.Compile(m, "k")
		if err != nil {
			return
		}
		ignore := ignored(rnd)
		run := func() (string, []byte) {
			memory := make([]byte, 4096)
			err := k.Run(interp.Launch{
				Grid: interp.Dim3{X: 2, Y: 1, Z: 1}, Block: interp.Dim3{X: 40, Y: 1, Z: 1}, SharedBytes: 64, MaxInstructions: 20_000,
				Params: params(uint64(0x10000), uint64(0)), Memory: interp.Bytes{0x10000: memory}, Ignore: ignore,
			})
			if err == nil {
				return "", memory
			}
			var fault *interp.Fault
			require.True(t, errors.As(err, &fault), err)
			return err.Error(), memory
		}
		first, memory := run()
		second, again := run()
		require.Equal(t, first, second)
		require.Equal(t, memory, again)
	})
}

// ignored are kinds of mistakes after which kernels continue.
func ignored(rnd *rand.Rand) []interp.Kind {
	all := []interp.Kind{interp.Uninitialised, interp.AsyncInFlight, interp.SharedRace, interp.GlobalRace}
	if rnd.IntN(2) == 0 {
		return nil
	}
	return all
}

func randomKernel(rnd *rand.Rand, rows []tableRow) string {
	var b strings.Builder
	b.WriteString(".version 8.6\n.target sm_100a\n.address_size 64\n.const .align 16 .b8 c[64];\n")
	b.WriteString(".func (.param .b32 r) callee(.param .b32 a) { st.param.b32 [r], 1; ret; }\n")
	b.WriteString(".visible .entry k(.param .u64 in, .param .u64 pad) {\n" + declarations())
	const lines = 25
	for n := range lines {
		fmt.Fprintf(&b, "l%d:\n", n)
		switch rnd.IntN(8) {
		case 0:
			fmt.Fprintf(&b, "@%%p%d bra l%d;\n", rnd.IntN(8), rnd.IntN(lines))
		case 1:
			fmt.Fprintf(&b, "setp.%s.u32 %%p%d, %%b32_0, %d;\nmov.u32 %%b32_0, %%tid.x;\n", []string{"lt", "eq", "ge"}[rnd.IntN(3)], rnd.IntN(8), rnd.IntN(64))
		default:
			row := rows[rnd.IntN(len(rows))]
			names := row.names(rnd, 4)
			line := row.line(names[rnd.IntN(len(names))])
			if strings.Contains(line, ".sync") && rnd.IntN(3) > 0 {
				line = withMask(line)
			}
			if rnd.IntN(4) == 0 {
				fmt.Fprintf(&b, "@%%p%d ", rnd.IntN(8))
			}
			b.WriteString(line + "\n")
		}
	}
	b.WriteString("end: ret; }\n")
	return b.String()
}
