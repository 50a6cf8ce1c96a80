package vram

import (
	"context"
	"fmt"

	"github.com/go-vram/vram/internal/sizeclass"
)

// warmRunBytes is the longest sequence that is mapped ahead in one piece. Not longer: a warm-up holds
// what it has until all is there, and a short piece fits more holes. Not shorter: large buffers.
const warmRunBytes = 1 << 30

// Warm maps memory ahead for that many buffers of those sizes, beside what is in use: later allocations
// of them make no driver call. It waits until all is there or ctx ends; what was mapped stays. Errors:
// *ConfigError, the context's, and one that says that the limit leaves no room.
func (d *Device) Warm(ctx context.Context, want ...Demand) error {
	if err := checkDemands(want); err != nil {
		return err
	}
	if _, err := d.pool.Warm(ctx, warmRuns(want, d.pool.PageBytes())); err != nil {
		return fmt.Errorf("vram: warm: %w", err)
	}
	return nil
}

// warmRuns cuts a demand into runs of pages. Small buffers share pages; large ones begin anywhere in a
// run, but each run holds a whole number of them.
func warmRuns(want []Demand, pageBytes int64) []uint32 {
	var runs []uint32
	var small int64
	for _, w := range want {
		if w.Bytes <= sizeclass.MaxBytes {
			class := sizeclass.Of(sizeclass.Units(w.Bytes))
			blocks := int64(sizeclass.SpanBlocks(class, 62))
			spans := (int64(w.Count) + blocks - 1) / blocks
			small += spans * int64(sizeclass.SpanUnits(class)) << sizeclass.UnitShift
			continue
		}
		block := int64(sizeclass.Units(w.Bytes)) << sizeclass.UnitShift
		perRun := max(1, warmRunBytes/block)
		for left := int64(w.Count); left > 0; left -= perRun {
			runs = append(runs, pagesFor(block*min(left, perRun), pageBytes))
		}
	}
	if small > 0 {
		runs = append(runs, pagesFor(small, pageBytes))
	}
	return runs
}

func pagesFor(bytes, pageBytes int64) uint32 {
	return uint32((bytes + pageBytes - 1) / pageBytes)
}
