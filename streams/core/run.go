package core

// Run is a sequence of pages of the arena.
type Run struct {
	First, Pages uint32
}

// End is the page behind the last.
func (r Run) End() uint32 { return r.First + r.Pages }
