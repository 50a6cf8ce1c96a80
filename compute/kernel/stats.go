package kernel

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"
)

// Origin says where the code of a variant came from.
type Origin uint8

// The origins.
const (
	Known    Origin = iota // it was there, or asked for before
	Compiled               // the driver compiled it
	Stored                 // it came from the store
)

// String names the origin.
func (o Origin) String() string {
	switch o {
	case Known:
		return "known"
	case Compiled:
		return "compiled"
	case Stored:
		return "stored"
	}
	return fmt.Sprintf("Origin(%d)", uint8(o))
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (o Origin) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Stats are counts of a compiler. Times are summed over calls, which may overlap on several threads.
type Stats struct {
	Hits     int64 `json:"hits"`     // calls that found the code of a text there, or asked for before; warm runs are not counted
	Misses   int64 `json:"misses"`   // that did not
	Compiled int64 `json:"compiled"` // texts and sources that were compiled
	Stored   int64 `json:"stored"`   // whose image came from the store
	Refused  int64 `json:"refused"`  // of Compiled: the driver refused the store's image
	Failed   int64 `json:"failed"`   // that could not be loaded

	CompileTime time.Duration `json:"-"` // of Compiled
	LoadTime    time.Duration `json:"-"` // of Stored

	Tabled int64 `json:"tabled"` // kinds of work whose variant a table chose
	// rows of tables that were passed over: they are of other code, or of a variant that there is no more
	StaleRows      int64         `json:"stale_rows"`
	Tuned          int64         `json:"tuned"`           // measurements that were completed
	Disqualified   int64         `json:"disqualified"`    // variants that computed something else, or could not be run
	TuningFailed   int64         `json:"tuning_failed"`   // measurements that were not completed
	TuningDeferred int64         `json:"tuning_deferred"` // runs that measured nothing because a stream was captured
	TuningTime     time.Duration `json:"-"`
}

// MarshalJSON implements json.Marshaler: durations are in seconds.
func (s Stats) MarshalJSON() ([]byte, error) {
	type plain Stats
	return json.Marshal(struct { // The fields after a duration are repeated, which keeps the order.
		plain
		CompileTime    float64 `json:"compile_time_seconds"`
		LoadTime       float64 `json:"load_time_seconds"`
		Tabled         int64   `json:"tabled"`
		StaleRows      int64   `json:"stale_rows"`
		Tuned          int64   `json:"tuned"`
		Disqualified   int64   `json:"disqualified"`
		TuningFailed   int64   `json:"tuning_failed"`
		TuningDeferred int64   `json:"tuning_deferred"`
		TuningTime     float64 `json:"tuning_time_seconds"`
	}{
		plain(s), s.CompileTime.Seconds(), s.LoadTime.Seconds(), s.Tabled, s.StaleRows, s.Tuned, s.Disqualified, s.TuningFailed,
		s.TuningDeferred, s.TuningTime.Seconds(),
	})
}

// String has the counts in one line.
func (s Stats) String() string {
	return fmt.Sprintf("hits %d, misses %d, compiled %d (%v), stored %d (%v), refused %d, failed %d, "+
		"tabled %d, stale rows %d, tuned %d (%v), disqualified %d, tuning failed %d, tuning deferred %d",
		s.Hits, s.Misses, s.Compiled, s.CompileTime, s.Stored, s.LoadTime, s.Refused, s.Failed,
		s.Tabled, s.StaleRows, s.Tuned, s.TuningTime, s.Disqualified, s.TuningFailed, s.TuningDeferred)
}

// counts are the statistics as they are counted.
type counts struct {
	hits, misses, compiled, stored, refused, failed          atomic.Int64
	compileNanos, loadNanos                                  atomic.Int64
	tabled, stale, tuned, disqualified, unfinished, deferred atomic.Int64
	tuningNanos                                              atomic.Int64
}
