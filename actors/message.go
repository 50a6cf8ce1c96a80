package actors

import (
	"errors"

	"github.com/go-vram/vram/internal/recovered"
)

// Message is anything that can be posted: a pointer to a struct that embeds Link. It is in at most
// one mailbox at a time, and may be posted again once it was received or failed.
type Message interface {
	link() *Link

	// Fail is the answer of a message that will never be received, or whose turn panicked. It is
	// called exactly once, on the posting goroutine when the mailbox is closed already, otherwise
	// inside a turn: it must not block or post by Call.
	Fail(err error)
}

// Link makes the struct that embeds it a Message, together with a Fail method. The zero value is
// ready for use. The message must not be copied while it is queued.
type Link struct {
	next    *Link
	message Message // Set while queued.
}

func (l *Link) link() *Link { return l }

// fail answers m with an error. Fail is the owner's code: a panic in it must not keep the other
// messages from their answers.
func (b *mailbox) fail(m Message, err error) { fail(b.panics, m, err) }

func fail(panics *recovered.Log, m Message, err error) {
	returned := false
	defer func() {
		if !returned {
			panics.Report(newPanicError("Fail of a message", recover()).report())
		}
	}()
	m.Fail(err)
	returned = true
}

var errQueuedTwice = errors.New("actors: message is queued already")

func checkUnqueued(l *Link) {
	if checked && l.message != nil {
		panic(errQueuedTwice)
	}
}
