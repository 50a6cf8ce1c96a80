package cuda

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Attributes that end within one are not certain, whatever the ones before it say.
func TestAttributesThatAreCutOffAreNotCertain(t *testing.T) {
	parameter := []byte{valueFollows, paramAttribute, 2, 0, 1, 2}
	count, sure := countAttributes(append(parameter, parameter...))
	assert.True(t, sure)
	assert.Equal(t, 2, count)
	for cut := 1; cut < len(parameter); cut++ {
		_, sure := countAttributes(append(parameter[:len(parameter):len(parameter)], parameter[:cut]...))
		assert.False(t, sure, "%d bytes of the second attribute", cut)
	}
}
