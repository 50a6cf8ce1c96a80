package vram

import (
	"reflect"
	"strings"
)

// Tuning is for experiments: constants that the allocator chooses well by itself, and that no program has to set. The zero value is
// what was measured to be best; a 0 in a field is that field's own choice. None of them changes what is correct, only time and memory.
type Tuning struct {
	// SegmentBytes is the longest physical allocation that is asked of the driver at once: longer ones take fewer calls, and their holes
	// are harder to use again. A plain segment is longer where a single request is. 0: what the footprint mode says, one page to 256 MiB.
	SegmentBytes int64
	// StreamCacheBlocks is the most free ranges of a page or longer that each stream keeps, beside Config.StreamCacheBytes. The
	// ranges over it go to the pool when the stream's turn ends. 0: no bound.
	StreamCacheBlocks int
	// PoolCacheBlocks is the most free ranges that the pool keeps, beside Config.PoolCacheBytes. The shortest ones over it go back to
	// the driver at ticks, ten times a second. 0: no bound.
	PoolCacheBlocks int
	// PressureMark is the share of the limit in use from which on the level is PressureHigh, over 0 up to 1. 0: 0.85. 1: there are no
	// levels above PressureNormal. See PressureLevel.
	PressureMark float64
}

// check says which field cannot be.
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
