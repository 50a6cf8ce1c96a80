package interp_test

import (
	"testing"

	"github.com/go-vram/vram/compute/ptx/interp"
	"github.com/go-vram/vram/internal/jsontext/jsontexttest"
)

// Every error of the package has the JSON conventions of the statistics.
func TestJSON(t *testing.T) {
	all := []any{&interp.Fault{}}
	jsontexttest.Check(t, all...)
	jsontexttest.All(t, []string{"."}, []string{"Fault"}, all)
}
