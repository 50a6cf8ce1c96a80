package binding

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A numbered name is none that is there already.
func TestNumberedNames(t *testing.T) {
	n, got := names{"Close": true}, []string(nil)
	for _, name := range []string{"Saxpy2", "Saxpy", "Saxpy", "Saxpy", "Close", "Saxpy2"} {
		got = append(got, n.take(name))
	}
	assert.Equal(t, []string{"Saxpy2", "Saxpy", "Saxpy3", "Saxpy4", "Close2", "Saxpy22"}, got)
}
