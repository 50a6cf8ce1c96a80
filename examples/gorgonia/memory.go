//go:build gorgonia && cgo && linux && (amd64 || arm64)

package main

import (
	"fmt"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/go-vram/vram"
)

// memory is the interface Memory of gorgonia.org/tensor, by which its tensors and engines take device memory: a
// vram.Buffer and a cu.DevicePtr can be passed there. It is written here so that this module does not require that one:
// github.com/go-vram/vram/bridge/gorgonia does.
type memory interface {
	Uintptr() uintptr
	MemSize() uintptr
}

var (
	_ memory = vram.Buffer{}
	_ memory = cu.DevicePtr(0)
)

// blocks reads device memory and gives the value of each block, whose bytes must be alike.
func blocks(m memory) ([]byte, error) {
	content := make([]byte, m.MemSize())
	if err := cu.MemcpyDtoH(unsafe.Pointer(&content[0]), cu.DevicePtr(m.Uintptr()), int64(len(content))); err != nil {
		return nil, err
	}
	var values []byte
	for i, b := range content {
		if i%blockBytes == 0 {
			values = append(values, b)
		}
		if b != values[len(values)-1] {
			return nil, fmt.Errorf("byte %d is %d, its block began with %d", i, b, values[len(values)-1])
		}
	}
	return values, nil
}
