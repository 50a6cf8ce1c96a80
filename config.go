package vram

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/pool/core"
	streamcore "github.com/go-vram/vram/streams/core"
)

// Ptr is a 64-bit device address; for cgo a CUdeviceptr, never an unsafe.Pointer.
type Ptr = cudadrv.Ptr

// StreamHandle is a CUstream as a number.
type StreamHandle = cudadrv.Stream

// Config says what to open and how it behaves.
type Config struct {
	// Driver finds the device. Nil is refused with ErrNoDriver: see DriverNamed.
	Driver cudadrv.Driver
	// Ordinal is the device's number with the driver.
	Ordinal int
	// LimitBytes bounds what is held from the driver, at any time. 0: MemoryFraction of the device.
	LimitBytes int64
	// MemoryFraction of the device's physical memory, over 0 up to 1. 0: 1.
	MemoryFraction float64
	// Footprint trades driver time for memory.
	Footprint Footprint
	// SegmentBytes is the longest physical allocation that is asked of the driver at once. 0: what the
	// footprint mode says.
	SegmentBytes int64
	// StreamCacheBytes and StreamCacheBlocks bound what each stream keeps free: bytes, and free ranges
	// that hold a whole page. What is over goes to the pool at the end of a turn. 0: no bound; the pool asks when it needs memory.
	StreamCacheBytes  int64
	StreamCacheBlocks int
	// PoolCacheBytes and PoolCacheBlocks bound what the pool keeps free likewise; what is over goes back to
	// the driver. 0: no bound.
	PoolCacheBytes  int64
	PoolCacheBlocks int
	// Warm is mapped in the background once the device is open.
	Warm []Demand
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
	// Balanced holds about an eighth more than the live peak (1.01 to 1.13 times it on real traces, 1.18
	// with five streams; its budget allows 1.22) and settles without driver calls.
	Balanced Footprint = iota
	// Lean holds about 1.2 percent more than the live peak; it keeps moving memory between holes.
	Lean
	// Fast prefers few large physical allocations: the least driver time.
	Fast
)

var footprintNames = [...]string{Balanced: "balanced", Lean: "lean", Fast: "fast"} //nolint:gochecknoglobals // constant table

// String is the mode's name.
func (f Footprint) String() string {
	if int(f) < len(footprintNames) {
		return footprintNames[f]
	}
	return fmt.Sprintf("Footprint(%d)", uint8(f))
}

// ParseFootprint knows "balanced", "lean" and "fast".
func ParseFootprint(s string) (Footprint, error) {
	for f, name := range footprintNames {
		if s == name {
			return Footprint(f), nil
		}
	}
	return 0, &ConfigError{"Footprint", s, "balanced, lean or fast"}
}

// pages counts a handle length for a granularity of any size, also of none: the pool refuses such a device.
func pages(bytes, pageBytes int64) uint32 { return uint32(max(1, bytes/max(1, pageBytes))) }

// policy is what the mode means to the pool. Measured on eight real traces; see docs/decisions.
func (f Footprint) policy(pageBytes int64, limited bool) core.Policy {
	var p core.Policy
	switch f {
	case Balanced:
		p = core.Policy{HandlePages: pages(128<<20, pageBytes), Step: 16, SteadyStep: 40, Slack: 140, SteadySlack: 80}
	case Lean:
		p = core.Policy{HandlePages: pages(4<<20, pageBytes), Slack: 12}
	case Fast:
		p = core.Policy{HandlePages: pages(256<<20, pageBytes), Step: 16, SteadyStep: 64, Slack: 140, SteadySlack: 80}
	}
	if limited { // whole free handles must be found at the limit, from the first byte
		p.HandlePages = pages(4<<20, pageBytes)
	}
	return p
}

// check says which field cannot be.
func (c *Config) check() error {
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"Ordinal", int64(c.Ordinal)},
		{"LimitBytes", c.LimitBytes},
		{"SegmentBytes", c.SegmentBytes},
		{"StreamCacheBytes", c.StreamCacheBytes},
		{"StreamCacheBlocks", int64(c.StreamCacheBlocks)},
		{"PoolCacheBytes", c.PoolCacheBytes},
		{"PoolCacheBlocks", int64(c.PoolCacheBlocks)},
	} {
		if f.value < 0 {
			return &ConfigError{f.name, f.value, "0 or more"}
		}
	}
	if c.MemoryFraction < 0 || c.MemoryFraction > 1 || c.MemoryFraction != c.MemoryFraction {
		return &ConfigError{"MemoryFraction", c.MemoryFraction, "over 0 and at most 1, or 0 for all"}
	}
	if int(c.Footprint) >= len(footprintNames) {
		return &ConfigError{"Footprint", c.Footprint, "Balanced, Lean or Fast"}
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

func (c *Config) budget() streamcore.Budget {
	return streamcore.Budget{CacheBytes: c.StreamCacheBytes, CacheRanges: c.StreamCacheBlocks}
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
	policy := c.Footprint.policy(info.GranularityBytes, limited)
	if c.SegmentBytes > 0 {
		policy.HandlePages = pages(c.SegmentBytes, info.GranularityBytes)
	}
	return core.Settings{
		Policy:     policy,
		LimitBytes: min(limit, info.TotalBytes),
		CacheBytes: c.PoolCacheBytes,
		CacheRuns:  c.PoolCacheBlocks,
	}
}

// DriverNamed returns the driver of that name: "sim", the simulated device with virtual time running with
// the clock, or "auto", the best that there is. This version has the simulator only, so that "auto" is
// "sim"; Info says what was opened.
func DriverNamed(name string) (cudadrv.Driver, error) {
	switch name {
	case "sim", "auto":
		return sim.New(sim.Config{Clock: sim.Running}), nil
	default:
		return nil, &ConfigError{"Driver", name, "sim or auto"}
	}
}

// ParseBytes reads a size: a number with an optional unit, decimal (kB, MB, GB, TB) or binary (KiB, MiB,
// GiB, TiB, or K, M, G, T): "2GB", "512MiB", "1.5G", "4096". Spaces before the unit and case do not matter.
func ParseBytes(s string) (int64, error) {
	text := strings.TrimSpace(s)
	at := strings.IndexFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsSpace(r) })
	number, unit := text, ""
	if at >= 0 {
		number, unit = text[:at], strings.ToLower(strings.TrimSpace(text[at:]))
	}
	scale, ok := unitBytes(unit)
	value, err := strconv.ParseFloat(number, 64)
	if bytes := value * scale; ok && err == nil && bytes >= 0 && bytes < 1<<62 {
		if whole, err := strconv.ParseInt(number, 10, 64); err == nil {
			return whole * int64(scale), nil
		}
		return int64(bytes), nil
	}
	return 0, &ConfigError{"size", strconv.Quote(s), `a number with an optional unit, as "2GB", "512MiB" or "4096"`}
}

func unitBytes(unit string) (float64, bool) {
	for i, prefix := range []string{"", "k", "m", "g", "t"} {
		decimal, binary := 1.0, 1.0
		for range i {
			decimal *= 1000
			binary *= 1024
		}
		switch unit {
		case prefix + "b":
			return decimal, true
		case prefix, prefix + "ib":
			return binary, unit != "ib"
		}
	}
	return 0, false
}
