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

// Error formats the facts in one line.
func (e *LimitError) Error() string {
	return fmt.Sprintf("pool: the limit of %s leaves no room for %s more", units.Bytes(e.LimitBytes), units.Bytes(e.WantedBytes))
}

// warmer maps memory ahead of need. It never takes from clients and never breaks the limit.
type warmer struct {
	settings *Settings
	memory   *memory.Memory
	answers  *answers
	jobs     *jobs
}

// climb takes the next step of a warm-up. It holds its runs until all are there, so that no run is counted twice, and then
// frees them all. Free plain segments that are too short make room for it. It reports whether the request is done.
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
	w.answers.end(r, r.err)
	return true
}

// collect takes the next run of a warm-up from free memory.
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

// place finds a window for the next run of a warm-up. shortBytes is how far it would exceed the limit.
func (w *warmer) place(r *request) (window memory.Window, shortBytes int64, ok bool) {
	pages := r.lengths[len(r.got)]
	if window, ok = w.memory.Room(memory.User{}, pages); !ok {
		r.err = w.limitError(w.memory.Bytes(pages))
		return window, 0, false
	}
	return window, w.memory.ReservedBytes() + w.memory.Bytes(window.Missing) - w.settings.LimitBytes, true
}

func (w *warmer) limitError(wantedBytes int64) error {
	return &LimitError{WantedBytes: wantedBytes, LimitBytes: w.settings.LimitBytes}
}

// letGo frees a warm-up's runs, and reports whether it had any. The warm-up has to search for all of them again.
func (w *warmer) letGo(r *request) bool {
	for _, run := range r.got {
		w.memory.Free(run, memory.Tag{})
		w.memory.Keep(run)
	}
	held := len(r.got) > 0
	r.got = r.got[:0]
	return held
}
