package streams

import (
	"slices"
	"sync/atomic"

	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/fence/line"
	"github.com/go-vram/vram/streams/core"
)

// Peers are the streams of one device: those that may use each other's buffers. The zero value is ready. Any
// number of goroutines may use it.
type Peers struct {
	lines line.Lines
	slack core.Allowance
	all   atomic.Pointer[[]*Stream] // replaced, never changed
}

// list are the streams that have not ended.
func (p *Peers) list() []*Stream {
	if all := p.all.Load(); all != nil {
		return *all
	}
	return nil
}

func (p *Peers) change(edit func([]*Stream) []*Stream) {
	for {
		old := p.all.Load()
		var next []*Stream
		if old != nil {
			next = append(next, *old...)
		}
		if next = edit(next); p.all.CompareAndSwap(old, &next) {
			return
		}
	}
}

// join adds a stream and gives its timeline a number, if one is left.
func (p *Peers) join(s *Stream) {
	s.number = unnumbered
	if number, ok := p.lines.Add(&s.line.Line); ok {
		s.number = number
	}
	p.change(func(all []*Stream) []*Stream { return append(all, s) })
}

// unnumbered stands for the number of a stream that has none.
const unnumbered = -1

// leave drops a stream that nobody can have memory of any more. Idempotent.
func (p *Peers) leave(s *Stream) {
	p.change(func(all []*Stream) []*Stream {
		return slices.DeleteFunc(all, func(other *Stream) bool { return other == s })
	})
}

// timeline is whose line it is.
func timeline(l *line.Line) *fence.Timeline {
	t, _ := l.Owner().(*fence.Timeline) // the lines of a device's streams have no other owner
	return t
}

// pending reports whether any stream has memory that waits for uses on others.
func (p *Peers) pending() bool {
	for _, s := range p.list() {
		if s.waits.Load() {
			return true
		}
	}
	return false
}
