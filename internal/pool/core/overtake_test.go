package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An answer that overtakes pages on their way does not count before they have arrived: nobody is refused for memory
// that is coming, also if it then stays with the client.
func TestAnAnswerWaitsForWhatItOvertook(t *testing.T) {
	t.Parallel()
	for name, stays := range map[string]bool{"it arrives": false, "it stays": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 64, 8, Settings{Policy: Policy{HandlePages: 1, Slack: 4096}, LimitBytes: 8 * pageBytes})
			w.candid = true
			for id := Client(1); id <= 2; id++ {
				w.clients[id] = &holder{}
				w.send(Join{Client: id})
			}
			w.fill(1, 8)
			w.want(2, 3)
			for len(w.asked) > 0 && !w.asked[1] {
				w.give(w.unanswered()[0], 0)
			}
			require.True(t, w.asked[1], "the other is asked")
			coming := Return{Client: 1, Runs: []Run{{First: 0, Pages: 3}}, Sent: 1, LiveBytes: 5 * pageBytes}
			if stays {
				coming.Runs, coming.Kept = nil, 1
			}
			w.mail = append(w.mail, Return{Client: 1, Answer: true, Sent: 1, LiveBytes: 5 * pageBytes}, coming)
			w.deliverAt(0)
			assert.Len(t, w.refills, 1, "neither granted nor refused yet")
			assert.Nil(t, w.job)
			w.deliverAt(0)
			for w.job != nil {
				w.perform(-1, nil)
			}
			assert.Empty(t, w.refills)
			assert.Equal(t, stays, w.held(2) == 0)
		})
	}
}
