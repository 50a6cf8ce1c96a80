//go:build gpu

package store_test

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
)

// driver opens the driver of a GPU.
func driver() cudadrv.Driver { return dynamic.New(dynamic.Config{}) }
