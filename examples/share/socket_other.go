//go:build !linux

package main

import (
	"os"

	"github.com/go-vram/vram/cudadrv"
)

// socketPair has nothing to connect: memory goes between processes on Linux only.
func socketPair() (a, b *os.File, err error) { return nil, nil, cudadrv.NotSupported }
