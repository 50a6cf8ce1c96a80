package warm

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Each layer has a norm before attention and one before feed-forward, and the model one more; each saves the deviation of its
// tokens and, where it also centers them, their mean. One added layer, and the last norm, add as many in every model.
func TestEachNormSavesItsStatistics(t *testing.T) {
	t.Parallel()
	for _, gated := range []bool{false, true} {
		saved := 2
		if gated {
			saved = 1
		}
		want := saved // the last one
		for layers := range 6 {
			shape := Transformer{Layers: layers, Gated: gated}
			assert.Equal(t, want, shape.norms(), "%d layers, gated: %t", layers, gated)
			want += saved + saved
		}
	}
}
