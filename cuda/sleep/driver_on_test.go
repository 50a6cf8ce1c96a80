//go:build gpu

package sleep_test

import (
	"testing"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
)

// modelBytes is how long the longest buffers of the model are together.
const modelBytes int64 = 6 << 30

// library returns the driver of a GPU.
func library(testing.TB) cudadrv.Driver { return dynamic.New(dynamic.Config{}) }
