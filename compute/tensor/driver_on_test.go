//go:build gpu

package tensor_test

import (
	"testing"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
)

// library is the driver of a GPU.
func library(testing.TB) cudadrv.Driver { return dynamic.New(dynamic.Config{}) }
