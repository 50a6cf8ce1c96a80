package cuda_test

import (
	"testing"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/internal/eachcall"
)

// Each method of a value that is nil or zero refuses the call.
func TestValuesThatAreNotOpenRefuse(t *testing.T) {
	eachcall.NotOpen(t, cuda.ErrNotOpen, nil,
		(*cuda.Context)(nil), new(cuda.Context), (*cuda.Event)(nil), new(cuda.Event), (*cuda.Function)(nil), new(cuda.Function),
		(*cuda.Module)(nil), new(cuda.Module), (*cuda.Graph)(nil), new(cuda.Graph), (*cuda.Pool)(nil), new(cuda.Pool),
		(*cuda.Profile)(nil), new(cuda.Profile), (*cuda.Queue)(nil), new(cuda.Queue))
}
