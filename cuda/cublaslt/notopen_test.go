package cublaslt_test

import (
	"testing"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/cublaslt"
	"github.com/go-vram/vram/internal/eachcall"
)

// Each method of a value that is nil or zero refuses the call.
func TestValuesThatAreNotOpenRefuse(t *testing.T) {
	eachcall.NotOpen(t, cuda.ErrNotOpen, nil, (*cublaslt.Handle)(nil), new(cublaslt.Handle), (*cublaslt.Plan)(nil), new(cublaslt.Plan))
}
