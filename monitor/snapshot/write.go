package snapshot

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-vram/vram/internal/pickle"
)

// ErrBadSnapshot is wrapped by the errors of snapshots that cannot be written or shown.
var ErrBadSnapshot = errors.New("snapshot: cannot be shown")

// errNoSnapshot is the error of a nil Snapshot.
var errNoSnapshot = fmt.Errorf("%w: it is nil", ErrBadSnapshot)

// mostDevices bounds ordinals: each device up to the last one has a history.
const mostDevices = 1 << 10

// Write writes the snapshot as Python's pickle. It does not check that it fits together: see Check. Errors: the writer's, and
// one that wraps ErrBadSnapshot for a nil snapshot, and for an unknown device, state, action or setting.
func Write(w io.Writer, s *Snapshot) error {
	if s == nil {
		return errNoSnapshot
	}
	p := &printer{stacks: map[stackKey]*pickle.Shared{}, noStack: &pickle.Shared{Value: pickle.Values()}}
	for i := range s.Segments {
		if d := s.Segments[i].Device; d < 0 || d >= mostDevices {
			return fmt.Errorf("%w: segment %#x is on device %d, want 0 to %d", ErrBadSnapshot, s.Segments[i].Address, d, mostDevices-1)
		}
	}
	settings, err := settings(s.Settings)
	if err != nil {
		return err
	}
	value := pickle.Dict{
		{Key: "segments", Value: list(s.Segments, p.segment)},
		{Key: "device_traces", Value: list(traces(s), p.trace)},
		{Key: "allocator_settings", Value: settings},
		{Key: "external_annotations", Value: pickle.Values()},
	}
	if err := pickle.Encode(w, value); err != nil {
		return fmt.Errorf("snapshot: %w", errors.Join(p.err, err))
	}
	return p.err
}

// traces has one for each device that has a segment: the viewer looks for it.
func traces(s *Snapshot) []Trace {
	all := slices.Clone(s.Traces)
	for i := range s.Segments {
		for len(all) <= s.Segments[i].Device {
			all = append(all, nil)
		}
	}
	return all
}

// list returns each element as the function has it.
func list[T any](elements []T, value func(*T) any) pickle.List {
	return func(yield func(any) bool) {
		for i := range elements {
			if !yield(value(&elements[i])) {
				return
			}
		}
	}
}

func settings(lines []Setting) (pickle.Dict, error) {
	d := make(pickle.Dict, 0, len(lines))
	for _, line := range lines {
		switch line.Value.(type) {
		case nil, string, bool, int, int64, uint64, float64:
			d = append(d, pickle.Item{Key: line.Name, Value: line.Value})
		default:
			return nil, fmt.Errorf("%w: setting %s is a %T", ErrBadSnapshot, line.Name, line.Value)
		}
	}
	return d, nil
}

// stackKey is the backing array of a stack.
type stackKey struct {
	first *Frame
	count int
}

// printer makes values of parts of one snapshot.
type printer struct {
	stacks  map[stackKey]*pickle.Shared
	noStack *pickle.Shared
	err     error // the first
}

// mainPool is PyTorch's name for the pool that is not a graph's.
func mainPool() pickle.Tuple { return pickle.Tuple{0, 0} }

func (p *printer) segment(s *Segment) any {
	var liveBytes, activeBytes, requestedBytes int64
	for i := range s.Blocks {
		b := &s.Blocks[i]
		if b.State == Free {
			continue
		}
		activeBytes += b.Bytes
		requestedBytes += b.RequestedBytes
		if b.State == Live {
			liveBytes += b.Bytes
		}
	}
	kind := "large"
	if s.Small {
		kind = "small"
	}
	return pickle.Dict{
		{Key: "device", Value: s.Device},
		{Key: "address", Value: s.Address},
		{Key: "total_size", Value: s.Bytes},
		{Key: "allocated_size", Value: liveBytes},
		{Key: "active_size", Value: activeBytes},
		{Key: "requested_size", Value: requestedBytes},
		{Key: "stream", Value: s.Stream},
		{Key: "segment_type", Value: kind},
		{Key: "segment_pool_id", Value: mainPool()},
		{Key: "is_expandable", Value: s.Expandable},
		{Key: "frames", Value: p.stack(s.Stack)},
		{Key: "blocks", Value: list(s.Blocks, p.block)},
	}
}

func (p *printer) block(b *Block) any {
	return pickle.Dict{
		{Key: "address", Value: b.Address},
		{Key: "size", Value: b.Bytes},
		{Key: "requested_size", Value: b.RequestedBytes},
		{Key: "state", Value: p.state(b.State)},
		{Key: "frames", Value: p.stack(b.Stack)},
	}
}

func (p *printer) trace(t *Trace) any { return list(*t, p.event) }

func (p *printer) event(e *Event) any {
	place := pickle.Item{Key: "addr", Value: e.Address}
	if e.Action == OutOfMemory {
		place = pickle.Item{Key: "device_free", Value: e.DeviceFreeBytes}
	}
	return pickle.Dict{
		{Key: "action", Value: p.action(e.Action)},
		place,
		{Key: "size", Value: e.Bytes},
		{Key: "stream", Value: e.Stream},
		{Key: "time_us", Value: e.Micros},
		{Key: "segment_pool_id", Value: mainPool()},
		{Key: "frames", Value: p.stack(e.Stack)},
	}
}

func (p *printer) stack(s Stack) *pickle.Shared {
	if len(s) == 0 {
		return p.noStack
	}
	key := stackKey{&s[0], len(s)}
	shared := p.stacks[key]
	if shared == nil {
		shared = &pickle.Shared{Value: list(s, p.frame)}
		p.stacks[key] = shared
	}
	return shared
}

func (p *printer) frame(f *Frame) any {
	return pickle.Dict{{Key: "filename", Value: f.File}, {Key: "line", Value: f.Line}, {Key: "name", Value: f.Function}}
}

func (p *printer) state(s State) string {
	return p.word(s.String(), int(s) < len(stateNames), "state", int(s))
}

func (p *printer) action(a Action) string {
	return p.word(a.String(), int(a) < len(actionNames), "action", int(a))
}

// word returns a word of the format, or the report of a number that has none.
func (p *printer) word(name string, known bool, of string, number int) string {
	if !known {
		p.wrong(of, number)
	}
	return name
}

func (p *printer) wrong(of string, number int) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: there is no %s %d", ErrBadSnapshot, of, number)
	}
}
