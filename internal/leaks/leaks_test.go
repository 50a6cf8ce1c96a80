package leaks

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

// A goroutine that ends late is no leak.
func TestAGoroutineThatEndsLate(t *testing.T) {
	looks := 0
	assert.NoError(t, find(endTime, func() error {
		if looks++; looks < 3 {
			return errors.New("a goroutine")
		}
		return nil
	}))
	assert.Equal(t, 3, looks)
}

func TestAGoroutineThatStays(t *testing.T) {
	before, stay := goleak.IgnoreCurrent(), make(chan struct{})
	defer close(stay)
	go func() { <-stay }()
	assert.ErrorContains(t, find(0, func() error { return goleak.Find(before) }), "TestAGoroutineThatStays")
}
