package streams

import (
	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/fence/line"
)

// fencing is one action on the fences of a used stream: take one, look at them, or both.
type fencing struct {
	line   *fence.Timeline
	number uint64 // of a use; take a fence that covers it; 0: take none
	look   bool   // query how far the device has come
}

// perform reports whether more has passed than before, or a fence was lost.
func (f fencing) perform() (advanced bool) {
	_ = guard(f.line.Panics, func() (err error) { // a failed call is due again at the next look
		if f.look {
			if advanced, err = f.line.Look(); err != nil {
				return err
			}
		}
		_, err = f.line.Take(f.number) // 0 is not owed
		return err
	})
	return advanced
}

// maxYields is how often a sweep yields to goroutines that look at the same fences: some tenths of
// a millisecond on an idle processor. Not more: a goroutine that is held up in a driver call would
// hold the sweep up.
const maxYields = 1000

// sweep takes the fence and looks at it, until every goroutine that looked at the same time has
// stored its result.
func (f fencing) sweep(host actors.Host) {
	fencing{f.line, f.number, true}.perform()
	fencing{f.line, 0, true}.perform() // the fence that was just taken may have passed
	for n := 0; n < maxYields && f.line.Busy() && !f.line.Passed(f.number); n++ {
		actors.Yield(host)
		fencing{f.line, 0, true}.perform()
	}
}

// maxWaits is how many fences a wait waits for in turn: not fewer than there can be before the
// wanted one.
const maxWaits = 2 * fence.CellCount

// wait waits until a fence that covers the number has passed, if there is one or it can be taken.
func (f fencing) wait(host actors.Host) (passed bool) {
	for range maxWaits {
		if err := guard(f.line.Panics, func() error { return f.waitOldest(host) }); err != nil || f.line.Passed(f.number) {
			break
		}
	}
	return f.line.Passed(f.number)
}

func (f fencing) waitOldest(host actors.Host) error {
	if _, err := f.line.Take(f.number); err != nil {
		return err
	}
	others, err := f.line.Wait()
	if others != nil {
		actors.Wait(host, others)
	}
	return err
}

// timeline returns the owner of a line.
func timeline(l *line.Line) *fence.Timeline {
	t, _ := l.Owner().(*fence.Timeline) // the lines of a device's streams have no other owner
	return t
}
