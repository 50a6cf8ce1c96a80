package vram

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/pool/core"
)

// Ptr is a 64-bit device address; for cgo a CUdeviceptr, never an unsafe.Pointer.
type Ptr = cudadrv.Ptr

// StreamHandle is a CUstream as a number.
type StreamHandle = cudadrv.Stream

// Config selects the device, and configures its allocator. The zero value is the first GPU, all of
// its memory, in the mode Balanced.
type Config struct {
	// Driver reaches the GPU. Nil: NVIDIA's libcuda, as dynamic.New(dynamic.Config{}). DriverNamed
	// makes one by name.
	Driver cudadrv.Driver
	// Ordinal is the device's number with the driver, from 0.
	Ordinal int
	// LimitBytes bounds the memory that is held from the driver. 0: MemoryFraction of the device.
	// More than the device has means all that it has; Stats.LimitBytes is the bound in force. Less
	// than one page of the device (Info().GranularityBytes) is refused with a *ConfigError, by the
	// first use of the device.
	LimitBytes int64
	// MemoryFraction is the limit as a share of the device's memory, over 0 up to 1. 0: 1.
	// LimitBytes goes before it.
	MemoryFraction float64
	// Footprint sets how much memory may be held beyond live memory to save driver calls.
	Footprint Footprint
	// Segments is the kind of memory that is held from the driver.
	Segments Segments
	// Waits sets whether a stream's work may be made to wait, on the device, for memory that
	// another stream's work still uses.
	Waits Waits
	// StreamCacheBytes bounds the free memory that each stream keeps for its own next requests. The
	// excess goes to the pool when the stream's turn ends. 0: no bound; the pool reclaims memory
	// that others need.
	StreamCacheBytes int64
	// PoolCacheBytes bounds the free memory that the pool keeps for all streams. The excess goes to
	// the driver at ticks, ten times a second. 0: no bound.
	PoolCacheBytes int64
	// ReleaseAfter is the time after which unused memory is released: a stream that works returns
	// it to the pool, and after as long again the pool releases it to the driver. A loop whose steps
	// and pauses are shorter keeps its memory. Memory that Warm mapped stays until it was used, and
	// plain segments stay: freeing one waits for all work of the device. Stream.Trim and Device.Trim
	// release at once. 0: 1.5 s with Lean, 15 s with Balanced, 60 s with Fast. Negative: never.
	ReleaseAfter time.Duration
	// Predict maps memory ahead of the next burst of a program that works in bursts. It takes
	// effect only where memory goes back to the driver in between: where streams return their
	// memory (Stream.Trim, a StreamCacheBytes, two idle seconds) to a pool with PoolCacheBytes.
	// There the pool learns the intervals at which streams take memory from it and how much. From
	// the third burst on it maps as much shortly before the next is due, and holds it until shortly
	// after, even beyond PoolCacheBytes; if the burst does not come it releases the memory. See
	// Stats.Predicted.
	//
	// With a burst a second, callers waited 0 to 2 ns an event for the driver on 13 recorded and
	// made traces. Without Predict, at the same mean memory, they waited 4 to 358 ns: 106 on
	// maskrcnn_train, which held no more at its peak either; others held 1 to 12 percent more
	// there. Where bursts are as short as 0.1 s it holds much more: docs/decisions/015 has the
	// figures.
	Predict bool
	// Warm is mapped ahead as Device.Warm does, in the background: Open is the first use of the
	// device then. Memory that cannot be mapped ahead is mapped when it is needed.
	Warm []Demand
	// Stats sets how closely the device counts.
	Stats StatsLevel
	// SampleBytes is the mean number of allocated bytes for each sample of Device.Profile: a buffer is
	// sampled with a probability of its block's bytes divided by SampleBytes; one of as many or more
	// always is. A stream that takes more than 256 samples in 100 ms doubles the number until these are
	// over, again after each 32 samples: that takes 2 % of its time at most, and weights follow. A
	// sample keeps the call stack of its allocation, and costs a microsecond; other buffers cost a
	// nanosecond. 0: none is taken. DefaultSampleBytes suits most programs; 1 is every buffer. 1 TiB is
	// the maximum: more means that.
	SampleBytes int64
	// Debug keeps the call stack of each allocation and free, so that *FreeError and *InUseError
	// name them. It checks the allocator's own
	// books, the pool's after each message and a stream's ten times a second: a part whose books do
	// not balance is quarantined. Every driver job is logged at the level Debug. Off, none of this
	// costs anything.
	Debug bool
	// Observer has functions that are called for each buffer that is allocated or freed. With one
	// set the call stack of each is kept, as with Debug.
	Observer Observer
	// OnOutOfMemory is called with a request that would fail for want of memory, or begin to wait,
	// once the allocator can do no more by itself. It may free buffers, call Trim, or empty caches
	// of the program; where it returns true the request is tried again, up to 16 times. It runs on
	// a goroutine of its own, several at once for several requests. Its request waits for it and
	// holds nothing meanwhile; others go on. A panic in it counts as false, and is part of the
	// error. It must not wait for a request that would call it again.
	OnOutOfMemory func(*OutOfMemoryError) (retry bool)
	// Logger gets the same events as Events, driver jobs that fail, and changed settings. It is
	// called as the functions of Events are. A *slog.Logger is one. Nil, or a nil pointer: none.
	Logger Logger
	// Events has functions that are called when something has happened.
	Events Events
	// Tuning is for experiments: leave it zero.
	Tuning Tuning
}

// Demand is a number of buffers of one size.
type Demand struct {
	Bytes int64
	Count int
}

// Footprint is how closely the memory held from the driver follows the memory in live buffers.
type Footprint uint8

// The footprint modes.
const (
	// Balanced holds up to a twelfth more than the live peak: 1.00 to 1.09 times it on recorded
	// traces of one stream, 1.15 on one of five. Where demand repeats it soon makes no driver
	// calls.
	Balanced Footprint = iota
	// Lean holds about 1.2 percent more than the live peak. Its physical allocations are one page
	// long, and it remaps them from hole to hole all the time: the first gigabyte costs 12 ms of
	// driver time, and copies are four percent slower.
	Lean
	// Fast takes few, long physical allocations: the least driver time, and the most memory.
	Fast
)

var footprintNames = [...]string{Balanced: "balanced", Lean: "lean", Fast: "fast"} //nolint:gochecknoglobals // constant table

// String is the mode's name.
func (f Footprint) String() string { return nameOf(footprintNames[:], int(f), "Footprint") }

// MarshalText implements encoding.TextMarshaler: the name.
func (f Footprint) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler, as ParseFootprint reads.
func (f *Footprint) UnmarshalText(text []byte) (err error) { return unmarshal(text, f, ParseFootprint) }

// ParseFootprint reads "balanced", "lean" or "fast". The error is a *ConfigError.
func ParseFootprint(s string) (Footprint, error) {
	i, err := parseName(footprintNames[:], s, "ParseFootprint", "balanced, lean or fast")
	return Footprint(i), err
}

// pages counts a handle length for a page of any size.
func pages(bytes, pageBytes int64) uint32 {
	return uint32(max(1, min(bytes, pool.MostBytes)/pageBytes)) //nolint:gosec // pages of one arena
}

// policy is the mode in the pool's figures. Measured on eight real traces; see docs/decisions.
func (f Footprint) policy(pageBytes int64, limited bool) core.Policy {
	var p core.Policy
	switch f {
	case Balanced:
		p = core.Policy{
			HandlePages: pages(128<<20, pageBytes), LongPages: pages(200<<20, pageBytes), MergePages: pages(96<<20, pageBytes),
			SpareBytes: 28 << 20, Step: 16, OverStep: 8, Slack: 85, SteadySlack: 16,
			SharedSlack: 160, MostSharedSlack: 380, PageWorth: 12,
		}
	case Lean:
		p = core.Policy{HandlePages: 1, Slack: 12}
	case Fast:
		p = core.Policy{HandlePages: pages(256<<20, pageBytes), Step: 16, SteadyStep: 64, Slack: 140, SteadySlack: 80, SharedSlack: 380, MostSharedSlack: 380, PageWorth: 4}
	}
	if limited { // whole free handles must be found at the limit, from the first byte
		p.HandlePages, p.LongPages, p.MergePages, p.SpareBytes = 1, 0, 0, 0
	}
	return p
}

// ageTicks is ReleaseAfter in ticks, at least 1; 0: never.
func (c *Config) ageTicks() uint32 {
	after := c.ReleaseAfter
	if after == 0 {
		after = c.Footprint.releaseAfter()
	}
	return uint32(max(0, min((after+tickInterval-1)/tickInterval, math.MaxInt32))) //nolint:gosec // bounded
}

// releaseAfter is the default of ReleaseAfter.
func (f Footprint) releaseAfter() time.Duration {
	switch f {
	case Lean:
		return 1500 * time.Millisecond
	case Fast:
		return time.Minute
	case Balanced:
	}
	return 15 * time.Second
}

// check returns the error of a field with an invalid value.
func (c *Config) check() error {
	if err := atLeastZero([]bound{
		{"Ordinal", int64(c.Ordinal)},
		{"LimitBytes", c.LimitBytes},
		{"StreamCacheBytes", c.StreamCacheBytes},
		{"PoolCacheBytes", c.PoolCacheBytes},
		{"SampleBytes", c.SampleBytes},
	}); err != nil {
		return err
	}
	if c.MemoryFraction < 0 || c.MemoryFraction > 1 || c.MemoryFraction != c.MemoryFraction {
		return badField("MemoryFraction", c.MemoryFraction, "over 0 and at most 1, or 0 for all")
	}
	switch {
	case int(c.Footprint) >= len(footprintNames):
		return badField("Footprint", c.Footprint, "Balanced, Lean or Fast")
	case int(c.Segments) >= len(segmentsNames):
		return badField("Segments", c.Segments, "SegmentsAuto, SegmentsVMM or SegmentsPlain")
	case int(c.Waits) >= len(waitsNames):
		return badField("Waits", c.Waits, "WaitsNever, WaitsAvoidGrowth or WaitsAlways")
	case int(c.Stats) >= len(statsNames):
		return badField("Stats", c.Stats, "StatsOn, StatsOff or StatsExact")
	}
	if err := c.Tuning.check(); err != nil {
		return err
	}
	return checkDemands(c.Warm, func(i int, want string) error { return badField(fmt.Sprintf("Warm[%d]", i), c.Warm[i], want) })
}

// checkDemands refuses the first demand that cannot be.
func checkDemands(demands []Demand, refuse func(i int, want string) error) error {
	for i, d := range demands {
		if d.Bytes <= 0 || d.Count < 0 {
			return refuse(i, "a size of 1 byte or more and a count of 0 or more")
		}
	}
	return nil
}

// plain reports whether a device is served by plain segments.
func (c *Config) plain(info cudadrv.Info) bool {
	return c.Segments == SegmentsPlain || !info.Capabilities.Has(cudadrv.VirtualMemory)
}

// checkLimit refuses a limit below one page of the device.
func (c *Config) checkLimit(info cudadrv.Info) error {
	pageBytes := pool.PageBytes(info, c.plain(info))
	if c.settings(info).LimitBytes >= pageBytes {
		return nil
	}
	if c.LimitBytes > 0 {
		return badField("LimitBytes", c.LimitBytes, fmt.Sprintf("at least %d, one page of %s, or 0 for all of it", pageBytes, info.Name))
	}
	return badField("MemoryFraction", c.MemoryFraction, fmt.Sprintf(
		"a part of the %d bytes of %s that holds one page of %d, or 0 for all of it", info.TotalBytes, info.Name, pageBytes))
}

// settings of the pool for a device.
func (c *Config) settings(info cudadrv.Info) core.Settings {
	limit, limited := c.LimitBytes, c.LimitBytes > 0 && c.LimitBytes < info.TotalBytes
	if c.LimitBytes == 0 {
		limit = info.TotalBytes
		if c.MemoryFraction > 0 {
			limit = int64(c.MemoryFraction * float64(info.TotalBytes))
			limited = c.MemoryFraction < 1
		}
	}
	plain := c.plain(info)
	pageBytes := pool.PageBytes(info, plain)
	policy := c.Footprint.policy(pageBytes, limited && !plain) // a plain segment is whole anyway
	if longest := c.Tuning.SegmentBytes; longest > 0 {
		policy.HandlePages, policy.LongPages = pages(min(longest, pool.MostBytes), pageBytes), 0
		policy.MergePages = min(policy.MergePages, policy.HandlePages/2)
	}
	return core.Settings{
		Policy:     policy,
		LimitBytes: min(limit, info.TotalBytes, pool.MostBytes),
		CacheBytes: c.PoolCacheBytes,
		CacheRuns:  c.Tuning.PoolCacheBlocks,
		AgeTicks:   c.ageTicks(),
		Waits:      c.Waits.policy(),
		Predict:    c.Predict,
	}
}

// configPointer is a pointer to a Config that is replaced, never changed.
type configPointer struct{ at atomic.Pointer[plainConfig] }

// plainConfig is a Config without its methods: a program that prints none is not linked with them.
type plainConfig Config

// Load is the present Config.
func (p *configPointer) Load() *Config { return (*Config)(p.at.Load()) }

// Store replaces it.
func (p *configPointer) Store(c *Config) { p.at.Store((*plainConfig)(c)) }

// CompareAndSwap replaces it where it is old.
func (p *configPointer) CompareAndSwap(old, next *Config) bool {
	return p.at.CompareAndSwap((*plainConfig)(old), (*plainConfig)(next))
}
