package vram

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/limits"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// A stream that opens while the configuration changes ends up with the new one.
func TestAStreamThatOpensDuringAChange(t *testing.T) {
	d, err := Open(Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	e, err := d.use()
	require.NoError(t, err)
	before := d.config.Load()
	require.NoError(t, d.Reconfigure(Settings{Stats: new(StatsExact)}))
	h, err := e.meter.StreamCreate()
	require.NoError(t, err)
	s, err := d.openBy(before, e, h, false)
	require.NoError(t, err)
	for range 3 {
		b, err := s.Alloc(700)
		require.NoError(t, err)
		require.NoError(t, b.Free())
	}
	n := d.Stats()
	assert.EqualValues(t, 3, n.AllocCount)
	assert.Zero(t, n.MagazineHits, "a stream that counts exactly has no magazines")
	assert.EqualValues(t, 1024, n.PeakLiveBytes)
	require.NoError(t, d.Close())
}

// A registry that a reader has found stays as it was while others open, close and count: readers take no turn.
func TestAFormerRegistryStaysAsItWas(t *testing.T) {
	d, err := Open(Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	type former struct {
		of   *registry
		open []*streams.Control
		gone string
	}
	var all []former
	note := func() {
		r := d.streams.Load()
		all = append(all, former{r, slices.Clone(r.open), fmt.Sprintf("%+v", r.gone)})
	}
	var open []*Stream
	for i := range 12 {
		s, err := d.NewStream()
		require.NoError(t, err)
		for _, bytes := range []int64{512 << (i % 3), 1 << (12 + i)} {
			b, err := s.Alloc(bytes)
			require.NoError(t, err)
			require.NoError(t, b.Free())
		}
		note()
		if open = append(open, s); len(open) == 3 {
			x := open[i%3]
			require.NoError(t, x.Close())
			for _, c := range d.streams.Load().open {
				if c.Stream == x {
					d.forget(c) // as the next tick does
				}
			}
			open = slices.Delete(open, i%3, i%3+1)
			note()
		}
		d.Stats()
	}
	for _, x := range all {
		assert.Equal(t, x.open, x.of.open)
		assert.Equal(t, x.gone, fmt.Sprintf("%+v", x.of.gone))
	}
	n, counted := d.Stats(), uint64(0)
	for _, z := range n.Sizes {
		counted += z.AllocCount
	}
	assert.EqualValues(t, 24, n.AllocCount)
	assert.EqualValues(t, 24, counted)
	require.NoError(t, d.Close())
}

// A call that waits for a failing first use finds the device closed if Close was called during the use,
// and does not open it again.
func TestAFirstUseThatFailsDuringClose(t *testing.T) {
	driver := fault.Wrap(sim.New(sim.Config{}))
	require.NoError(t, driver.Add(fault.Rule{Func: "cuDevicePrimaryCtxRetain", Result: cudadrv.Unknown}))
	d, err := Open(Config{Driver: driver})
	require.NoError(t, err)
	first := &opening{done: make(chan struct{}), err: errNoStart}
	require.True(t, d.started.CompareAndSwap(nil, first))
	closed := make(chan error)
	go func() { closed <- d.Close() }()
	for d.started.Load() == first { // until Close waits for it
		runtime.Gosched()
	}
	d.begin(first)
	require.ErrorIs(t, first.err, cudadrv.Unknown)
	require.NoError(t, <-closed)

	late := d.started.Load() // as seen by a use that checked for Close before the Close
	require.NotNil(t, late)
	<-late.done
	require.ErrorIs(t, late.err, ErrClosed)
}

// counted is a driver that answers DeviceCount only.
type counted struct {
	cudadrv.Driver
	count int
	err   error
}

func (c counted) DeviceCount() (int, error) { return c.count, c.err }
func (counted) Name() string                { return "dynamic" }

// auto takes the GPU where there is one, the simulator where there is none, and neither where the
// driver is broken.
func TestAutoSimulatesOnlyWithoutAGPU(t *testing.T) {
	call := &cudadrv.CallError{Func: "cuInit", Result: cudadrv.Unknown}
	for name, c := range map[string]struct {
		counted
		want string // "": an error
	}{
		"a device":            {counted{count: 1}, "dynamic"},
		"no devices":          {counted{}, "sim"},
		"no library":          {counted{err: &dynamic.LibraryError{Tried: []string{"libcuda.so.1"}}}, "sim"},
		"no device":           {counted{err: &dynamic.InitError{Call: &cudadrv.CallError{Func: "cuInit", Result: cudadrv.NoDevice}}}, "sim"},
		"an old driver":       {counted{err: &dynamic.VersionError{Have: 10020, Needed: 11080}}, ""},
		"another library":     {counted{err: &dynamic.SymbolError{Symbols: []string{"cuMemAlloc_v2"}}}, ""},
		"a driver that fails": {counted{err: &dynamic.InitError{Call: call}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := automatic(c.counted, simulated())
			if c.want == "" {
				require.ErrorIs(t, err, ErrNoDriver)
				assert.True(t, errors.Is(err, c.err))
				assert.Nil(t, d)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, d.Name())
		})
	}
}

// A name with gpu-or- takes the other driver on a machine without a GPU, and no name that is not registered.
func TestTheOtherDriverIsTakenOnlyWithoutAGPU(t *testing.T) {
	other := sim.New(sim.Config{Name: "other"})
	for _, c := range []struct {
		gpu  counted
		want cudadrv.Driver
	}{{counted{count: 1}, counted{count: 1}}, {counted{}, other}} {
		d, err := automatic(c.gpu, other)
		require.NoError(t, err)
		assert.Equal(t, c.want, d)
	}
	name := fmt.Sprint("other ", time.Now().UnixNano()) // names last as long as the process
	cudadrv.Register(name, func() cudadrv.Driver { return other })
	d, err := DriverNamed(name)
	require.NoError(t, err)
	assert.Same(t, other, d)
	d, err = DriverNamed("gpu-or-" + name)
	if err == nil && d.Name() != "dynamic" { // no GPU here
		assert.Same(t, other, d)
	}
	for _, wrong := range []string{"gpu-or-", "gpu-or-auto", "gpu-or-nothing", "nothing"} {
		_, err := DriverNamed(wrong)
		var bad *ConfigError
		require.ErrorAs(t, err, &bad, wrong)
		assert.Equal(t, wrong, bad.Value)
		assert.Contains(t, bad.Error(), name+", gpu-or-"+name)
		assert.Contains(t, bad.Error(), " or sim; cpu and gpu-or-cpu need an import of")
	}
	cudadrv.Register(name, func() cudadrv.Driver { return other })
	for _, twice := range []string{name, "gpu-or-" + name} {
		_, err := DriverNamed(twice)
		require.ErrorIs(t, err, ErrNoDriver, twice)
	}
}

// onWarning is a handler that calls a function for each line.
type onWarning struct {
	slog.Handler
	call func()
}

func (h onWarning) Enabled(context.Context, slog.Level) bool { return true }

func (h onWarning) Handle(context.Context, slog.Record) error {
	h.call()
	return nil
}

// A function that is posted at the very end, when all earlier ones have been called, is called,
// too.
func TestAnEventThatIsPostedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n *notices
		called := 0
		late := onWarning{slog.DiscardHandler, func() { n.post(func() { called++ }) }}
		n = newNotices(slog.New(late), nil)
		n.post(func() { n.dropped.Add(1) }) // of which the logger hears when nothing else is due
		synctest.Wait()
		assert.Equal(t, 1, called)
		n.post(func() { called++ })
		synctest.Wait()
		assert.Equal(t, 2, called)
		assert.Zero(t, n.due.Load())
	})
}

// A Close waits for the calls that make streams, all of them, and further ones are refused.
func TestACloseWaitsForCallsThatMakeStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, calls := newCallGate(), 3
		for range calls {
			require.True(t, g.enter())
		}
		g.leave() // before the closing begins
		closed := make(chan struct{})
		go func() {
			g.close()
			close(closed)
		}()
		for range calls - 1 {
			synctest.Wait()
			assert.False(t, g.enter(), "refused, and not counted")
			select {
			case <-closed:
				t.Error("a call is in progress")
			default:
			}
			g.leave()
		}
		<-closed
		assert.False(t, g.enter())
	})
}

// The functions for the compiler work.
func TestInlinedPairs(t *testing.T) {
	t.Parallel()
	d, err := Open(Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	require.NoError(t, pair(s))
	require.NoError(t, d.Close())
}

// The defaults of ReleaseAfter are the documented ones; it is rounded up to whole ticks, and a negative one is none.
func TestReleaseAfter(t *testing.T) {
	t.Parallel()
	for f, want := range map[Footprint]time.Duration{Balanced: 15 * time.Second, Lean: 1500 * time.Millisecond, Fast: time.Minute} {
		byDefault, explicit := &Config{Footprint: f}, &Config{Footprint: f, ReleaseAfter: want}
		assert.Equal(t, explicit.ageTicks(), byDefault.ageTicks(), "%v", f)
		assert.EqualValues(t, want/tickInterval, byDefault.ageTicks(), "%v", f)
	}
	for after, want := range map[time.Duration]uint32{1: 1, tickInterval: 1, tickInterval + 1: 2, -1: 0, -time.Hour: 0} {
		assert.Equal(t, want, (&Config{ReleaseAfter: after}).ageTicks(), "%v", after)
	}
}

// A bound that is all of the device bounds nothing, however it is set: the policy is that of a device without one. One byte
// less is a limit, at which whole free handles must be found.
func TestAllOfTheDeviceIsNoLimit(t *testing.T) {
	t.Parallel()
	d, err := sim.New(sim.Config{TotalBytes: 8 << 30}).Open(0)
	require.NoError(t, err)
	info := d.Info()
	for _, f := range []Footprint{Balanced, Lean, Fast} {
		free := (&Config{Footprint: f}).settings(info)
		assert.Equal(t, info.TotalBytes, free.LimitBytes)
		assert.Equal(t, free, (&Config{Footprint: f, MemoryFraction: 1}).settings(info))
		assert.Equal(t, free, (&Config{Footprint: f, LimitBytes: info.TotalBytes}).settings(info))
		for _, c := range []Config{{LimitBytes: info.TotalBytes - 1}, {MemoryFraction: 0.999}} {
			c.Footprint = f
			limited := c.settings(info)
			assert.Less(t, limited.LimitBytes, info.TotalBytes)
			assert.EqualValues(t, 1, limited.Policy.HandlePages)
		}
	}
	require.NoError(t, d.Close())
}

// Each letter that is missing, too many or another is one, and two neighbours that changed places are one.
func TestLettersOfAMisspelledWord(t *testing.T) {
	t.Parallel()
	for pair, want := range map[[2]string]int{
		{"", ""}: 0, {"STATS", "STATS"}: 0, {"STATS", ""}: 5, {"", "STATS"}: 5, {"STAT", "STATS"}: 1, {"STATS", "TATS"}: 1,
		{"STATS", "STETS"}: 1, {"STATS", "TSATS"}: 1, {"STATS", "STAST"}: 1, {"STATS", "TSAST"}: 2, {"STATS", "STEPS"}: 2, {"AB", "BA"}: 1,
		{"WARMUP", "WAMRPU"}: 2, {"ABC", "CAB"}: 2,
	} {
		assert.Equal(t, want, misspelled(pair[0], pair[1]), "%q", pair)
		assert.Equal(t, want, misspelled(pair[1], pair[0]), "%q", pair)
	}
}

// text is a value with a name.
type text interface {
	encoding.TextMarshaler
	encoding.TextUnmarshaler
}

// Each value with a name is read from its text, and another text is an error that changes nothing.
func TestNamesAreRead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		all  []encoding.TextMarshaler
		read text
	}{
		"Footprint":   {[]encoding.TextMarshaler{Balanced, Lean, Fast}, new(Footprint)},
		"Waits":       {[]encoding.TextMarshaler{WaitsNever, WaitsAvoidGrowth, WaitsAlways}, new(Waits)},
		"StatsLevel":  {[]encoding.TextMarshaler{StatsOn, StatsOff, StatsExact}, new(StatsLevel)},
		"Segments":    {[]encoding.TextMarshaler{SegmentsAuto, SegmentsVMM, SegmentsPlain}, new(Segments)},
		"DeviceState": {[]encoding.TextMarshaler{DeviceNotOpen, DeviceUnused, DeviceInUse, DeviceClosed}, new(DeviceState)},
		"MemoryState": {[]encoding.TextMarshaler{MemoryLive, MemoryFree, MemoryMixed}, new(MemoryState)},
	} {
		for _, x := range test.all {
			want, err := x.MarshalText()
			require.NoError(t, err)
			require.NoError(t, test.read.UnmarshalText(want), name)
			for _, wrong := range []string{"", "none of them", string(want) + "x"} {
				var bad *ConfigError
				require.ErrorAs(t, test.read.UnmarshalText([]byte(wrong)), &bad, name)
				assert.Contains(t, bad.Error(), name)
				assert.Contains(t, bad.Want, string(want))
			}
			got, err := test.read.MarshalText()
			require.NoError(t, err)
			assert.Equal(t, string(want), string(got), name)
		}
	}
}

// Trim returns the error of the driver, and memory that it cannot release stays counted.
func TestTrimWhoseDriverFails(t *testing.T) {
	t.Parallel()
	faults := fault.Wrap(sim.New(sim.Config{}))
	d, err := Open(Config{Driver: faults, Footprint: Lean})
	require.NoError(t, err)
	n, err := d.Trim(t.Context(), 0)
	require.NoError(t, err, "before the first use nothing is held")
	assert.Zero(t, n)
	s, err := d.NewStream()
	require.NoError(t, err)
	b, err := s.Alloc(8 << 20)
	require.NoError(t, err)
	require.NoError(t, b.Free())
	held := d.Stats().ReservedBytes
	require.NoError(t, faults.Add(fault.Rule{Func: "cuMemUnmap", Result: cudadrv.LaunchFailed}))
	n, err = d.Trim(t.Context(), 0)
	require.ErrorIs(t, err, cudadrv.LaunchFailed)
	assert.Zero(t, n)
	assert.Equal(t, held, d.Stats().ReservedBytes)
	faults.Clear()
	n, err = d.Trim(t.Context(), 0)
	require.NoError(t, err)
	assert.Equal(t, held, n)
	require.NoError(t, d.Close())
	_, err = d.Trim(t.Context(), 0)
	require.ErrorIs(t, err, ErrClosed)
	assert.False(t, errors.Is(err, cudadrv.LaunchFailed))
}

// surroundedBy has variables.
func surroundedBy(variables map[string]string) limits.Surroundings {
	return limits.Surroundings{
		Variable: func(name string) (string, bool) { v, ok := variables[name]; return v, ok },
		Files:    fstest.MapFS{},
	}
}

// The least limit of the surroundings is the default, and the program's own comes first.
func TestLimitOfTheSurroundings(t *testing.T) {
	t.Parallel()
	const total = 64 << 20
	const mps, hami = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "CUDA_DEVICE_MEMORY_LIMIT"
	for name, c := range map[string]struct {
		config    Config
		variables map[string]string
		want      int64
		source    string
	}{
		"none":                        {want: total},
		"a variable":                  {variables: map[string]string{hami: "32m"}, want: 32 << 20, source: hami},
		"the least of two":            {variables: map[string]string{hami: "32m", mps: "0=16M"}, want: 16 << 20, source: mps},
		"another device's":            {variables: map[string]string{mps: "1=16M"}, want: total},
		"more than the device has":    {variables: map[string]string{hami: "1g"}, want: total},
		"a limit of the program":      {config: Config{LimitBytes: 48 << 20}, variables: map[string]string{hami: "32m"}, want: 48 << 20},
		"a share that the program is": {config: Config{MemoryFraction: 0.5}, variables: map[string]string{hami: "8m"}, want: 32 << 20},
		"one that cannot be read":     {variables: map[string]string{hami: "much"}, want: total},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.config.Driver = sim.New(sim.Config{TotalBytes: total})
			d, err := openIn(c.config, surroundedBy(c.variables))
			require.NoError(t, err)
			_, err = d.NewStream()
			require.NoError(t, err)
			s := d.Stats()
			assert.Equal(t, c.want, s.LimitBytes)
			assert.Equal(t, c.source, s.LimitSource)
			require.NoError(t, d.Close())
		})
	}
}

// A request that a limit of the surroundings refuses names its source.
func TestOutOfMemoryNamesTheSourceOfTheLimit(t *testing.T) {
	t.Parallel()
	d, err := openIn(Config{Driver: sim.New(sim.Config{TotalBytes: 64 << 20})}, surroundedBy(map[string]string{"CUDA_DEVICE_MEMORY_LIMIT_0": "32m"}))
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	b, err := s.Alloc(24 << 20)
	require.NoError(t, err)
	_, err = s.Alloc(24 << 20)
	var full *OutOfMemoryError
	require.ErrorAs(t, err, &full)
	assert.Equal(t, "CUDA_DEVICE_MEMORY_LIMIT_0", full.LimitSource)
	assert.Contains(t, err.Error(), "of a limit of 32 MiB (CUDA_DEVICE_MEMORY_LIMIT_0)")
	assert.Contains(t, full.Report(), "of a limit of 32 MiB (CUDA_DEVICE_MEMORY_LIMIT_0)")
	require.NoError(t, b.Free())
	for name, request := range map[string]func() error{
		"a buffer":      func() error { _, err := s.Alloc(33 << 20); return err },
		"a batch":       func() error { return s.AllocBatch(make([]Buffer, 2), []int64{17 << 20, 17 << 20}) },
		"its buffer":    func() error { return s.AllocBatch(make([]Buffer, 1), []int64{33 << 20}) },
		"a reservation": func() error { _, err := d.Reserve(t.Context(), 33<<20); return err },
	} {
		var large *SizeError
		err := request()
		require.ErrorAs(t, err, &large, name)
		assert.Equal(t, "CUDA_DEVICE_MEMORY_LIMIT_0", large.LimitSource, name)
		assert.ErrorContains(t, err, "more than the whole limit of 32 MiB (CUDA_DEVICE_MEMORY_LIMIT_0)", name)
	}
	require.NoError(t, d.Close())
}

// A limit below one page is the error of the first use, which names its source.
func TestALimitOfTheSurroundingsBelowAPage(t *testing.T) {
	t.Parallel()
	d, err := openIn(Config{Driver: sim.New(sim.Config{})}, surroundedBy(map[string]string{"CUDA_DEVICE_MEMORY_LIMIT": "1m"}))
	require.NoError(t, err)
	_, err = d.NewStream()
	var bad *ConfigError
	require.ErrorAs(t, err, &bad)
	assert.ErrorContains(t, err, "CUDA_DEVICE_MEMORY_LIMIT")
	require.NoError(t, d.Reconfigure(Settings{LimitBytes: new(int64(32 << 20))}))
	_, err = d.NewStream()
	require.NoError(t, err, "the program's limit comes first")
	require.NoError(t, d.Close())
}

// A file that changes is followed; memory above a lower limit that is free goes back to the driver.
func TestALimitThatChangesIsFollowed(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	group := filepath.Join(root, "sys/fs/cgroup")
	require.NoError(t, os.MkdirAll(group, 0o755))
	file := filepath.Join(group, "memory.max")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write("max\n")
	log := &strings.Builder{}
	const total = 64 << 20
	d, err := openIn(Config{Driver: sim.New(sim.Config{TotalBytes: total, HostMemory: true}), Logger: slog.New(slog.NewTextHandler(log, nil))},
		limits.Surroundings{Variable: surroundedBy(nil).Variable, Files: os.DirFS(root)})
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	b, err := s.Alloc(48 << 20)
	require.NoError(t, err)
	require.NoError(t, b.Free())
	assert.Equal(t, int64(total), d.Stats().LimitBytes)
	const source = "/sys/fs/cgroup/memory.max"
	write("16777216\n")
	require.Eventually(t, func() bool { return d.Stats().LimitBytes == 16<<20 }, time.Minute, time.Millisecond, "the ticker follows")
	for _, step := range []struct {
		text   string
		want   int64
		source string
	}{{"16777216\n", 16 << 20, source}, {"33554432\n", 32 << 20, source}, {"much\n", total, ""}, {"33554432\n", 32 << 20, source}, {"max\n", total, ""}} {
		write(step.text)
		d.follow(d.engine.Load())
		require.Eventually(t, func() bool { // the ticker may be the one that applies it
			s := d.Stats()
			return s.LimitBytes == step.want && s.ReservedBytes <= step.want
		}, time.Minute, time.Millisecond, step.text)
		assert.Equal(t, step.source, d.Stats().LimitSource)
	}
	write("16777216\n")
	require.NoError(t, d.Reconfigure(Settings{LimitBytes: new(int64(8 << 20))}))
	d.follow(d.engine.Load())
	assert.Equal(t, int64(8<<20), d.Stats().LimitBytes, "the program's limit comes first")
	require.NoError(t, d.Close())
	assert.Equal(t, 1, strings.Count(log.String(), "not readable"), log.String())
	assert.Contains(t, log.String(), "the limit of the memory changed")
}

// The parameters of each mode are the ones that were measured, for pages of any size; at a limit handles are pages. A change is a
// new measurement.
func TestPoliciesOfFootprints(t *testing.T) {
	t.Parallel()
	balanced := poolcore.Policy{
		HandlePages: 64, LongPages: 100, MergePages: 48, SpareBytes: 28 << 20, Step: 16, OverStep: 8, Slack: 85, SteadySlack: 16,
		SharedSlack: 160, MostSharedSlack: 380, PageWorth: 12,
	}
	lean := poolcore.Policy{HandlePages: 1, Slack: 12}
	fast := poolcore.Policy{
		HandlePages: 128, Step: 16, SteadyStep: 64, Slack: 140, SteadySlack: 80, SharedSlack: 380, MostSharedSlack: 380, PageWorth: 4,
	}
	with := func(p poolcore.Policy, handle, long, merge uint32, spareBytes int64) poolcore.Policy {
		p.HandlePages, p.LongPages, p.MergePages, p.SpareBytes = handle, long, merge, spareBytes
		return p
	}
	for _, c := range []struct {
		footprint Footprint
		pageBytes int64
		limited   bool
		want      poolcore.Policy
	}{
		{Balanced, 2 << 20, false, balanced},
		{Balanced, 100<<20 + 1, false, with(balanced, 1, 1, 1, 28<<20)},
		{Balanced, 100 << 20, false, with(balanced, 1, 2, 1, 28<<20)},
		{Balanced, 1 << 20, false, with(balanced, 128, 200, 96, 28<<20)},
		{Balanced, 1 << 40, false, with(balanced, 1, 1, 1, 28<<20)},
		{Balanced, 2 << 20, true, with(balanced, 1, 0, 0, 0)},
		{Lean, 2 << 20, false, lean},
		{Lean, 2 << 20, true, lean},
		{Fast, 2 << 20, false, fast},
		{Fast, 2 << 20, true, with(fast, 1, 0, 0, 0)},
	} {
		assert.Equal(t, c.want, c.footprint.policy(c.pageBytes, c.limited), "%v, pages of %d, limited: %t", c.footprint, c.pageBytes, c.limited)
	}
}

// A closed tenant leaves the list of names, but not its successor, which has the name while the Close is on its way.
func TestAClosedTenantDropsNoOther(t *testing.T) {
	t.Parallel()
	d := &Device{closeDone: make(chan struct{})}
	first, err := d.Tenant("guest", Quota{})
	require.NoError(t, err)
	other, err := d.Tenant("other", Quota{})
	require.NoError(t, err)
	part := d.tenants.part("guest")
	second := pool.NewTenant("guest", 9, Quota{})
	part.Store(part.Load().with("guest", second))
	require.NoError(t, first.Close())
	assert.Equal(t, []*Tenant{other, second}, d.tenants.list())
	d.tenants.drop(second)
	assert.Equal(t, []*Tenant{other}, d.tenants.list())
	found, err := d.Tenant("other", Quota{LimitBytes: 5})
	require.NoError(t, err)
	assert.Same(t, other, found)
}

// An edge of the waits is as sure as its surest reason, in any order, and no party waits for itself. A holder that waits, is
// suspended or has an edge does not proceed.
func TestWhoWaitsForWhom(t *testing.T) {
	t.Parallel()
	a, b := Party{Stream: 1}, Party{Tenant: "guest"}
	weak, sure, told := WaitEdge{From: a, To: b}, WaitEdge{From: a, To: b, Sure: true}, WaitEdge{From: a, To: b, Told: true}
	for _, order := range [][]WaitEdge{{weak, sure, told}, {sure, weak, told}, {told, weak, sure}, {sure, told, weak}} {
		var w Waiters
		for _, e := range order {
			w.connectOne(e)
		}
		w.connectOne(WaitEdge{From: a, To: a, Sure: true})
		assert.Equal(t, []WaitEdge{{From: a, To: b, Sure: true, Told: true}}, w.Edges)
	}
	free := pool.Holder{Stream: 4, HeldBytes: 1}
	w := Waiters{
		Holders: []pool.Holder{{Stream: 1, HeldBytes: 1}, {Stream: 2, HeldBytes: 1, WaitingBytes: 1}, {Stream: 3, HeldBytes: 1, Suspended: true}, free},
		Edges:   []WaitEdge{weak},
	}
	assert.Equal(t, []pool.Holder{free}, w.Going())
}
