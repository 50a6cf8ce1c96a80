package warm_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/warm"
)

func TestTypesAsText(t *testing.T) {
	for _, want := range []warm.Type{warm.Float32, warm.Float16, warm.BFloat16} {
		text, err := want.MarshalText()
		require.NoError(t, err)
		var got warm.Type
		require.NoError(t, got.UnmarshalText(text))
		assert.Equal(t, want, got)
	}
	got := warm.BFloat16
	require.EqualError(t, got.UnmarshalText([]byte("int8")), `warm: "int8" is no Type: want float32, float16, bfloat16`)
	assert.Equal(t, warm.BFloat16, got)
	assert.Equal(t, "Type(9)", warm.Type(9).String())
	var c sim.Clock
	require.NoError(t, c.UnmarshalText([]byte("running")))
	assert.Equal(t, sim.Running, c)
}
