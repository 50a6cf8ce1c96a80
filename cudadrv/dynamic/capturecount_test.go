//go:build linux && (amd64 || arm64)

package dynamic

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/cudadrv"
)

// Streams of one name have a count together: two threads' stream 2, or a stream with a capture whose second begin was refused. It ends
// with the last of them.
func TestCapturesOfOneNameCountTogether(t *testing.T) {
	var c captures
	const s, other cudadrv.Stream = 2, 3
	for _, begun := range []cudadrv.Stream{s, other, s, s} {
		c.begin(begun)
	}
	for left := int64(4); left > 0; left-- {
		assert.Equal(t, left, c.underWay.Load())
		c.end([]cudadrv.Stream{other, s}[min(left-1, 1)])
	}
	assert.Zero(t, c.underWay.Load())
	assert.Empty(t, c.streams)
	c.end(s)
	assert.Zero(t, c.underWay.Load(), "it was not counted")
}
