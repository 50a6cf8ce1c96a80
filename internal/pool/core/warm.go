package core

import (
	"fmt"

	"github.com/go-vram/vram/internal/pool/memory"
	"github.com/go-vram/vram/internal/units"
)

// LimitError reports that memory cannot be mapped ahead, since the limit leaves no room.
type LimitError struct {
	WantedBytes int64 `json:"wanted_bytes"` // more than is held
	LimitBytes  int64 `json:"limit_bytes"`
}

// Error says the facts in one line.
func (e *LimitError) Error() string {
	return fmt.Sprintf("pool: the limit of %s leaves no room for %s more", units.Bytes(e.LimitBytes), units.Bytes(e.WantedBytes))
}

// warmer maps memory ahead of need. It never takes from clients and never breaks the limit.
type warmer struct {
	settings *Settings
	memory   *memory.Memory
	forecast *forecast
	answers  *answers
	jobs     *jobs
}

// climb goes on with a warm-up: it holds the runs that it has got until all are there, so that no run is counted twice, and then frees
// them all. Plain segments that are free and too short make room for it. It reports whether the request is done.
func (w *warmer) climb(r *request) bool {
	for len(r.got) < len(r.lengths) && r.err == nil {
		if w.collect(r) {
			continue
		}
		window, short, ok := w.place(r)
		if !ok {
			break
		}
		ids, bytes := w.memory.Victims(short, window.Run)
		if short > 0 && (!w.memory.Plain() || bytes < short) {
			r.err = w.limitError(w.memory.Bytes(r.lengths[len(r.got)]))
			break
		}
		w.jobs.fill(r, window.Run, ids) // for it, unused segments that are too short are freed
		return false
	}
	w.letGo(r)
	if r.foreseen && r.err != nil {
		w.forecast.spoiled = true
	}
	w.answers.end(r, r.err)
	return true
}

// collect takes the next run of a warm-up from what is free.
func (w *warmer) collect(r *request) bool {
	free, ok := w.memory.Fit(0, r.lengths[len(r.got)])
	if !ok {
		return false
	}
	run, _ := free.Run.Front(r.lengths[len(r.got)])
	w.memory.Lend(run.First, run, warmClient)
	r.got = append(r.got, run)
	return true
}

// place is a window for the next run of a warm-up, and by how much it would break the limit. There is none for one that was foreseen
// once nothing is missing: the step may have begun meanwhile.
func (w *warmer) place(r *request) (window memory.Window, shortBytes int64, ok bool) {
	pages := r.lengths[len(r.got)]
	window, ok = w.memory.Room(memory.User{}, pages)
	switch {
	case r.foreseen:
		if window, ok = w.ahead(r, window, ok); !ok {
			return window, 0, false
		}
	case !ok:
		r.err = w.limitError(w.memory.Bytes(pages))
		return window, 0, false
	}
	return window, w.memory.ReservedBytes() + w.memory.Bytes(window.Missing) - w.settings.LimitBytes, true
}

// ahead is the window for a request that was foreseen: the one that was found, if no more is missing in it than is to be
// reserved still, else as much at the end of the arena.
func (w *warmer) ahead(r *request, found memory.Window, ok bool) (memory.Window, bool) {
	missing := max(0, min(r.keepBytes, w.settings.LimitBytes)-w.memory.ReservedBytes()) / w.memory.PageBytes()
	if ok && int64(found.Missing) <= missing {
		return found, found.Missing > 0
	}
	window, ok := w.memory.AtTheEnd(uint32(missing)) //nolint:gosec // pages of one arena
	return window, ok && missing > 0
}

func (w *warmer) limitError(wantedBytes int64) error {
	return &LimitError{WantedBytes: wantedBytes, LimitBytes: w.settings.LimitBytes}
}

// letGo frees what a warm-up holds, and reports whether that was anything. It has to look for all of it again.
func (w *warmer) letGo(r *request) bool {
	for _, run := range r.got {
		w.memory.Free(run, memory.Tag{})
		if !r.foreseen { // somebody has asked for it, and will use it
			w.memory.Keep(run)
		}
	}
	held := len(r.got) > 0
	r.got = r.got[:0]
	return held
}

// foreseen is the warm-up of what the next rise of demand will want, as one run, so that it serves requests of any length; nil: of
// nothing. Plain segments are held for it, but none is made: their lengths are not known.
func (w *warmer) foreseen() *request {
	if !w.settings.Predict || w.memory.Plain() {
		return nil
	}
	limit := uint64(w.settings.LimitBytes / w.memory.PageBytes()) //nolint:gosec // not negative
	want, reserved := min(w.forecast.wanted(), limit), w.memory.ReservedPages()
	if want <= reserved {
		return nil
	}
	pages := w.memory.MaxCleanPages() + uint32(want-reserved) //nolint:gosec // within the limit
	return &request{
		kind: warm, warming: warming{foreseen: true, lengths: []uint32{pages}},
		keepBytes: int64(want) * w.memory.PageBytes(), ascent: ascent{rung: rungSearch}, //nolint:gosec // likewise
	}
}

// tick tells the forecast of a tick.
func (w *warmer) tick() {
	if w.settings.Predict {
		w.forecast.beat(w.memory.LentPages(), w.memory.ReservedPages())
	}
}

// note tells the forecast what is lent and reserved after a step.
func (w *warmer) note() {
	if w.settings.Predict {
		w.forecast.note(w.memory.LentPages(), w.memory.ReservedPages())
	}
}
