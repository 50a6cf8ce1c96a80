//go:build gpu

package matmul_test

import (
	"testing"

	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/cudadrv"
)

// Products by bulk copies are right on hardware: by one block, and by a block on each multiprocessor.
func TestProductsByBulkCopies(t *testing.T) {
	r := newRig(t)
	info := r.dev.Info()
	if c := info.Compute; c.Major != 9 || c.Minor != 0 || !info.Capabilities.Has(cudadrv.BulkTensors) {
		t.Skipf("a GPU of compute capability %d.%d has no such kernels", c.Major, c.Minor) //nolint:forbidigo // there is nothing to test
	}
	matmul.SetMultiprocessors(r.m, 1)
	testBulk(t, r)
}
