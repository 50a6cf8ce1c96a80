//go:build gorgonia && cgo && linux && (amd64 || arm64)

package main

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/gorgonia"
)

// throughGorgonia returns the driver through gorgonia.org/cu. A command that is built with it exits on machines without a GPU,
// with every -driver: gorgonia.org/cu does that.
func throughGorgonia() (cudadrv.Driver, error) { return gorgonia.New(gorgonia.Config{}), nil }
