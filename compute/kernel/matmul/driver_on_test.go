//go:build gpu

package matmul_test

import (
	"testing"

	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
)

// programs is how many random problems a test computes, with up to so many multiplications each.
const (
	programs    = 400
	mostWork    = 1 << 26
	onHardware  = true
	largestSize = 1100
)

// driver is the driver of a GPU.
func driver(testing.TB) cudadrv.Driver { return dynamic.New(dynamic.Config{}) }

// devices are some on which a problem of that shape has each of the larger tiles: a GPU of about 130 multiprocessors.
func devices(tb testing.TB) []tiled {
	tb.Helper()
	r := newRig(tb)
	matmul.WithoutBulk(r.m) // whose tiles have a test of their own
	return []tiled{{largestTile, r, 2000, 2040}, {"128x64|staged", r, 1000, 1022}, {"64x64", r, 704, 700}}
}

// groupRig is a GPU of about 130 multiprocessors, with shapes for its warpgroups.
func groupRig(tb testing.TB) (*rig, []groupShape) {
	tb.Helper()
	r := newRig(tb)
	if c := r.dev.Info().Compute; c.Major != 9 || c.Minor != 0 {
		tb.Skipf("a GPU of compute capability %d.%d has no instructions of warpgroups", c.Major, c.Minor) //nolint:forbidigo // there is nothing to test
	}
	return r, []groupShape{{1000, 1020, 160, 1}, {996, 1024, 2048, 1}, {2000, 2040, 32, 1}, {1996, 2044, 96, 1}, {1000, 508, 64, 2}}
}
