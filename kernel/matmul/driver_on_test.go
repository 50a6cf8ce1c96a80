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
