package simulation

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Seeds that broke a promise once, of thousands that did not, by the defect that they found. Each defect has a test of its own
// where it was: a seed plays another run once the simulation draws other actions.
func TestSeedsThatBrokeAPromise(t *testing.T) {
	for _, found := range []struct {
		seed   uint64
		steps  int
		defect string
	}{
		{51070910, 5000, "a stream at work kept spans that no buffer used"},
		{51130223, 5000, "an idle stream did not notice a free into a magazine that served nobody"},
		{90005247, 5000, "the pool lent pages to an idle adopted stream, which could not return them to a request that waited"},
		{821005937, 5000, "a lookup during a free returned the handle that the slot's next buffer would have"},
		{840010686, 5000, "a request was refused for a capture that had ended before it, since a fence was found in the graph later"},
		{1103, 3000, "the pool got the fence of a Return in a capture that had begun and ended during the record"},
	} {
		t.Run(strconv.FormatUint(found.seed, 10), func(t *testing.T) {
			t.Parallel()
			_, err := Run(Options{Seed: found.seed, Steps: found.steps, replays: replays})
			assert.NoError(t, err, found.defect)
		})
	}
}
