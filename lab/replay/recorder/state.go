package recorder

import (
	"cmp"
	"maps"
	"slices"

	"github.com/go-vram/vram/monitor/snapshot"
)

// snapshot returns the memory as it is now, with the history so far. The caller holds mu.
func (r *Recorder) snapshot() *snapshot.Snapshot {
	r.note(snapshot.Mark, 0, 0, 0, nil)
	s := &snapshot.Snapshot{
		Segments: segments(r.mapped),
		Traces:   make([]snapshot.Trace, r.config.Ordinal+1),
		Settings: []snapshot.Setting{
			{Name: "allocator", Value: "vram"},
			{Name: "trace", Value: r.trace.Name},
			{Name: "footprint", Value: r.config.Footprint.String()},
			{Name: "limit_bytes", Value: r.config.LimitBytes},
			{Name: "reserved_bytes", Value: r.reserved},
		},
	}
	addresses := slices.Sorted(maps.Keys(r.live))
	for i := range s.Segments {
		at := &s.Segments[i]
		at.Device = r.config.Ordinal
		count, _ := slices.BinarySearch(addresses, at.Address+uint64(at.Bytes)) //nolint:gosec // a length
		at.Blocks = r.blocks(at, addresses[:count])
		addresses = addresses[count:]
	}
	s.Traces[r.config.Ordinal] = r.history
	return s
}

// segments returns the mapped ranges, those that lie side by side in one.
func segments(mapped map[uint64]int64) (all []snapshot.Segment) {
	for _, address := range slices.Sorted(maps.Keys(mapped)) {
		if last := len(all) - 1; last >= 0 && all[last].Address+uint64(all[last].Bytes) == address { //nolint:gosec // a length
			all[last].Bytes += mapped[address]
			continue
		}
		all = append(all, snapshot.Segment{Address: address, Bytes: mapped[address], Expandable: true})
	}
	slices.SortFunc(all, func(a, b snapshot.Segment) int { return cmp.Compare(a.Address, b.Address) })
	return all
}

// blocks returns the live buffers of a segment at those addresses, and the free ranges around them.
func (r *Recorder) blocks(at *snapshot.Segment, addresses []uint64) (all []snapshot.Block) {
	next := at.Address
	free := func(to uint64) {
		if to > next {
			all = append(all, snapshot.Block{Address: next, Bytes: int64(to - next)}) //nolint:gosec // within a segment
		}
	}
	for _, address := range addresses {
		free(address)
		b := r.live[address]
		all = append(all, snapshot.Block{Address: address, Bytes: b.bytes, RequestedBytes: b.bytes, State: snapshot.Live, Stack: b.stack})
		next = address + uint64(b.bytes) //nolint:gosec // a length
	}
	free(at.Address + uint64(at.Bytes)) //nolint:gosec // a length
	return all
}
