package bytecheck

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// written returns the bytes of memory written as c says.
func (c content) written() []byte {
	var b []byte
	for _, r := range c {
		for range r.bytes {
			b = append(b, r.value)
		}
	}
	return b
}

// Contents are copied over each other as bytes are.
func TestContentIsAsBytesAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		long, short := rapid.Int64Range(1, 5000).Draw(t, "long"), rapid.Int64Range(1, 5000).Draw(t, "short")
		to, from := fillOf(long, rapid.Uint64().Draw(t, "seed")), fillOf(short, rapid.Uint64().Draw(t, "seed"))
		n := rapid.Int64Range(1, min(long, short)).Draw(t, "n")
		want := to.written()
		require.Len(t, want, int(long))
		require.NotContains(t, want, byte(0))
		require.NotContains(t, want, byte(scribble))
		copy(want, from.written()[:n])
		got := to.overwritten(from, n, long)
		require.Equal(t, want, got.written())
		offset := rapid.Int64Range(0, long-1).Draw(t, "offset")
		length := rapid.Int64Range(1, long-offset).Draw(t, "length")
		require.Equal(t, want[offset:offset+length], got.part(offset, length).written())
	})
}

// Each single byte that is not right is found, at its place.
func TestEveryWrongByteIsFound(t *testing.T) {
	c := fillOf(2100, 7)
	got := c.written()
	_, _, found := c.differs(got)
	require.False(t, found)
	for i := range got {
		right := got[i]
		got[i] = scribble
		at, want, found := c.differs(got)
		require.True(t, found, i)
		assert.EqualValues(t, i, at)
		assert.Equal(t, right, want)
		got[i] = right
	}
}
