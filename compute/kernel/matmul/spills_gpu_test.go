//go:build gpu

package matmul_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/cudadrv"
)

// Kernels do not spill registers, which is slow.
func TestNoKernelSpills(t *testing.T) {
	r := newRig(t)
	for _, v := range matmul.Variants() {
		f, err := r.m.Function(v)
		require.NoError(t, err, v)
		local, err := f.Attribute(cudadrv.LocalBytes)
		require.NoError(t, err)
		registers, err := f.Attribute(cudadrv.Registers)
		require.NoError(t, err)
		t.Logf("%-32s %3d registers, %d bytes spilled", v, registers, local)
		if local > 32 { // some words outside of the loop are no harm
			t.Errorf("%s spills %d bytes", v, local)
		}
	}
}
