package snapshot

import (
	"cmp"
	"fmt"
	"slices"
)

// Check finds the first fault that stops a viewer: blocks that do not cover their segment, segments that overlap, and the
// newest event that contradicts the state after it. The error wraps ErrBadSnapshot.
func Check(s *Snapshot) error {
	if s == nil {
		return errNoSnapshot
	}
	if err := checkSegments(s.Segments); err != nil {
		return err
	}
	for device, events := range s.Traces {
		w := newRewind(s.Segments, device)
		for i, e := range slices.Backward(events) {
			if what := w.takeBack(&e); what != "" {
				return fmt.Errorf("%w: device %d, event %d: %s", ErrBadSnapshot, device, i, what)
			}
		}
	}
	return nil
}

// Fit removes the events that contradict the segments or later events, and returns their number. Its error reports invalid
// segments, and wraps ErrBadSnapshot.
func Fit(s *Snapshot) (leftOut int, err error) {
	if s == nil {
		return 0, errNoSnapshot
	}
	if err := checkSegments(s.Segments); err != nil {
		return 0, err
	}
	for device, events := range s.Traces {
		w := newRewind(s.Segments, device)
		kept := make(Trace, 0, len(events))
		for _, e := range slices.Backward(events) {
			if w.takeBack(&e) == "" {
				kept = append(kept, e)
			}
		}
		slices.Reverse(kept)
		leftOut += len(events) - len(kept)
		s.Traces[device] = kept
	}
	return leftOut, nil
}

func checkSegments(segments []Segment) error {
	wrong := func(s *Segment, format string, args ...any) error {
		return fmt.Errorf("%w: segment %#x of device %d: %s", ErrBadSnapshot, s.Address, s.Device, fmt.Sprintf(format, args...))
	}
	ends := map[int]uint64{} // of the segments that were looked at, by device
	inOrder := slices.Clone(segments)
	slices.SortFunc(inOrder, func(a, b Segment) int { return cmp.Compare(a.Address, b.Address) })
	for i := range inOrder {
		s := &inOrder[i]
		if s.Device < 0 || s.Bytes <= 0 {
			return wrong(s, "%d bytes, want a device from 0 and more than 0 bytes", s.Bytes)
		}
		if s.Address < ends[s.Device] {
			return wrong(s, "it overlaps the one that ends at %#x", ends[s.Device])
		}
		ends[s.Device] = s.Address + uint64(s.Bytes)
		next := s.Address
		for _, b := range s.Blocks {
			switch {
			case b.Address != next:
				return wrong(s, "a block is at %#x, want %#x, where the one before it ends", b.Address, next)
			case b.Bytes <= 0 || b.RequestedBytes < 0 || b.RequestedBytes > b.Bytes:
				return wrong(s, "the block at %#x has %d bytes, and %d were requested", b.Address, b.Bytes, b.RequestedBytes)
			}
			next += uint64(b.Bytes)
		}
		if next != ends[s.Device] {
			return wrong(s, "its blocks end at %#x, want %#x", next, ends[s.Device])
		}
	}
	return nil
}

// rewind is a device's memory while its events are taken back, the newest first.
type rewind struct {
	blocks map[uint64]State // of those that are not free, by address
	mapped []extent         // by address; adjacent ones of one stream are merged
}

// extent is a range of mapped addresses of a stream.
type extent struct {
	from, to uint64
	stream   uint64
}

func newRewind(segments []Segment, device int) *rewind {
	w := &rewind{blocks: map[uint64]State{}}
	for i := range segments {
		s := &segments[i]
		if s.Device != device {
			continue
		}
		w.mapped = append(w.mapped, extent{s.Address, s.Address + uint64(s.Bytes), s.Stream}) //nolint:gosec // checked to be positive
		for _, b := range s.Blocks {
			if b.State != Free {
				w.blocks[b.Address] = b.State
			}
		}
	}
	slices.SortFunc(w.mapped, func(a, b extent) int { return cmp.Compare(a.from, b.from) })
	return w
}

// takeBack replaces the state after the event by the state before it. It returns "", or the reason why the event does not lead
// to that state, which is then unchanged.
func (w *rewind) takeBack(e *Event) (what string) {
	if e.Bytes < 0 {
		return fmt.Sprintf("it has %d bytes", e.Bytes)
	}
	state, active := w.blocks[e.Address]
	switch e.Action {
	case Alloc:
		if !active || state != Live {
			return fmt.Sprintf("its allocation at %#x is not live after it", e.Address)
		}
		delete(w.blocks, e.Address)
	case FreeRequested:
		if state != Pending {
			return fmt.Sprintf("its block at %#x is neither pending nor freed after it", e.Address)
		}
		w.blocks[e.Address] = Live
	case FreeCompleted:
		if active {
			return fmt.Sprintf("its freed block at %#x is in use after it", e.Address)
		}
		if _, found := w.find(e.Address); !found {
			return fmt.Sprintf("its freed block at %#x lies in no segment", e.Address)
		}
		w.blocks[e.Address] = Pending
	case Reserve, Map:
		return w.unmap(e)
	case Release, Unmap:
		return w.remap(e)
	case OutOfMemory, Mark:
	default:
		return fmt.Sprintf("there is no action %d", e.Action)
	}
	return ""
}

// find returns the extent that holds the address, or where one would be that does.
func (w *rewind) find(address uint64) (index int, found bool) {
	return slices.BinarySearchFunc(w.mapped, address, func(x extent, address uint64) int {
		switch {
		case x.to <= address:
			return -1
		case x.from > address:
			return 1
		}
		return 0
	})
}

// unmap takes back an event that mapped memory.
func (w *rewind) unmap(e *Event) (what string) {
	to := e.Address + uint64(e.Bytes) //nolint:gosec // checked not to be negative
	i, found := w.find(e.Address)
	if !found || w.mapped[i].to < to || e.Bytes == 0 {
		return fmt.Sprintf("%#x to %#x is no segment after it", e.Address, to)
	}
	for address := range w.blocks {
		if address >= e.Address && address < to {
			return fmt.Sprintf("%#x is in use before it is mapped", address)
		}
	}
	x := w.mapped[i]
	var rest []extent
	if x.from < e.Address {
		rest = append(rest, extent{x.from, e.Address, x.stream})
	}
	if to < x.to {
		rest = append(rest, extent{to, x.to, x.stream})
	}
	w.mapped = slices.Replace(w.mapped, i, i+1, rest...)
	return ""
}

// remap takes back an event that unmapped memory, and joins the memory with its neighbours of the same stream.
func (w *rewind) remap(e *Event) (what string) {
	x := extent{e.Address, e.Address + uint64(e.Bytes), e.Stream} //nolint:gosec // checked not to be negative
	i, found := w.find(x.from)
	if found || i < len(w.mapped) && w.mapped[i].from < x.to || e.Bytes == 0 {
		return fmt.Sprintf("%#x to %#x is a segment after it", x.from, x.to)
	}
	to := i
	if i < len(w.mapped) && w.mapped[i].from == x.to && w.mapped[i].stream == x.stream {
		x.to, to = w.mapped[i].to, i+1
	}
	if i > 0 && w.mapped[i-1].to == x.from && w.mapped[i-1].stream == x.stream {
		x.from, i = w.mapped[i-1].from, i-1
	}
	w.mapped = slices.Replace(w.mapped, i, to, x)
	return ""
}
