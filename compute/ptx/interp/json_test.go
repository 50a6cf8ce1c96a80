package interp_test

import (
	"testing"

	"github.com/go-vram/vram/compute/ptx/interp"
	"github.com/go-vram/vram/internal/jsonform/jsonformtest"
)

// Every error of the package has the JSON conventions of the statistics.
func TestJSON(t *testing.T) {
	all := []any{&interp.Fault{}}
	jsonformtest.Check(t, all...)
	jsonformtest.All(t, []string{"."}, []string{"Fault"}, all)
}
