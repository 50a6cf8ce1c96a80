package replay

import (
	"context"
	"fmt"
	"math"

	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/internal/units"
)

// ladder is where the search for the least limit looks first, as multiples of the peak live bytes.
// Its rungs are closest where good allocators are; above the last one the search doubles.
var ladder = [...]float64{ //nolint:gochecknoglobals // a constant table
	1, 1.005, 1.01, 1.02, 1.03, 1.04, 1.05, 1.075, 1.1, 1.15, 1.2, 1.3, 1.4, 1.6, 1.8, 2,
}

// mostTimesPeak ends the search: an allocator that needs more than this is not short of memory.
const mostTimesPeak = 64

// minCapacity finds the least limit, to a thousandth of the peak, that all rounds survive.
func minCapacity(ctx context.Context, tr *trace.Trace, o Options, result *Result) error {
	o.Hazards, o.Observe = false, nil
	peakBytes := tr.Info.PeakLiveBytes
	try := func(limitBytes int64) (bool, error) {
		ok, err := survives(ctx, tr, &o, limitBytes)
		if err == nil {
			result.Probes = append(result.Probes, Probe{LimitBytes: limitBytes, Survived: ok})
		}
		return ok, err
	}
	below, least, err := climb(peakBytes, try)
	if err != nil {
		return err
	}
	if least == 0 {
		return fmt.Errorf("%s: no limit up to %d times the peak of %s live is enough: the device may have less", tr.Name, mostTimesPeak, units.Bytes(peakBytes))
	}
	stepBytes := max(peakBytes/1000, 1)
	for least-below > stepBytes {
		middle := below + (least-below)/2
		ok, err := try(middle)
		if err != nil {
			return err
		}
		if ok {
			least = middle
		} else {
			below = middle
		}
	}
	result.MinCapacityBytes = least
	result.MinCapacityOverLive = float64(least) / float64(peakBytes)
	return nil
}

// climb goes up the ladder to the first limit that survives. below is the rung under it, which did
// not; least is 0 where none survives.
func climb(peakBytes int64, try func(int64) (bool, error)) (below, least int64, err error) {
	below = peakBytes - 1 // cannot survive: the live bytes alone are more
	for rung := 0; ; rung++ {
		factor := ladder[len(ladder)-1] * math.Pow(2, float64(rung-len(ladder)+1))
		if rung < len(ladder) {
			factor = ladder[rung]
		}
		if factor > mostTimesPeak {
			return below, 0, nil
		}
		limitBytes := int64(math.Ceil(factor * float64(peakBytes)))
		ok, err := try(limitBytes)
		if err != nil {
			return 0, 0, err
		}
		if ok {
			return below, limitBytes, nil
		}
		below = limitBytes
	}
}
