package kernel

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/internal/jsontext"
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

// Stats are counts of a compiler. Times are those of calls, and may overlap on several threads.
type Stats struct {
	Hits     int64 // calls that found the code of a text there, or asked for before; warm runs are not counted
	Misses   int64 // that did not
	Compiled int64 // texts and sources that were compiled
	Stored   int64 // whose image came from the store
	Refused  int64 // of Compiled: the driver refused the store's image
	Failed   int64 // that could not be loaded

	CompileTime time.Duration // of Compiled
	LoadTime    time.Duration // of Stored

	Tabled         int64 // kinds of work whose variant a table chose
	StaleRows      int64 // rows of tables that were passed over: they are of other code, or of a variant that there is no more
	Tuned          int64 // measurements that were completed
	Disqualified   int64 // variants that computed something else, or could not be run
	TuningFailed   int64 // measurements that were not completed
	TuningDeferred int64 // runs that measured nothing because a stream was captured
	TuningTime     time.Duration
}

// MarshalJSON implements json.Marshaler: keys are the fields' names in snake_case, durations are in seconds.
func (s Stats) MarshalJSON() ([]byte, error) { return jsontext.Object(s) }

// String has the counts in one line.
func (s Stats) String() string {
	return fmt.Sprintf("hits %d, misses %d, compiled %d (%v), stored %d (%v), refused %d, failed %d, "+
		"tabled %d, stale rows %d, tuned %d (%v), disqualified %d, tuning failed %d, tuning deferred %d",
		s.Hits, s.Misses, s.Compiled, s.CompileTime, s.Stored, s.LoadTime, s.Refused, s.Failed,
		s.Tabled, s.StaleRows, s.Tuned, s.TuningTime, s.Disqualified, s.TuningFailed, s.TuningDeferred)
}

// counts are the statistics as they are counted.
type counts struct {
	hits, misses, compiled, stored, refused, failed         atomic.Int64
	compileNanos, loadNanos                                 atomic.Int64
	tabled, stale, tuned, disqualified, unfinished, awaited atomic.Int64
	tuningNanos                                             atomic.Int64
}

// loaded counts loaded code.
func (c *counts) loaded(m *cuda.Module, from Origin, took time.Duration) *code {
	if from == Stored {
		c.stored.Add(1)
		c.loadNanos.Add(int64(took))
	} else {
		c.compiled.Add(1)
		c.compileNanos.Add(int64(took))
	}
	return &code{m, from, took}
}

// Stats may be called at any time. The counts are not of one instant.
func (c *Compiler) Stats() Stats {
	if c == nil {
		return Stats{}
	}
	n := &c.counts
	return Stats{
		Hits: n.hits.Load(), Misses: n.misses.Load(), Compiled: n.compiled.Load(), Stored: n.stored.Load(), Refused: n.refused.Load(),
		Failed: n.failed.Load(), CompileTime: time.Duration(n.compileNanos.Load()), LoadTime: time.Duration(n.loadNanos.Load()),
		Tabled: n.tabled.Load(), StaleRows: n.stale.Load(), Tuned: n.tuned.Load(), Disqualified: n.disqualified.Load(),
		TuningFailed: n.unfinished.Load(), TuningDeferred: n.awaited.Load(), TuningTime: time.Duration(n.tuningNanos.Load()),
	}
}
