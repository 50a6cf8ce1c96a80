package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// An access of one half of a split cell does not change the other half, even if both shared history.
func TestHalvesOfACellHaveStoriesOfTheirOwn(t *testing.T) {
	m := newMemory()
	m.put(0, 100, true)
	_, whole := m.floor(0)
	use := &Use{What: "kernel reads"}
	reads := []access{{place: 1, count: 1, use: use}, {place: 2, count: 1, use: use}, {place: 3, count: 1, use: use}}
	for _, a := range reads {
		whole.read(a, nil)
	}
	for _, side := range []cudadrv.Ptr{0, 1} {
		pieces := m.cut(50*side, 50*side+50)
		require.Len(t, pieces, 1)
	}
	_, lower := m.floor(0)
	_, upper := m.floor(50)
	require.NotSame(t, lower, upper)
	lower.read(access{place: 4, count: 1, use: use}, Clock{0, 1}) // it follows the first
	assert.Len(t, lower.reads, 3)
	assert.Equal(t, reads, upper.reads)
	upper.forget(Clock{0, 0, 1})
	assert.Equal(t, []access{reads[0], reads[2]}, upper.reads)
	assert.Equal(t, []access{reads[1], reads[2], {place: 4, count: 1, use: use}}, lower.reads)
}
