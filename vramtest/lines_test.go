package vramtest

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

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
