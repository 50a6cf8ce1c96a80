//go:build gpu

package matmul_test

import (
	"testing"

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

// devices are some on which a problem of that shape has blocks of 128 x 128, and of 128 x 64: a GPU of about 130 multiprocessors.
func devices(tb testing.TB) []tiled {
	tb.Helper()
	r := newRig(tb)
	return []tiled{{"128x128", r, 1530, 1411}, {"128x64", r, 1000, 1022}}
}
