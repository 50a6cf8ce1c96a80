package core

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/pool/memory"
)

// shortageChecks says for each figure of a refusal how a world recomputes it. exact: nothing else happened in the step of the
// refusal, so that the world is as it was then.
func (w *world) shortageChecks(s Shortage, r Refill, lent int, exact bool) map[string]bool {
	var free, pending int64
	w.core.eachFree(func(run Run, tag memory.Tag) {
		free += int64(run.Pages) * pageBytes
		if tag.Client != 0 {
			pending += int64(run.Pages) * pageBytes
		}
	})
	lentPages := map[Client]int64{}
	for i := range w.core.memory.Top() {
		if p := w.core.memory.Page(i); p.State == memory.Lent {
			lentPages[p.Holder]++
		}
	}
	held := !slices.ContainsFunc(s.Holdings, func(h Holding) bool {
		return h.LiveBytes > h.HeldBytes || exact && !h.Reserves && h.HeldBytes != lentPages[h.Client]*pageBytes
	})
	tagged := map[Client]int64{}
	w.core.eachFree(func(run Run, tag memory.Tag) { tagged[tag.Client] += int64(run.Pages) * pageBytes })
	for _, h := range s.Holdings {
		held = held && (!exact || h.UnpassedBytes == tagged[h.Client])
	}
	longest := s.LargestFreeBytes <= s.FreeBytes && (s.LargestFreeBytes > 0) == (s.FreeBytes > 0)
	w.core.eachFree(func(run Run, _ memory.Tag) {
		longest = longest && (!exact || s.LargestFreeBytes >= int64(run.Pages)*pageBytes)
	})
	return map[string]bool{
		"RequestedBytes":   s.RequestedBytes == r.Bytes,
		"FreeBytes":        !exact || s.FreeBytes == free,
		"LargestFreeBytes": longest,
		"PendingBytes":     s.PendingBytes <= s.FreeBytes && (!exact || s.PendingBytes == pending),
		"ReservedBytes":    s.ReservedBytes == w.reservedBytes(),
		"LimitBytes":       s.LimitBytes == w.settings.LimitBytes,
		"LimitSource":      s.LimitSource == w.settings.LimitSource,
		"SharedBytes":      s.SharedBytes == 0,
		"DriverBytes":      s.DriverBytes >= 0 && s.DriverBytes <= int64(len(w.pages)+int(w.driver.capacity))*pageBytes,
		"MissingBytes":     missing(r, lent, s.MissingBytes),
		"Waited":           !s.Waited || r.Patience == Waiting,
		"Holdings":         held,
	}
}

// missing reports whether a number of missing bytes is possible: the sum of all runs of the request, less those that were found,
// in order. Without a found run it is all.
func missing(r Refill, lent int, bytes int64) bool {
	runs := append([]uint32{max(r.Pages, 1)}, r.More...)
	for {
		var sum int64
		for _, n := range runs {
			sum += int64(n) * pageBytes
		}
		switch {
		case sum == bytes:
			return true
		case lent == 0 || len(runs) == 1:
			return false
		}
		runs = runs[1:] // one found run may hold several
	}
}

// checkShortage compares the figures of a refusal with the world.
func (w *world) checkShortage(d Denial, r Refill, fx *Effects) {
	if w.closing || w.abandoned {
		return
	}
	lent := 0
	for _, g := range effect.Left(&fx.Grants) {
		if g.Client == d.Client && g.Token == 0 {
			lent++
		}
	}
	// The step continues with the next request, which takes runs without an effect until it has all of them.
	exact := len(w.refills) == 0 && len(effect.Left(&fx.Grants)) == 0 && len(effect.Left(&fx.Denials)) == 1 && len(effect.Left(&fx.Asks)) == 0 && len(effect.Left(&fx.Ends)) == 0 &&
		fx.Job == nil && w.job == nil && len(w.mail) == 0
	for field, ok := range w.shortageChecks(d.Shortage, r, lent, exact) {
		if !ok {
			w.failf("%s of %+v for %+v, of which %d runs were found", field, d.Shortage, r, lent)
		}
	}
}

// Each figure of a refusal has a check in every world.
func TestEachFigureOfARefusalIsChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8, 8, Settings{LimitBytes: 8 * pageBytes})
	var fields, checked []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Shortage]()) {
		fields = append(fields, f.Name)
	}
	for field := range w.shortageChecks(Shortage{}, Refill{}, 0, false) {
		checked = append(checked, field)
	}
	assert.ElementsMatch(t, fields, checked)
}
