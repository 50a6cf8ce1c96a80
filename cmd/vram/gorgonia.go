//go:build gorgonia && cgo && linux && (amd64 || arm64)

package main

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/gorgonia"
)

// throughGorgonia is the driver through gorgonia.org/cu. A command that is built with it ends where there is no GPU,
// whatever driver was asked for: gorgonia.org/cu does that.
func throughGorgonia() (cudadrv.Driver, error) { return gorgonia.New(gorgonia.Config{}), nil }
