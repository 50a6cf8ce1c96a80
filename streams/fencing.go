package streams

import (
	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/fence/line"
)

// fencing is what is to be done about the blocks that wait for the work of another stream.
type fencing struct {
	line   *fence.Timeline
	number uint64 // take a fence that covers it; 0: none
	look   bool   // see how far the device is
}

// perform reports whether more has passed than before, or a fence was lost.
func (f fencing) perform() (advanced bool) {
	_ = guard(f.line.Panics, func() (err error) { // what cannot be taken or asked now is due again
		if f.look {
			if advanced, err = f.line.Look(); err != nil {
				return err
			}
		}
		if f.number == 0 || !f.line.Owed(f.number) {
			return nil
		}
		_, err = f.line.Take(f.number)
		return err
	})
	return advanced
}

// maxYields is how often a sweep lets others go on who are at a fence: some tenths of a millisecond on an idle processor. Not more:
// one that is held up in a driver call would hold the sweep up.
const maxYields = 1000

// sweep takes the fence and looks at it until nobody else is at it who has yet to say what he saw.
func (f fencing) sweep(host actors.Host) {
	fencing{f.line, f.number, true}.perform()
	fencing{f.line, 0, true}.perform() // what was taken just now may have passed
	for n := 0; n < maxYields && f.line.Busy() && !f.line.Passed(f.number); n++ {
		actors.Yield(host)
		fencing{f.line, 0, true}.perform()
	}
}

// maxWaits is how many fences are waited for one after the other: not fewer than there can be before the one that counts.
const maxWaits = 2 * fence.CellCount

// wait waits until a fence has passed that covers the number, if there is one or it can be taken.
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

// timeline is the owner of a line.
func timeline(l *line.Line) *fence.Timeline {
	t, _ := l.Owner().(*fence.Timeline) // the lines of a device's streams have no other owner
	return t
}
