package cuda_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/internal/jsonform/jsonformtest"
)

// Every error of the package has the JSON conventions of the statistics.
func TestJSON(t *testing.T) {
	all := []any{&cuda.ArgumentError{}, &cuda.ValueError{}, &cuda.LaunchError{}, &cuda.LengthError{}, &cuda.OrderError{}, &cuda.RangeError{}, &cuda.QueueError{}, &cuda.FrozenError{}}
	jsonformtest.Check(t, all...)
	jsonformtest.All(t, []string{"."}, []string{"Error"}, all)
}

// The package is named once in an error about an argument.
func TestTextsOfArguments(t *testing.T) {
	err := &cuda.ArgumentError{Kernel: "scale", Index: 1, Err: &cuda.RangeError{Offset: 4, Bytes: 8, BufferBytes: 10}}
	assert.EqualError(t, err, "cuda: argument 1 of kernel scale: 8 bytes from 4 on are not within the buffer's 10")
}
