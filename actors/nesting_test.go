//go:build race || invariants

package actors

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestATurnInsideATurnIsCaught(t *testing.T) {
	r, other := spawn(t, &probe{}), spawn(t, &probe{})
	for name, nested := range map[string]func(){
		"call":     func() { other.Call(newJob(nil)) },
		"enter":    func() { other.TryEnter() },
		"the same": func() { r.Call(newJob(nil)) },
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(nested)
			r.Call(j)
			require.ErrorContains(t, j.wait(), "inside the turn of probe")
			err := turn(r, nested)
			require.ErrorContains(t, err, "inside the turn of probe")
		})
	}
	enter(r)
	assert.Nil(t, r.Leave())
}

func TestAMessageQueuedTwiceIsCaught(t *testing.T) {
	r := spawn(t, &probe{})
	release := occupy(r)
	j := newJob(nil)
	r.Tell(j)
	assert.PanicsWithError(t, errQueuedTwice.Error(), func() { r.Tell(j) })
	assert.PanicsWithError(t, errQueuedTwice.Error(), func() { r.Call(j) })
	idle := spawn(t, &probe{})
	assert.PanicsWithError(t, errQueuedTwice.Error(), func() { idle.Call(j) }, "in the mailbox of another actor")
	release()
	require.NoError(t, j.wait())
	again := newJob(nil)
	r.Call(again)
	again.answered = make(chan struct{})
	again.answerCount.Store(0)
	idle.Call(again)
	require.NoError(t, again.wait(), "a message that was received may be posted again")
}
