package share_test

import (
	"testing"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/share"
	"github.com/go-vram/vram/internal/eachcall"
)

// Each method of a value that is nil or zero refuses the call: three of them for the connection that it lacks.
func TestValuesThatAreNotOpenRefuse(t *testing.T) {
	eachcall.NotOpen(t, cuda.ErrNotOpen, []string{"Memory.Export", "Memory.Await", "Memory.Publish"}, (*share.Memory)(nil), new(share.Memory))
}
