package core

import (
	"errors"
	"slices"

	"github.com/go-vram/vram/cudadrv"

	"github.com/go-vram/vram/internal/pool/memory"
)

// checkDenial compares a denial with a dumb bound: one run of pages is not refused if whole handles that are free and clean,
// together with the memory that the limit and the driver leave, have that many pages, and the arena has room to map them
// elsewhere. The latter does not count where the driver does not report its free memory.
func (w *world) checkDenial(d Denial, r Refill) {
	if len(r.More) > 0 || d.Err != nil && !isOutOfMemory(d.Err) || w.closing || w.abandoned || d.Token <= w.disturbed {
		return
	}
	n := max(1, r.Pages)
	whole := w.wholePages()
	there := uint32(0)
	if most := min(uint32(w.settings.LimitBytes/pageBytes), w.driver.capacity); most > w.driver.made { //nolint:gosec // a few
		there = most - w.driver.made
	}
	if w.mute {
		there = 0
	}
	if uint64(w.longestHole()) >= uint64(n)+2 && w.driver.made <= w.driver.capacity && whole+there >= n && w.overLimit() <= whole-min(whole, n) {
		w.failf("%+v, of %d pages, beside %d pages of handles that are free and clean, and %d pages that could be made (%s)", d, n, whole, there, w.sums())
	}
}

func isOutOfMemory(err error) bool { return errors.Is(err, cudadrv.OutOfMemory) }

// overLimit returns how many pages too many are held.
func (w *world) overLimit() uint32 {
	if limit := uint32(w.settings.LimitBytes / pageBytes); w.driver.made > limit { //nolint:gosec // a few
		return w.driver.made - limit
	}
	return 0
}

// wholePages returns the pages of handles with only free and clean pages.
func (w *world) wholePages() (pages uint32) {
	clean := make([]bool, len(w.driver.pages))
	w.core.eachFree(func(run Run, tag memory.Tag) {
		for i := run.First; i < run.End(); i++ {
			clean[i] = tag.Client == 0
		}
	})
	for _, h := range w.driver.handles {
		if h.mapped && !slices.Contains(clean[h.first:h.first+h.pages], false) {
			pages += h.pages
		}
	}
	return pages
}

// longestHole returns how many pages side by side are not there at most.
func (w *world) longestHole() (most uint32) {
	length := uint32(0)
	for i := range w.driver.pages {
		length++
		if w.driver.pages[i].handle != 0 {
			length = 0
		}
		most = max(most, length)
	}
	return most
}
