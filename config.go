package vram

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/limits"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// Ptr is a 64-bit device address; for cgo a CUdeviceptr, never an unsafe.Pointer.
type Ptr = cudadrv.Ptr

// StreamHandle is a CUstream as a number.
type StreamHandle = cudadrv.Stream

// Config selects the device, and configures its allocator. The zero value is the first GPU, all of
// its memory, in the mode Balanced.
type Config struct {
	// Driver is the GPU driver. Nil: the one of DriverName.
	Driver cudadrv.Driver
	// DriverName is the name of the driver where Driver is nil: Open makes it as DriverNamed does.
	// "": NVIDIA's libcuda, as dynamic.New(dynamic.Config{}).
	DriverName string
	// Ordinal is the device's number with the driver, from 0.
	Ordinal int
	// LimitBytes bounds the memory that is held from the driver. 0: MemoryFraction of the device. If both are 0, the
	// least limit of the process's surroundings holds: CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, HAMi's CUDA_DEVICE_MEMORY_LIMIT
	// and CUDA_DEVICE_MEMORY_LIMIT_<n>, dmem.max of its control groups, dmem.capacity, and memory.max on a GPU that uses the host's
	// memory.
	// Files are read once a second, so that a limit that changes holds from then on. Stats.LimitSource names the source.
	// A limit above the device's memory means all of it; Stats.LimitBytes is the effective limit. The
	// first use of the device refuses a limit below one page (Info().GranularityBytes) with a
	// *ConfigError.
	LimitBytes int64
	// MemoryFraction is the limit as a share of the device's memory, over 0 up to 1. 0: 1.
	// LimitBytes takes precedence.
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
	// the driver as soon as no request needs the driver, and after a failure a tenth of a second
	// later. 0: no bound.
	PoolCacheBytes int64
	// ReleaseAfter is the time after which unused memory is released: a working stream returns it to
	// the pool, and after the same time again the pool releases it to the driver. A loop with shorter
	// steps and pauses keeps its memory. Memory mapped by Warm stays until it has been used, and plain
	// segments stay, since freeing one waits for all work of the device. Stream.Trim and Device.Trim
	// release at once. 0: 1.5 s with Lean, 15 s with Balanced, 60 s with Fast. Negative: never.
	ReleaseAfter time.Duration
	// Warm is mapped ahead as Device.Warm does, in the background: Open is the first use of the
	// device then. Memory that cannot be mapped ahead is mapped when it is needed.
	Warm []Demand
	// Stats sets how closely the device counts.
	Stats StatsLevel
	// SampleBytes is the mean number of allocated bytes for each sample of Device.Profile: a buffer is
	// sampled with a probability of its block's bytes divided by SampleBytes, and always if the block
	// has SampleBytes or more. A stream with more than 256 samples in 100 ms doubles its SampleBytes for
	// the rest of that time, and again after each 32 samples, so samples take at most 2 % of its time;
	// the weights follow. A sample keeps the call stack of its allocation, and costs a microsecond;
	// other buffers cost a nanosecond. 0: no samples. DefaultSampleBytes suits most programs; 1 samples
	// every buffer. The maximum is 1 TiB; larger values mean 1 TiB.
	SampleBytes int64
	// Debug keeps the call stack of each allocation and free, so that *FreeError and *InUseError name
	// them. It also checks the allocator's own books, the pool's after each message and a stream's ten
	// times a second, and quarantines a part whose books do not balance. It logs every driver job at
	// the level Debug. Off, none of this costs anything.
	Debug bool
	// Helpers are functions of the program that places leave out, as testing.T.Helper does: wrappers of
	// Alloc and Launch, of which the place in their caller is wanted. An element is the import path of a
	// package, or the name of a function or a method as in a stack trace: "example.com/app/mem",
	// "example.com/app/mem.Get", "example.com/app/mem.(*Pool).Get". Generic functions are named without
	// type arguments; closures belong to their function. All reports leave them out: leaks, live buffers,
	// profiles, faults, events of an Observer. A place in helpers alone keeps them.
	Helpers []string
	// FaultPlaces sets whether package cuda records where kernels are launched, so that a fault of a GPU names
	// its launch: see FaultPlaces. A simulated device that executes kernels names it in any case.
	FaultPlaces FaultPlaces
	// Observer has functions that are called for each allocated and each freed buffer. An Observer
	// keeps the call stacks, as Debug does.
	Observer Observer
	// OnOutOfMemory is called before a request fails for lack of memory, or begins to wait, when the
	// allocator itself can find no more. It may free buffers, call Trim, or empty caches of the
	// program. If it returns true, the request is tried again, up to 16 times. It runs on its own
	// goroutine, for several requests at the same time. Its request waits for it and holds nothing;
	// other requests continue. A panic in it counts as false, and is part of the
	// error; so does runtime.Goexit, as FailNow of a test calls it. It must not wait for a request that would call it again.
	OnOutOfMemory func(*OutOfMemoryError) (retry bool)
	// Processes lists the processes with memory on the GPU: gpus.OnDemand(gpus.Config{}).Processes of package monitor/gpus, which
	// reads NVIDIA's NVML. It is called for Device.GPUProcesses, and where the driver refuses memory: the
	// *OutOfMemoryError names the largest other processes. It is called outside the allocator's turns, by several goroutines at once,
	// and must return when its context ends: the refused request waits for it, a quarter of a second at most. It runs on its own
	// goroutine. A panic in it is its error, and so is runtime.Goexit. Nil: other processes are not known.
	Processes func(context.Context, cudadrv.Info) ([]GPUProcess, error)
	// Logger gets the same events as Events, failed driver jobs, and changed settings. It is called
	// like the functions of Events. A *slog.Logger is one. Nil, or a nil pointer: no logger.
	Logger Logger
	// Events has functions that are called after events.
	Events Events
	// Tuning is for experiments: leave it zero.
	Tuning Tuning

	outer limits.Limit // of the surroundings, from the first use on
}

// Demand is a number of buffers of one size.
type Demand struct {
	Bytes int64 `json:"bytes"`
	Count int   `json:"count"`
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

// String returns the mode's name.
func (f Footprint) String() string { return nameOf(footprintNames[:], int(f), "Footprint") }

// MarshalText implements encoding.TextMarshaler: the name.
func (f Footprint) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler, as ParseFootprint reads.
func (f *Footprint) UnmarshalText(text []byte) (err error) { return unmarshal(text, f, ParseFootprint) }

// ParseFootprint reads "balanced", "lean" or "fast". The error is a *ConfigError.
func ParseFootprint(s string) (Footprint, error) {
	return parseName[Footprint](footprintNames[:], s, "ParseFootprint", "balanced, lean or fast")
}

// pages counts a handle length for a page of any size.
func pages(bytes, pageBytes int64) uint32 {
	return uint32(max(1, min(bytes, pool.MostBytes)/pageBytes)) //nolint:gosec // pages of one arena
}

// policy returns the pool's parameters of the mode. Measured on eight real traces; see docs/decisions.
func (f Footprint) policy(pageBytes int64, limited bool) poolcore.Policy {
	var p poolcore.Policy
	switch f {
	case Balanced:
		p = poolcore.Policy{
			HandlePages: pages(128<<20, pageBytes), LongPages: pages(200<<20, pageBytes), MergePages: pages(96<<20, pageBytes),
			SpareBytes: 28 << 20, Step: 16, OverStep: 8, Slack: 85, SteadySlack: 16,
			SharedSlack: 160, MostSharedSlack: 380, PageWorth: 12,
		}
	case Lean:
		p = poolcore.Policy{HandlePages: 1, Slack: 12}
	case Fast:
		p = poolcore.Policy{HandlePages: pages(256<<20, pageBytes), Step: 16, SteadyStep: 64, Slack: 140, SteadySlack: 80, SharedSlack: 380, MostSharedSlack: 380, PageWorth: 4}
	}
	if limited { // whole free handles must be found at the limit, from the first byte
		p.HandlePages, p.LongPages, p.MergePages, p.SpareBytes = 1, 0, 0, 0
	}
	return p
}

// ageTicks returns ReleaseAfter in ticks, at least 1; 0: never.
func (c *Config) ageTicks() uint32 {
	after := c.ReleaseAfter
	if after == 0 {
		after = c.Footprint.releaseAfter()
	}
	return uint32(max(0, min((after+tickInterval-1)/tickInterval, math.MaxInt32))) //nolint:gosec // bounded
}

// releaseAfter returns the default of ReleaseAfter.
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
	case int(c.FaultPlaces) >= len(faultPlacesNames):
		return badField("FaultPlaces", c.FaultPlaces, "FaultPlacesOff, FaultPlacesOn or FaultPlacesBlocking")
	case int(c.Stats) >= len(statsNames):
		return badField("Stats", c.Stats, "StatsOn, StatsOff or StatsExact")
	}
	if err := c.Tuning.check(); err != nil {
		return err
	}
	if i := slices.IndexFunc(c.Helpers, func(name string) bool { return strings.TrimSpace(name) == "" }); i >= 0 {
		return badField(fmt.Sprintf("Helpers[%d]", i), c.Helpers[i], "the path of a package, or the name of a function with it")
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
	if c.MemoryFraction == 0 && c.outer.Source != "" {
		return badField("LimitBytes", c.LimitBytes, fmt.Sprintf(
			"a limit by the program, or at least %d in %s, one page of %s: it has %d", pageBytes, c.outer.Source, info.Name, c.outer.Bytes))
	}
	return badField("MemoryFraction", c.MemoryFraction, fmt.Sprintf(
		"a part of the %d bytes of %s that holds one page of %d, or 0 for all of it", info.TotalBytes, info.Name, pageBytes))
}

// settings of the pool for a device.
func (c *Config) settings(info cudadrv.Info) poolcore.Settings {
	limit, limited, source := c.LimitBytes, c.LimitBytes > 0 && c.LimitBytes < info.TotalBytes, ""
	if c.LimitBytes == 0 {
		limit = info.TotalBytes
		switch {
		case c.MemoryFraction > 0:
			limit = int64(c.MemoryFraction * float64(info.TotalBytes))
			limited = c.MemoryFraction < 1
		case c.outer.Source != "":
			limit, source = c.outer.Bytes, c.outer.Source
			limited = limit < info.TotalBytes
		}
	}
	plain := c.plain(info)
	pageBytes := pool.PageBytes(info, plain)
	policy := c.Footprint.policy(pageBytes, limited && !plain) // a plain segment is whole anyway
	if longest := c.Tuning.SegmentBytes; longest > 0 {
		policy.HandlePages, policy.LongPages = pages(min(longest, pool.MostBytes), pageBytes), 0
		policy.MergePages = min(policy.MergePages, policy.HandlePages/2)
	}
	return poolcore.Settings{
		Policy:      policy,
		LimitBytes:  min(limit, info.TotalBytes, pool.MostBytes),
		LimitSource: source,
		CacheBytes:  c.PoolCacheBytes,
		CacheRuns:   c.Tuning.PoolCacheBlocks,
		AgeTicks:    c.ageTicks(),
		Waits:       c.Waits.policy(),
	}
}

// Settings changes the configuration of a device that is in use. A nil field changes nothing; any
// other has the meaning of the field of that name in Config, 0 included:
//
//	err := dev.Reconfigure(vram.Settings{LimitBytes: new(int64(8 << 30)), Footprint: new(vram.Lean)})
type Settings struct {
	LimitBytes *int64
	// MemoryFraction takes the place of a LimitBytes that was in force, unless both are given.
	MemoryFraction   *float64
	Footprint        *Footprint
	StreamCacheBytes *int64
	PoolCacheBytes   *int64
	ReleaseAfter     *time.Duration
	Stats            *StatsLevel
	Waits            *Waits
	SampleBytes      *int64
	// Tuning replaces all of Config.Tuning.
	Tuning *Tuning
}

// appliedTo returns a configuration with the changes.
func (s *Settings) appliedTo(c Config) Config {
	if s.MemoryFraction != nil {
		c.LimitBytes = 0
	}
	set(&c.LimitBytes, s.LimitBytes)
	set(&c.MemoryFraction, s.MemoryFraction)
	set(&c.Footprint, s.Footprint)
	set(&c.StreamCacheBytes, s.StreamCacheBytes)
	set(&c.PoolCacheBytes, s.PoolCacheBytes)
	set(&c.ReleaseAfter, s.ReleaseAfter)
	set(&c.Stats, s.Stats)
	set(&c.Waits, s.Waits)
	set(&c.SampleBytes, s.SampleBytes)
	set(&c.Tuning, s.Tuning)
	return c
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// Reconfigure changes settings while the device is in use: all of them or, with a *ConfigError that
// names a field, none. Several calls at once are made one after the other. It waits for the request
// that the pool and each stream are serving; other goroutines keep allocating. Before the first use of
// the device it only records the change.
//
// Where more is held than a new limit allows, Reconfigure takes the streams' caches and releases
// free memory, waiting for the driver. Live buffers stay; their memory goes back when they are
// freed. Until less than the limit is held nothing is taken from the driver, and only free memory
// serves requests. A lower bound of a cache holds at once, a new level of statistics from each
// stream's next turn on. Errors: *ConfigError; ErrClosed; and the driver's when memory was
// released, in which case the settings hold all the same.
func (d *Device) Reconfigure(change Settings) error {
	if !d.opened() {
		return ErrNotOpen
	}
	for {
		if d.closed.Load() {
			return deviceClosed()
		}
		old := d.config.Load()
		next := change.appliedTo(*old)
		if err := next.check(); err != nil {
			return err
		}
		if e := d.made.Load(); e != nil {
			if err := next.checkLimit(e.driver.Info()); err != nil {
				return err
			}
		}
		if d.config.CompareAndSwap(old, &next) {
			break
		}
	}
	if d.notices != nil {
		d.notices.post(func() { d.notices.log.Info("vram: reconfigured", "settings", change.String()) })
	}
	e := d.made.Load()
	if e == nil { // the first use reads the configuration again before any other call uses the pool
		return nil
	}
	err := d.apply(e, nil)
	if change.Stats != nil && *change.Stats == StatsOff {
		d.readLast(e)
	}
	return err
}

// readLast reads the counts once more, before statistics are off.
func (d *Device) readLast(e *engine) {
	ctx := context.Background()
	for _, s := range d.streams.Load().open {
		_, _ = s.Stats(ctx) // a closed stream keeps its last statistics
	}
	_, _ = e.pool.Snapshot(ctx) // likewise
}

// apply brings pool and streams to the configuration, until it is the one that was applied last.
// from is the one that they have; nil: unknown. Every function that writes a configuration, or
// opens a pool or a stream by an earlier one, ends with apply: so the newest one wins.
func (d *Device) apply(e *engine, from *Config) error {
	var applied error
	for c := d.config.Load(); c != from; c = d.config.Load() {
		from = c
		settings := c.settings(e.driver.Info())
		d.limit.Store(settings.LimitBytes)
		d.profile.SetShare(c.profileShare())
		err := e.pool.Reconfigure(context.Background(), settings)
		e.pool.Tick() // a lower PoolCacheBytes holds from now on
		for _, s := range d.streams.Load().open {
			_ = s.Reconfigure(context.Background(), d.ofStream(c)) // a stream that has ended needs none
		}
		if err == nil {
			err = d.shrink(e)
		}
		applied = err
	}
	if errors.Is(applied, pool.ErrClosed) {
		return deviceClosed()
	}
	return applied
}

// shrink releases free memory beyond the limit.
func (d *Device) shrink(e *engine) error {
	books, err := e.pool.Snapshot(context.Background())
	if err != nil || books.ReservedBytes <= books.LimitBytes {
		return err
	}
	if _, err := e.pool.Trim(context.Background(), books.LimitBytes); err != nil {
		return failed("reconfigure", err)
	}
	return nil
}

// applyTo brings a stream that was opened by an earlier configuration to the present one.
func (d *Device) applyTo(s *streams.Control, from *Config) {
	for c := d.config.Load(); c != from; c = d.config.Load() {
		from = c
		_ = s.Reconfigure(context.Background(), d.ofStream(c)) // a stream that has ended needs none
	}
}

// followTicks is after how many ticks the surroundings are read again. Not fewer: that opens files. Not more: a limit that an
// administrator lowers is to hold within a second.
const followTicks = 10

// limitSource names the variable or the file that sets the limit; "": the program, or the device.
func (c *Config) limitSource() string {
	if c.LimitBytes != 0 || c.MemoryFraction != 0 {
		return ""
	}
	return c.outer.Source
}

// limitSource returns the source in the present configuration.
func (d *Device) limitSource() string { return d.config.Load().limitSource() }

// surround reads the limit of the surroundings, and returns the configuration that has it.
func (d *Device) surround(c *Config, info cudadrv.Info) *Config {
	least, problems := d.surroundings.Least(limits.Device{Ordinal: info.Ordinal, PCI: info.PCI, HostMemory: info.HostMemory})
	if least.Bytes >= info.TotalBytes { // it bounds nothing
		least = limits.Limit{}
	}
	d.tellProblems(problems)
	for c.outer != least {
		next := *c
		next.outer = least
		if d.config.CompareAndSwap(c, &next) {
			return &next
		}
		c = d.config.Load()
	}
	return c
}

// tellProblems logs the sources of limits that cannot be read, each text once.
func (d *Device) tellProblems(problems []*limits.SourceError) {
	var texts []string
	for _, p := range problems {
		texts = append(texts, p.Error())
	}
	told := d.unread.Swap(&texts)
	for _, text := range texts {
		if (told == nil || !slices.Contains(*told, text)) && d.notices != nil {
			d.notices.post(func() { d.notices.log.Warn("vram: a limit of the memory is not readable, and ignored", "source", text) })
		}
	}
}

// follow applies a limit of the surroundings that has changed.
func (d *Device) follow(e *engine) {
	before := d.config.Load()
	after := d.surround(before, e.driver.Info())
	if after.outer == before.outer || after.limitSource() == "" && before.limitSource() == "" {
		return
	}
	if d.notices != nil {
		d.notices.post(func() {
			d.notices.log.Info("vram: the limit of the memory changed", "limitBytes", after.outer.Bytes, "source", after.outer.Source)
		})
	}
	_ = d.apply(e, nil) // memory that is not free stays; a failure to release is the next Trim's
}

// Tuning is for experiments: constants that the allocator chooses well by itself, and that no
// program has to set. The zero value is the best by measurement; a 0 in a field is that field's own
// choice. No value makes the allocator incorrect: they change only time and memory.
type Tuning struct {
	// SegmentBytes is the longest physical allocation that is requested from the driver at once:
	// longer ones take fewer calls, and their holes are harder to use again. A plain segment is
	// longer where a single request is. 0: the footprint mode's choice, one page to 256 MiB.
	SegmentBytes int64
	// StreamCacheBlocks bounds the free ranges of a page or longer that each stream keeps, as
	// Config.StreamCacheBytes bounds their bytes. The excess goes to the pool when the stream's turn ends. 0: no
	// bound.
	StreamCacheBlocks int
	// PoolCacheBlocks bounds the free ranges that the pool keeps, as Config.PoolCacheBytes bounds their bytes. The
	// shortest ones of the excess go back to the driver. A range that shares a physical allocation with memory in
	// use stays, and so does one that work still uses, which is not counted. 0: no bound.
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

// Waits is the policy for memory that one stream has returned while its work may still use it, when
// another stream needs memory. The other stream can be made to wait for that work on the device
// (cuStreamWaitEvent): its caller continues at once, and its later kernels start after that work. The
// time is unknown: for a kernel of an hour, or a collective that waits for another
// GPU, that stream waits as long. Memory whose work has finished is taken without a wait under
// every policy.
//
// Under every policy a request that neither free memory nor growth up to the limit can serve waits
// on the host, before it is refused, for the first stream's work that finishes; no other request
// waits with it. Stream.ExcludeFromWaits is for streams that are never to be waited for.
type Waits uint8

// The policies.
const (
	// WaitsNever takes more memory from the driver, up to the limit: no stream's work is delayed by
	// another's for the sake of memory.
	WaitsNever Waits = iota
	// WaitsAvoidGrowth has streams wait on the device where the pool would otherwise hold more than
	// the footprint mode allows. It is for programs whose kernels are all short.
	WaitsAvoidGrowth
	// WaitsAlways has streams wait on the device before anything is taken from the driver: the
	// least memory, and streams that share memory work one after the other. It is for programs
	// whose kernels are all short.
	WaitsAlways
)

var waitsNames = [...]string{WaitsNever: "never", WaitsAvoidGrowth: "avoid-growth", WaitsAlways: "always"} //nolint:gochecknoglobals // constant table

// String returns the policy's name.
func (w Waits) String() string { return nameOf(waitsNames[:], int(w), "Waits") }

// MarshalText implements encoding.TextMarshaler: the name.
func (w Waits) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler, as ParseWaits reads.
func (w *Waits) UnmarshalText(text []byte) (err error) { return unmarshal(text, w, ParseWaits) }

// ParseWaits reads "never", "avoid-growth" or "always". The error is a *ConfigError.
func ParseWaits(s string) (Waits, error) {
	return parseName[Waits](waitsNames[:], s, "ParseWaits", "never, avoid-growth or always")
}

func (w Waits) policy() poolcore.Waits {
	switch w {
	case WaitsAvoidGrowth:
		return poolcore.WaitsAvoidGrowth
	case WaitsAlways:
		return poolcore.WaitsAlways
	case WaitsNever:
	}
	return poolcore.WaitsNever
}

// FaultPlaces sets whether launches of package cuda are recorded. A GPU reports the fault of a kernel at a later call,
// without the kernel; the *FaultError then lists the recorded launches that had not finished.
type FaultPlaces uint8

// The settings of FaultPlaces.
const (
	// FaultPlacesOff records nothing: launches cost nothing more.
	FaultPlacesOff FaultPlaces = iota
	// FaultPlacesOn records the last 32 launches of each stream that are not known to have finished, with their
	// buffers and places. A launch takes one to two microseconds more, and allocates.
	FaultPlacesOn
	// FaultPlacesBlocking also waits after each launch until the device has finished it, as the driver does with
	// CUDA_LAUNCH_BLOCKING=1: the launch itself returns the fault. Launches in captures do not wait.
	FaultPlacesBlocking
)

var faultPlacesNames = [...]string{FaultPlacesOff: "off", FaultPlacesOn: "on", FaultPlacesBlocking: "blocking"} //nolint:gochecknoglobals // constant table

// String returns the setting's name.
func (f FaultPlaces) String() string { return nameOf(faultPlacesNames[:], int(f), "FaultPlaces") }

// MarshalText implements encoding.TextMarshaler: the name.
func (f FaultPlaces) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler, as ParseFaultPlaces reads.
func (f *FaultPlaces) UnmarshalText(text []byte) (err error) {
	return unmarshal(text, f, ParseFaultPlaces)
}

// ParseFaultPlaces reads "off", "on" or "blocking". The error is a *ConfigError.
func ParseFaultPlaces(s string) (FaultPlaces, error) {
	return parseName[FaultPlaces](faultPlacesNames[:], s, "ParseFaultPlaces", "off, on or blocking")
}

// StatsLevel is how closely a device counts. Counts of allocations and frees, and the peak of
// reserved bytes, are exact at each level.
type StatsLevel uint8

// The levels of statistics.
const (
	// StatsOn samples the peak of live bytes: an upper bound, taken when a stream misses its
	// magazines and ten times a second.
	StatsOn StatsLevel = iota
	// StatsOff limits Device.Stats to figures that need no turn of a stream or the pool: the limit,
	// tenants, the driver's calls and their time. All other counts keep the value that they were read
	// with last, by the Reconfigure that switched statistics off or by a reading before; they rise when a
	// stream ends, and count the time in between once statistics are on again. Bytes by state,
	// peaks and the list of streams are missing. Nothing is sampled.
	StatsOff
	// StatsExact counts live bytes at each allocation. None is served by a magazine then:
	// each costs a turn of its stream in place of three atomic operations. The peak of live bytes
	// is exact for each stream; over several streams, buffers that were freed since a stream's last
	// turn still count. Switched on while buffers live, it counts the memory that small buffers
	// share as a whole until they are freed.
	StatsExact
)

var statsNames = [...]string{StatsOn: "on", StatsOff: "off", StatsExact: "exact"} //nolint:gochecknoglobals // constant table

// String returns the level's name.
func (l StatsLevel) String() string { return nameOf(statsNames[:], int(l), "StatsLevel") }

// MarshalText implements encoding.TextMarshaler: the name.
func (l StatsLevel) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler, as ParseStatsLevel reads.
func (l *StatsLevel) UnmarshalText(text []byte) (err error) {
	return unmarshal(text, l, ParseStatsLevel)
}

// ParseStatsLevel reads "on", "off" or "exact". The error is a *ConfigError.
func ParseStatsLevel(s string) (StatsLevel, error) {
	return parseName[StatsLevel](statsNames[:], s, "ParseStatsLevel", "on, off or exact")
}

// Segments is the kind of memory that is held from the driver.
type Segments uint8

// The kinds of segments.
const (
	// SegmentsAuto takes virtual memory where the device has it, else plain segments.
	SegmentsAuto Segments = iota
	// SegmentsVMM maps handles into reserved address space (cuMemCreate, cuMemMap).
	SegmentsVMM
	// SegmentsPlain takes address space and memory in one (cuMemAlloc). A segment goes back when
	// all of it is free, by a call that waits for the whole device (cuMemFree); until then its
	// holes serve only requests that fit them.
	SegmentsPlain
)

var segmentsNames = [...]string{SegmentsAuto: "auto", SegmentsVMM: "vmm", SegmentsPlain: "plain"} //nolint:gochecknoglobals // constant table

// String returns the kind's name.
func (s Segments) String() string { return nameOf(segmentsNames[:], int(s), "Segments") }

// MarshalText implements encoding.TextMarshaler: the name.
func (s Segments) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler, as ParseSegments reads.
func (s *Segments) UnmarshalText(text []byte) (err error) { return unmarshal(text, s, ParseSegments) }

// ParseSegments reads "auto", "vmm" or "plain". The error is a *ConfigError.
func ParseSegments(s string) (Segments, error) {
	return parseName[Segments](segmentsNames[:], s, "ParseSegments", "auto, vmm or plain")
}

func nameOf(names []string, i int, kind string) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", kind, i)
}

func parseName[T ~uint8](names []string, s, call, want string) (T, error) {
	for i, name := range names {
		if s == name {
			return T(i), nil
		}
	}
	return 0, badArgument(call, "name", s, want)
}

// unmarshal sets a value to the one that a text names; with an error it stays.
func unmarshal[T any](text []byte, value *T, parse func(string) (T, error)) error {
	v, err := parse(string(text))
	if err == nil {
		*value = v
	}
	return err
}

// maxParsedBytes is the largest size that ParseBytes reads: 4 EiB less one byte. Not larger: the
// sum of two sizes does not overflow.
const maxParsedBytes = 1<<62 - 1

// ParseBytes reads a size in bytes: a number with an optional unit, decimal (kB, MB, GB, TB) or
// binary (KiB, MiB, GiB, TiB, or K, M, G, T), as "2GB", "512MiB", "1.5G" or "4096". Spaces before
// the unit and case do not matter. A fraction needs a unit, and must come to a byte or more: "0.5"
// is refused. So are sizes of 4 EiB and more. The error is a *ConfigError.
func ParseBytes(s string) (int64, error) {
	text := strings.TrimSpace(s)
	at := strings.IndexFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsSpace(r) })
	number, unit := text, ""
	if at >= 0 {
		number, unit = text[:at], strings.ToLower(strings.TrimSpace(text[at:]))
	}
	refuse := func(want string) (int64, error) { return 0, badArgument("ParseBytes", "size", s, want) }
	scale, known := unitBytes(unit)
	value, err := strconv.ParseFloat(number, 64)
	if !known || err != nil && !math.IsInf(value, 1) || value < 0 {
		return refuse(`a number with an optional unit, as "2GB", "512MiB" or "4096"`)
	}
	whole, wholeErr := strconv.ParseInt(number, 10, 64)
	switch bytes := value * float64(scale); {
	case wholeErr == nil && whole <= maxParsedBytes/scale:
		return whole * scale, nil
	case wholeErr == nil || bytes >= 1<<62:
		return refuse(fmt.Sprintf("at most %d bytes", int64(maxParsedBytes)))
	case scale == 1 || value > 0 && bytes < 1:
		return refuse(`a whole number of bytes, or a unit with the fraction, as "1.5GB"`)
	default:
		return int64(bytes), nil
	}
}

// unitBytes is how many bytes a unit has.
func unitBytes(unit string) (bytes int64, known bool) {
	for i, prefix := range []string{"", "k", "m", "g", "t"} {
		decimal, binary := int64(1), int64(1)
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
