package cuda_test

import (
	"testing"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/internal/jsontext/jsontexttest"
)

// Every error of the package has the JSON conventions of the statistics.
func TestJSON(t *testing.T) {
	all := []any{&cuda.ArgumentError{}, &cuda.LaunchError{}, &cuda.LengthError{}, &cuda.OrderError{}, &cuda.RangeError{}}
	jsontexttest.Check(t, all...)
	jsontexttest.All(t, []string{"."}, []string{"Error"}, all)
}
