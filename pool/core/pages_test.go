package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Runs of one client that merge wait for the latest of their fences, whichever side it comes from.
func TestMergedRunsWaitForTheLatestFence(t *testing.T) {
	t.Parallel()
	for _, fences := range [][3]Fence{{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}} {
		for _, order := range [][3]uint32{{0, 1, 2}, {0, 2, 1}, {2, 1, 0}, {1, 0, 2}} {
			p := newPages()
			p.extend(3)
			p.setState(Run{0, 3}, lent, 1)
			for i, page := range order {
				p.addFree(Run{page, 1}, 1, fences[i])
			}
			assert.EqualValues(t, 3, p.table[0].run)
			assert.EqualValues(t, 3, p.table[0].fence, "%v in the order %v", fences, order)
		}
	}
}
