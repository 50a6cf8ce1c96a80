//go:build !(gorgonia && cgo && linux && (amd64 || arm64))

package main

import (
	"errors"

	"github.com/go-vram/vram/cudadrv"
)

var errWithoutGorgonia = errors.New("this command was built without the driver gorgonia: make build-gorgonia makes one at bin/gorgonia/vram")

func throughGorgonia() (cudadrv.Driver, error) { return nil, errWithoutGorgonia }
