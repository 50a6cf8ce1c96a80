package vramtest

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each write takes all of its text, also a part of a line.
func TestLinesTakeAnyText(t *testing.T) {
	l := &lines{}
	for text, pending := range map[string]string{"": "", "a": "a", "a\n": "", "a\nbc": "bc", "\n\nd": "d"} {
		n, err := l.Write([]byte(text))
		require.NoError(t, err)
		assert.Len(t, text, n)
		assert.Equal(t, pending, string(l.pending))
		l.pending = nil
	}
}

// Kernels may still print while the last line is written.
func TestLinesAmongGoroutines(t *testing.T) {
	l := &lines{}
	var all sync.WaitGroup
	begin := make(chan struct{})
	for number := range 4 {
		all.Go(func() {
			<-begin
			for range 200 {
				if number == 0 {
					l.flush()
					continue
				}
				_, err := l.Write([]byte("x"))
				assert.NoError(t, err)
			}
		})
	}
	close(begin)
	all.Wait()
	assert.Len(t, l.pending, 600)
}
