package simulation

import (
	"slices"

	"github.com/go-vram/vram/cudadrv"
)

// exclusion records that callers declared a stream's kernels to be possibly endless.
type exclusion struct {
	calls    uint64 // of ExcludeFromWaits
	inside   int    // of those, that have not returned
	excluded bool   // the last call said so, and no other was made at the same time
	known    bool   // all has settled since: no request that had begun to wait before is left
}

// excluding is a caller that excludes a stream from waits, or takes that back.
func (w *world) excluding(s *stream, act action) func() {
	exclude := act.b%3 > 0
	return func() {
		x := &s.exclusion
		x.calls++
		x.inside++
		n := x.calls
		x.excluded, x.known = false, false
		if w.mutation != mutateExclude {
			s.ExcludeFromWaits(exclude)
		}
		x.inside--
		x.excluded = exclude && x.calls == n && x.inside == 0
		w.report.Exclusions++
	}
}

// waitsFor checks a wait for an event against exclusions: neither the host nor the device waits for work of an excluded
// stream.
func (d *watched) waitsFor(e cudadrv.Event) {
	of := d.recordedOn[e]
	if of == nil || !of.exclusion.known || of.closing || d.w.current != nil && d.w.current.transfers {
		return
	}
	if until, ok := d.w.watch.Passes(e); ok && until > d.w.watch.Now() {
		d.w.broken("excluded", "somebody waits for the work of stream %d, which is excluded from waits", of.id())
	}
}

// excludedAny reports whether a request may be refused, or wait on, for the work of a stream that nobody waits for.
func (w *world) excludedAny() bool {
	return slices.ContainsFunc(w.era.streams, func(s *stream) bool { return s.exclusion.calls > 0 })
}

// finishExcluded lets the device finish its work where nobody would wait for that.
func (w *world) finishExcluded() {
	if w.excludedAny() {
		w.watch.AdvanceTo(w.watch.Drained())
	}
}
