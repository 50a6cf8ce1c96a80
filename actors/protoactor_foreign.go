//go:build !vram_builtin

package actors

import "github.com/asynkron/protoactor-go/actor"

// foreign carries protoactor's messages: user messages that are not ours, and envelopes.
type foreign struct {
	Link
	body any
}

// Fail passes the failure on to a message of ours inside an envelope, and tells a sender that
// waits.
func (f *foreign) Fail(err error) {
	_, body, sender := actor.UnwrapEnvelope(f.body)
	if m, ok := body.(Message); ok {
		m.Fail(err)
	}
	if sender != nil {
		shared().root.Send(sender, &actor.DeadLetterResponse{})
	}
}

// failDeadLetter answers messages of ours that were sent to the address of an actor that is gone.
func failDeadLetter(event any) {
	letter, ok := event.(*actor.DeadLetterEvent)
	if !ok {
		return
	}
	if m, ok := letter.Message.(Message); ok {
		fail(nil, m, ErrStopped)
	}
}
