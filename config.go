package vram

import (
	"fmt"
	"log/slog"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/pool/core"
	streamcore "github.com/go-vram/vram/streams/core"
)

// Ptr is a 64-bit device address; for cgo a CUdeviceptr, never an unsafe.Pointer.
type Ptr = cudadrv.Ptr

// StreamHandle is a CUstream as a number.
type StreamHandle = cudadrv.Stream

// Config says what to open and how it behaves.
type Config struct {
	// Driver finds the device. Nil is libcuda, as dynamic.New with its zero Config; for others see DriverNamed.
	Driver cudadrv.Driver
	// Ordinal is the device's number with the driver.
	Ordinal int
	// LimitBytes bounds what is held from the driver, at any time. 0: MemoryFraction of the device. One above the device's memory
	// bounds nothing: the device's memory is the limit then, as Stats.LimitBytes says. One below a page of the device
	// (Info().GranularityBytes) would let nothing be allocated: the first use of the device refuses it with a *ConfigError.
	LimitBytes int64
	// MemoryFraction of the device's physical memory, over 0 up to 1. 0: 1. It has no effect where LimitBytes is set.
	MemoryFraction float64
	// Footprint trades driver time for memory.
	Footprint Footprint
	// Segments is the kind of memory that is held from the driver.
	Segments Segments
	// Waits says when a stream gets memory that another has given back and may still be working on.
	Waits Waits
	// StreamCacheBytes bounds what each stream keeps free for its own next requests. What is over it goes to the pool when the
	// stream's turn ends. 0: no bound; the pool takes back what it needs for others.
	StreamCacheBytes int64
	// PoolCacheBytes bounds what the pool keeps free for all streams. What is over it goes back to the driver at ticks, ten times a
	// second. 0: no bound.
	PoolCacheBytes int64
	// Predict maps memory ahead of the next burst of a program that works in bursts. It takes effect only where memory goes back to the
	// driver in between: streams that give theirs back (Stream.Return, a StreamCacheBytes, two idle seconds) to a pool with PoolCacheBytes.
	// There the pool learns at what intervals streams take memory from it and how much, and from the third burst on maps as much shortly before the
	// next is due, holds it until shortly after, whatever PoolCacheBytes says, and gives it back if the burst does not come. See Stats.Predicted.
	//
	// With a burst a second, callers waited 0 to 2 ns an event for the driver on 13 recorded and made traces. Without Predict, at the same mean
	// memory, they waited 4 to 358 ns: 106 on maskrcnn_train, which held no more at its peak either; others held 1 to 12 percent
	// more there. Where bursts are as short as 0.1 s it holds much more: docs/decisions/012 has the figures.
	Predict bool
	// Warm is mapped in the background once the device is open; that is its first use then.
	Warm []Demand
	// Stats is how closely the device counts.
	Stats StatsLevel
	// Debug holds the pool's books against themselves after every message, and those of each stream at every tick:
	// whose do not balance is quarantined. Every driver job is logged at the level Debug. The places of allocations and
	// frees are kept, so that *FreeError and *InUseError name them: no magazine serves without a turn of its stream then, and each
	// request and each free notes its place. Without it nothing of this costs anything.
	Debug bool
	// Observer is told of each buffer. One with a function costs as much as Debug's places.
	Observer Observer
	// OnOutOfMemory is asked about a request that would fail for want of memory, or begin to wait, after all that the allocator
	// could do by itself. It may free buffers, Trim, give up caches of the program's own; true has the request tried once
	// more, up to 16 times. It runs on a goroutine of its own, outside every turn, several at once for several requests; the request
	// waits for it and holds nothing meanwhile, others go on. A panic in it is no, and part of the error. It must not wait
	// for a request of its own that would ask it again. Nil: nobody is asked.
	OnOutOfMemory func(*OutOfMemoryError) (retry bool)
	// Logger hears of what Events tells, of driver jobs that fail and of changed settings. Nil: nobody does. It is
	// called as the functions of Events are.
	Logger *slog.Logger
	// Events are told what happens.
	Events Events
	// Tuning is for experiments: leave it zero.
	Tuning Tuning
}

// Demand is a number of buffers of a size.
type Demand struct {
	Bytes int64
	Count int
}

// Footprint is how closely the memory held from the driver follows what lives.
type Footprint uint8

// The footprint modes.
const (
	// Balanced holds up to a twelfth more than the live peak (1.00 to 1.09 times it on real traces, 1.15 with five
	// streams) and, where demand repeats, soon makes no driver calls.
	Balanced Footprint = iota
	// Lean holds about 1.2 percent more than the live peak, in physical allocations of one page; it keeps moving memory
	// between holes. A first gigabyte costs 12 ms of the driver's time, and copies are four percent slower.
	Lean
	// Fast prefers few large physical allocations: the least driver time.
	Fast
)

var footprintNames = [...]string{Balanced: "balanced", Lean: "lean", Fast: "fast"} //nolint:gochecknoglobals // constant table

// String is the mode's name.
func (f Footprint) String() string { return nameOf(footprintNames[:], int(f), "Footprint") }

// ParseFootprint knows "balanced", "lean" and "fast".
func ParseFootprint(s string) (Footprint, error) {
	i, err := parseName(footprintNames[:], s, "Footprint", "balanced, lean or fast")
	return Footprint(i), err
}

// pages counts a handle length for a page of any size.
func pages(bytes, pageBytes int64) uint32 {
	return uint32(max(1, min(bytes, pool.MostBytes)/pageBytes)) //nolint:gosec // pages of one arena
}

// policy is what the mode means to the pool. Measured on eight real traces; see docs/decisions.
func (f Footprint) policy(pageBytes int64, limited bool) core.Policy {
	var p core.Policy
	switch f {
	case Balanced:
		p = core.Policy{
			HandlePages: pages(128<<20, pageBytes), LongPages: pages(200<<20, pageBytes), MergePages: pages(96<<20, pageBytes),
			SpareBytes: 28 << 20, Step: 16, OverStep: 8, Slack: 85, SteadySlack: 16, SharedSlack: 160,
		}
	case Lean:
		p = core.Policy{HandlePages: 1, Slack: 12}
	case Fast:
		p = core.Policy{HandlePages: pages(256<<20, pageBytes), Step: 16, SteadyStep: 64, Slack: 140, SteadySlack: 80}
	}
	if limited { // whole free handles must be found at the limit, from the first byte
		p.HandlePages, p.LongPages, p.MergePages, p.SpareBytes = 1, 0, 0, 0
	}
	return p
}

// check says which field cannot be.
func (c *Config) check() error {
	if err := atLeastZero([]bound{
		{"Ordinal", int64(c.Ordinal)},
		{"LimitBytes", c.LimitBytes},
		{"StreamCacheBytes", c.StreamCacheBytes},
		{"PoolCacheBytes", c.PoolCacheBytes},
	}); err != nil {
		return err
	}
	if c.MemoryFraction < 0 || c.MemoryFraction > 1 || c.MemoryFraction != c.MemoryFraction {
		return &ConfigError{"MemoryFraction", c.MemoryFraction, "over 0 and at most 1, or 0 for all"}
	}
	switch {
	case int(c.Footprint) >= len(footprintNames):
		return &ConfigError{"Footprint", c.Footprint, "Balanced, Lean or Fast"}
	case int(c.Segments) >= len(segmentsNames):
		return &ConfigError{"Segments", c.Segments, "SegmentsAuto, SegmentsVMM or SegmentsPlain"}
	case int(c.Waits) >= len(waitsNames):
		return &ConfigError{"Waits", c.Waits, "WaitsNever, WaitsAvoidGrowth or WaitsAlways"}
	case int(c.Stats) >= len(statsNames):
		return &ConfigError{"Stats", c.Stats, "StatsOn, StatsOff or StatsExact"}
	}
	if err := c.Tuning.check(); err != nil {
		return err
	}
	return checkDemands(c.Warm)
}

func checkDemands(want []Demand) error {
	for i, d := range want {
		if d.Bytes <= 0 || d.Count < 0 {
			return &ConfigError{fmt.Sprintf("Warm[%d]", i), d, "a size of 1 byte or more and a count of 0 or more"}
		}
	}
	return nil
}

// ofStream are the settings of a stream.
func (c *Config) ofStream() streamcore.Settings {
	return streamcore.Settings{
		Budget: streamcore.Budget{CacheBytes: c.StreamCacheBytes, CacheRanges: c.Tuning.StreamCacheBlocks},
		Exact:  c.Stats == StatsExact,
	}
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
		return &ConfigError{"LimitBytes", c.LimitBytes, fmt.Sprintf("at least %d, one page of %s, or 0 for all of it", pageBytes, info.Name)}
	}
	return &ConfigError{"MemoryFraction", c.MemoryFraction, fmt.Sprintf(
		"a part of the %d bytes of %s that holds one page of %d, or 0 for all of it", info.TotalBytes, info.Name, pageBytes)}
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
		Waits:      c.Waits.policy(),
		Predict:    c.Predict,
	}
}
