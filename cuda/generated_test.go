package cuda_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/site"
)

// unmarked is true until this file has called Generated, whose mark stays.
var unmarked = true

// A file that calls Generated is left out of places, again and again; before that it is not. It has no other test, since its own
// functions have no places then.
func TestAGeneratedFileIsLeftOutOfPlaces(t *testing.T) {
	var helpers *site.Helpers
	place := func() string { return helpers.Without(site.Deep(0)).String() }
	if unmarked {
		assert.Contains(t, place(), "generated_test.go")
	}
	unmarked = false
	for range 2 {
		cuda.Generated()
		assert.NotContains(t, place(), "generated_test.go")
	}
}
