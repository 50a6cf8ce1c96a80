package core

// Run is a sequence of pages of the arena.
type Run struct {
	First, Pages uint32
}

// End is the page behind the last.
func (r Run) End() uint32 { return r.First + r.Pages }

// Contains reports whether a page is one of the run's.
func (r Run) Contains(page uint32) bool { return r.First <= page && page < r.End() }

// Overlaps reports whether the runs have a page in common.
func (r Run) Overlaps(o Run) bool { return r.First < o.End() && o.First < r.End() }

// Abuts reports whether one run begins where the other ends.
func (r Run) Abuts(o Run) bool { return r.End() == o.First || o.End() == r.First }
