package snapshot_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/monitor/snapshot"
)

// Each thing over which a viewer stumbles is an error that says it.
func TestCheckFinds(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*snapshot.Snapshot)
		want   string
	}{
		"a gap":             {func(s *snapshot.Snapshot) { s.Segments[0].Blocks[1].Address += 512 }, "where the one before it ends"},
		"a short segment":   {func(s *snapshot.Snapshot) { s.Segments[0].Blocks[2].Bytes -= 512 }, "its blocks end at"},
		"an overlap":        {func(s *snapshot.Snapshot) { s.Segments[1].Device = 0 }, "overlaps"},
		"no bytes":          {func(s *snapshot.Snapshot) { s.Segments[1].Bytes = 0 }, "more than 0 bytes"},
		"more than it has":  {func(s *snapshot.Snapshot) { s.Segments[0].Blocks[0].RequestedBytes = 5 * mib }, "were requested"},
		"a lost allocation": {func(s *snapshot.Snapshot) { s.Segments[0].Blocks[0].State = snapshot.Free }, "event 1: its allocation at 0x7f0000000000"},
		"a lost free":       {func(s *snapshot.Snapshot) { s.Segments[0].Blocks[1].State = snapshot.Live }, "event 6: its "},
		"a free of memory":  {func(s *snapshot.Snapshot) { s.Traces[0][5].Address = 0x7f00_0000_0000 }, "event 5: its freed block at 0x7f0000000000 is in use"},
		"a free of nothing": {func(s *snapshot.Snapshot) { s.Traces[0][5].Address = 512 }, "lies in no segment"},
		"a map of nothing":  {func(s *snapshot.Snapshot) { s.Traces[0][0].Bytes = 9 * mib }, "is no segment after it"},
		"a map after a use": {func(s *snapshot.Snapshot) { s.Traces[0] = append(s.Traces[0], s.Traces[0][0]) }, "is in use before it is mapped"},
		"an unmap that is not": {func(s *snapshot.Snapshot) {
			s.Traces[0] = append(s.Traces[0], snapshot.Event{Action: snapshot.Unmap, Address: 0x7f00_0000_0000, Bytes: mib})
		}, "is a segment after it"},
		"an unmap of no bytes": {func(s *snapshot.Snapshot) {
			s.Traces[0] = append(s.Traces[0], snapshot.Event{Action: snapshot.Unmap, Address: 0x7f00_0000_0000 + 64*mib})
		}, "is a segment after it"},
		"a block of no bytes": {func(s *snapshot.Snapshot) {
			s.Segments[1].Blocks = append(s.Segments[1].Blocks, snapshot.Block{Address: 0x7f00_0000_0000 + 2*mib})
		}, "has 0 bytes"},
		"no such action": {func(s *snapshot.Snapshot) { s.Traces[0][8].Action = 77 }, "there is no action 77"},
	} {
		t.Run(name, func(t *testing.T) {
			s := small()
			c.change(s)
			err := snapshot.Check(s)
			require.ErrorIs(t, err, snapshot.ErrBadSnapshot)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

// Segments may be in any order: those that lie side by side fit, and two that overlap do not, wherever they are in the list.
func TestSegmentsInAnyOrder(t *testing.T) {
	t.Parallel()
	segment := func(address uint64) snapshot.Segment {
		return snapshot.Segment{Address: address, Bytes: 4096, Blocks: []snapshot.Block{{Address: address, Bytes: 4096}}}
	}
	for _, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		for _, overlap := range []uint64{0, 512} {
			all := []snapshot.Segment{segment(0x1000), segment(0x2000 - overlap), segment(0x3000)}
			s := &snapshot.Snapshot{Segments: []snapshot.Segment{all[order[0]], all[order[1]], all[order[2]]}}
			err := snapshot.Check(s)
			if overlap == 0 {
				require.NoError(t, err, "%v", order)
				continue
			}
			require.ErrorIs(t, err, snapshot.ErrBadSnapshot, "%v", order)
			require.ErrorContains(t, err, "overlaps")
		}
	}
}

// A use of the first byte that is mapped is a use, and adjacent memory of another stream is another segment.
func TestCheckKeepsUsesAndStreamsApart(t *testing.T) {
	const at, bytes = 0x1000, 4096
	used := &snapshot.Snapshot{
		Segments: []snapshot.Segment{{Address: at, Bytes: bytes, Blocks: []snapshot.Block{{Address: at, Bytes: bytes, State: snapshot.Live}}}},
		Traces:   []snapshot.Trace{{{Action: snapshot.Map, Address: at, Bytes: bytes}}},
	}
	require.ErrorContains(t, snapshot.Check(used), "is in use before it is mapped")
	for stream, fits := range map[uint64]bool{1: true, 2: false} {
		unmapped := &snapshot.Snapshot{
			Segments: []snapshot.Segment{{Address: at, Bytes: bytes, Stream: 1, Blocks: []snapshot.Block{{Address: at, Bytes: bytes}}}},
			Traces: []snapshot.Trace{{
				{Action: snapshot.Map, Address: at, Bytes: 2 * bytes, Stream: 1}, {Action: snapshot.Unmap, Address: at + bytes, Bytes: bytes, Stream: stream},
			}},
		}
		if err := snapshot.Check(unmapped); fits {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "is no segment after it")
		}
	}
}

// The smallest block and unmapped segment have one byte.
func TestOneByteFits(t *testing.T) {
	s := small()
	s.Segments[1].Blocks = []snapshot.Block{{Address: 0x7f00_0000_0000, Bytes: 1}, {Address: 0x7f00_0000_0001, Bytes: 2*mib - 1}}
	s.Traces[0] = append(s.Traces[0], snapshot.Event{Action: snapshot.Unmap, Address: 0x7f00_0000_0000 + 64*mib, Bytes: 1})
	require.NoError(t, snapshot.Check(s))
}

// A history whose segments were read some events later keeps the events that fit.
func TestFitLeavesOutWhatDoesNotFit(t *testing.T) {
	s := small()
	count, err := snapshot.Fit(s)
	require.NoError(t, err)
	assert.Zero(t, count, "all of it fits")

	// The block that is live at the end was freed after the segments and before the events were read.
	s.Traces[0] = append(s.Traces[0], snapshot.Event{Action: snapshot.FreeRequested, Address: 0x7f00_0000_0000, Bytes: 4 * mib},
		snapshot.Event{Action: snapshot.FreeCompleted, Address: 0x7f00_0000_0000, Bytes: 4 * mib})
	require.Error(t, snapshot.Check(s))
	count, err = snapshot.Fit(s)
	require.NoError(t, err)
	assert.Equal(t, 2, count)
	require.NoError(t, snapshot.Check(s))

	s.Segments[0].Bytes--
	for _, wrong := range []*snapshot.Snapshot{s, nil} {
		_, err = snapshot.Fit(wrong)
		require.ErrorIs(t, err, snapshot.ErrBadSnapshot)
		require.ErrorIs(t, snapshot.Check(wrong), snapshot.ErrBadSnapshot)
	}
}

// history plays random events on a device forwards, and keeps the state after the last one.
type history struct {
	pages  []bool // mapped, a page each
	blocks map[int]snapshot.State
	trace  snapshot.Trace
}

const pageBytes = 64

func (h *history) note(a snapshot.Action, page, count int) {
	h.trace = append(h.trace, snapshot.Event{Action: a, Address: uint64(page * pageBytes), Bytes: int64(count * pageBytes)})
}

// run maps or unmaps the page and some following ones that are in the same state and not in use.
func (h *history) run(t *rapid.T, a snapshot.Action, page int) {
	most := rapid.IntRange(1, len(h.pages)-page).Draw(t, "run")
	was, count := h.pages[page], 0
	for count < most && h.pages[page+count] == was {
		if _, used := h.blocks[page+count]; used {
			break
		}
		h.pages[page+count] = !was
		count++
	}
	h.note(a, page, count)
}

func (h *history) play(t *rapid.T) {
	page := rapid.IntRange(0, len(h.pages)-1).Draw(t, "page")
	state, used := h.blocks[page]
	switch {
	case !h.pages[page]:
		h.run(t, rapid.SampledFrom([]snapshot.Action{snapshot.Map, snapshot.Reserve}).Draw(t, "maps"), page)
	case used && state == snapshot.Live:
		h.blocks[page] = snapshot.Pending
		h.note(snapshot.FreeRequested, page, 1)
	case used:
		delete(h.blocks, page)
		h.note(snapshot.FreeCompleted, page, 1)
	case rapid.Bool().Draw(t, "unmap"):
		h.run(t, rapid.SampledFrom([]snapshot.Action{snapshot.Unmap, snapshot.Release}).Draw(t, "unmaps"), page)
	default:
		h.blocks[page] = snapshot.Live
		h.note(snapshot.Alloc, page, 1)
	}
}

// segments are the mapped pages as they are, those side by side in one.
func (h *history) segments() (all []snapshot.Segment) {
	for page, mapped := range h.pages {
		if !mapped {
			continue
		}
		b := snapshot.Block{Address: uint64(page * pageBytes), Bytes: pageBytes, State: h.blocks[page]}
		if page == 0 || !h.pages[page-1] {
			all = append(all, snapshot.Segment{Address: b.Address, Expandable: true})
		}
		last := &all[len(all)-1]
		last.Bytes += pageBytes
		last.Blocks = append(last.Blocks, b)
	}
	return all
}

// Any histories of several devices fit to their results, from any event on; and if parts were read at different moments, Fit keeps
// the events that fit, and counts the others of all devices.
func TestHistoriesFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s snapshot.Snapshot
		var earlier []snapshot.Segment
		events := 0
		for device := range rapid.IntRange(1, 3).Draw(t, "devices") {
			h := history{pages: make([]bool, rapid.IntRange(1, 6).Draw(t, "pages")), blocks: map[int]snapshot.State{}}
			var read []snapshot.Segment
			for range rapid.IntRange(0, 60).Draw(t, "events") {
				h.play(t)
				if rapid.IntRange(0, 9).Draw(t, "read") == 0 {
					read = h.segments()
				}
			}
			trace := h.trace[rapid.IntRange(0, len(h.trace)).Draw(t, "begin"):]
			events += len(trace)
			s.Traces = append(s.Traces, slices.Clone(trace))
			s.Segments = append(s.Segments, of(device, h.segments())...)
			earlier = append(earlier, of(device, read)...)
		}
		require.NoError(t, snapshot.Check(&s))
		kept := func() (count int) {
			for _, trace := range s.Traces {
				count += len(trace)
			}
			return count
		}
		count, err := snapshot.Fit(&s)
		require.NoError(t, err)
		require.Zero(t, count)
		require.Equal(t, events, kept())

		s.Segments = earlier
		count, err = snapshot.Fit(&s)
		require.NoError(t, err)
		require.Equal(t, events, count+kept())
		require.NoError(t, snapshot.Check(&s))
	})
}

func of(device int, all []snapshot.Segment) []snapshot.Segment {
	for i := range all {
		all[i].Device = device
	}
	return all
}
