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
