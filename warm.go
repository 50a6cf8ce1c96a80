package vram

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/pool"
)

// warmRunBytes is the longest run that is mapped ahead in one piece. Not longer: a warm-up holds
// its runs until all are there, and a short run fits more holes. Not shorter: large buffers.
const warmRunBytes = 1 << 30

// Warm maps memory ahead of need for that many buffers of those sizes, beside the live ones, so
// that allocating them makes no driver call. Free memory of the pool counts; the streams' caches do
// not. Any request may take the memory, and Trim and Config.PoolCacheBytes release it. See Reserve
// for memory of certain requests alone.
//
// Warm waits until all is mapped or ctx ends; mapped memory stays. Other requests go first
// meanwhile. Events.Warm reports the progress. Errors: *ConfigError for an invalid demand,
// *LimitError where the limit leaves no room, the context's, ErrClosed, and those of the first use
// of the device.
func (d *Device) Warm(ctx context.Context, want ...Demand) error {
	if err := d.callable(ctx); err != nil {
		return err
	}
	refuse := func(i int, wanted string) error {
		return badArgument("Device.Warm", fmt.Sprintf("demand %d", i), want[i], wanted)
	}
	if err := checkDemands(want, refuse); err != nil {
		return err
	}
	e, err := d.use() //nolint:contextcheck // the first use is not this caller's alone
	if err != nil {
		return err
	}
	runs, err := warmRuns(want, e.pool.PageBytes(), d.limit.Load())
	if err != nil {
		return failed("warm", err)
	}
	_, err = e.pool.Warm(ctx, runs)
	if errors.Is(err, pool.ErrClosed) {
		return deviceClosed()
	}
	if err != nil {
		return failed("warm", err)
	}
	return nil
}

// warmRuns cuts a demand into runs of pages. Small buffers share pages; large ones begin anywhere
// in a run, but each run holds a whole number of them. A demand that exceeds the limit by itself,
// and small ones that do together, are refused here: they need not be a number that can be counted
// in pages.
func warmRuns(want []Demand, pageBytes, limitBytes int64) ([]uint32, error) {
	var runs []uint32
	var small int64
	for _, w := range want {
		if int64(w.Count) > limitBytes/w.Bytes {
			return nil, tooMuch(w, limitBytes)
		}
		if w.Bytes <= sizeclass.MaxBytes {
			class := sizeclass.Of(sizeclass.Units(w.Bytes))
			blocks := int64(sizeclass.SpanBlocks(class))
			spans := (int64(w.Count) + blocks - 1) / blocks
			if small += spans * int64(sizeclass.SpanUnits(class)) << sizeclass.UnitShift; small > limitBytes {
				return nil, tooMuch(w, limitBytes)
			}
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
	return runs, nil
}

// tooMuch refuses a demand that the limit leaves no room for, by itself or behind those before it.
func tooMuch(w Demand, limitBytes int64) error {
	wanted := int64(math.MaxInt64)
	if int64(w.Count) <= wanted/w.Bytes {
		wanted = int64(w.Count) * w.Bytes
	}
	return fmt.Errorf("%d buffers of %d bytes: %w", w.Count, w.Bytes, &LimitError{WantedBytes: wanted, LimitBytes: limitBytes})
}

func pagesFor(bytes, pageBytes int64) uint32 {
	return uint32((bytes + pageBytes - 1) / pageBytes)
}
