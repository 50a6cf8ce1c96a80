package vram

import (
	"reflect"
	"strings"
)

// Tuning is for experiments: constants that the allocator chooses well by itself, and that no
// program has to set. The zero value is the best by measurement; a 0 in a field is that field's own
// choice. No value makes the allocator incorrect: they change only time and memory.
type Tuning struct {
	// SegmentBytes is the longest physical allocation that is requested from the driver at once:
	// longer ones take fewer calls, and their holes are harder to use again. A plain segment is
	// longer where a single request is. 0: the footprint mode's choice, one page to 256 MiB.
	SegmentBytes int64
	// StreamCacheBlocks bounds the free ranges of a page or longer that each stream keeps, beside
	// Config.StreamCacheBytes. The excess goes to the pool when the stream's turn ends. 0: no
	// bound.
	StreamCacheBlocks int
	// PoolCacheBlocks bounds the free ranges that the pool keeps, beside Config.PoolCacheBytes. The
	// shortest ones of the excess go back to the driver at ticks, ten times a second. 0: no bound.
	PoolCacheBlocks int
	// PressureMark is the share of the limit in use from which on the level is PressureHigh, over 0
	// up to 1. 0: 0.85. 1: there are no levels above PressureNormal. See PressureLevel.
	PressureMark float64
}

// check returns the error of a field with an invalid value.
func (t *Tuning) check() error {
	if err := atLeastZero([]bound{
		{"Tuning.SegmentBytes", t.SegmentBytes},
		{"Tuning.StreamCacheBlocks", int64(t.StreamCacheBlocks)},
		{"Tuning.PoolCacheBlocks", int64(t.PoolCacheBlocks)},
	}); err != nil {
		return err
	}
	if t.PressureMark < 0 || t.PressureMark > 1 || t.PressureMark != t.PressureMark {
		return badField("Tuning.PressureMark", t.PressureMark, "over 0 and at most 1, or 0 for 0.85")
	}
	return nil
}

// bound is a field that may not be negative.
type bound struct {
	field string
	value int64
}

func atLeastZero(fields []bound) error {
	for _, f := range fields {
		if f.value < 0 {
			return badField(f.field, f.value, "0 or more")
		}
	}
	return nil
}

// String names the fields that are set.
func (t Tuning) String() string {
	var set []string
	fields := reflect.ValueOf(t)
	for i := range fields.NumField() {
		if f := fields.Field(i); !f.IsZero() {
			set = append(set, printed(fields.Type().Field(i).Name, f))
		}
	}
	if len(set) == 0 {
		return "nothing tuned"
	}
	return "{" + strings.Join(set, ", ") + "}"
}
