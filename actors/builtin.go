//go:build vram_builtin

package actors

// linkedFramework is our own: an actor is its mailbox and its worker, and nothing else knows of it.
// It suspends and restarts no actor, and has neither addresses nor watchers.
type linkedFramework struct{ box *mailbox }

// halt is the system message of stop.
type halt struct{}

func (f *linkedFramework) spawn(b *mailbox) error {
	f.box = b
	b.runInline()
	return nil
}

func (f *linkedFramework) receive(m Message) { f.box.behavior.Receive(m) }

func (f *linkedFramework) receivePoison() { f.box.close() }

// receiveSystem is called with halt alone: there is no other.
func (f *linkedFramework) receiveSystem(any) { f.box.close() }

func (f *linkedFramework) stop() { f.box.postSystem(halt{}) }
