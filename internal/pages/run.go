// Package pages counts memory in pages of the driver's granularity. A Run is a sequence of contiguous pages:
// the pool lends runs to streams, and streams return them.
package pages

// Run is a sequence of contiguous pages.
type Run struct {
	First, Pages uint32
}

// End returns the page after the last.
func (r Run) End() uint32 { return r.First + r.Pages }

// Contains reports whether a page is part of the run.
func (r Run) Contains(page uint32) bool { return page-r.First < r.Pages }

// Covers reports whether every page of another run is part of this one.
func (r Run) Covers(o Run) bool { return r.First <= o.First && o.End() <= r.End() }

// Overlaps reports whether two runs have a page in common.
func (r Run) Overlaps(o Run) bool { return r.First < o.End() && o.First < r.End() }

// Front returns the first pages of the run, and the rest.
func (r Run) Front(count uint32) (front, rest Run) {
	return Run{r.First, count}, Run{r.First + count, r.Pages - count}
}
