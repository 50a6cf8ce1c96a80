package call_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/cudadrv/internal/call"
)

func TestEveryCallHasANameOfItsOwn(t *testing.T) {
	for c := range call.Count {
		back, ok := call.Named(c.String())
		assert.True(t, ok, "%d", c)
		assert.Equal(t, c, back, "%v", c)
		assert.Regexp(t, "^cu[A-Z]", c.String())
	}
}

func TestUnknownNamesAreNotFound(t *testing.T) {
	for _, name := range []string{"", "cuMemCreat", "cuMemAlloc_v2", "CUMEMCREATE"} {
		c, ok := call.Named(name)
		assert.False(t, ok, name)
		assert.Equal(t, call.Count, c, "which is no call")
	}
	assert.Equal(t, "unknown call", call.Count.String())
}
