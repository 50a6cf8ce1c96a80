package vram

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/limits"
	"github.com/go-vram/vram/internal/memorymap"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/recovered"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/together"
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

// A measurement that ends as a stream leaves the device has the peak of that stream.
func TestAMeasurementMeetsAStreamThatLeaves(t *testing.T) {
	d, err := Open(Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	for range 100 {
		measured := d.beginScope()
		s, err := d.NewStream()
		require.NoError(t, err)
		control := d.streams.Load().open[0]
		first, err := s.Alloc(1 << 19)
		require.NoError(t, err)
		second, err := s.Alloc(1 << 20) // of the same page: the pool does not see it
		require.NoError(t, err)
		require.NoError(t, errors.Join(first.Free(), second.Free(), s.Close()))
		var left sync.WaitGroup
		left.Go(func() { d.forget(control) }) // as a tick does
		for len(d.streams.Load().open) > 0 {
			runtime.Gosched()
		}
		require.EqualValues(t, 3<<19, measured.end().PeakLiveBytes)
		left.Wait()
	}
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
	opened, err := Open(Config{DriverName: name})
	require.NoError(t, err)
	assert.Equal(t, "other", opened.Info().Driver)
	require.NoError(t, opened.Close())
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
		_, err = Open(Config{DriverName: twice})
		require.ErrorIs(t, err, ErrNoDriver, twice)
		t.Setenv("VRAM_DRIVER", twice)
		_, err = ConfigFromEnv(Config{})
		var refused *EnvError
		require.ErrorAs(t, err, &refused, twice)
		require.ErrorIs(t, refused.Err, ErrNoDriver, "the name is allowed, and does not work here")
	}
	t.Setenv("VRAM_DRIVER", "nothing")
	_, err = ConfigFromEnv(Config{})
	var refused *EnvError
	require.ErrorAs(t, err, &refused)
	require.NoError(t, refused.Err, "the name is not allowed")
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

// The calls that are due are counted until they are made: after them there is room for as many as at the beginning.
func TestNoCallIsDueAfterAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNotices(nil, new(recovered.Log))
		for range 3 {
			called, hold := 0, make(chan struct{})
			n.post(func() { <-hold })
			synctest.Wait() // it is being made, and is not due any more
			for i := range noticeLimit + 5 {
				n.post(func() {
					if called++; i%100 == 7 {
						panic(recoveredtest.Planted("somebody else's mistake"))
					}
				})
			}
			n.last(func() { called++ })
			assert.EqualValues(t, noticeLimit+1, n.due.Load())
			assert.EqualValues(t, 5, n.dropped.Load())
			close(hold)
			n.flush()
			synctest.Wait()
			assert.Equal(t, noticeLimit+1, called)
			assert.Zero(t, n.due.Load())
			assert.Zero(t, n.dropped.Load())
		}
	})
}

// A level of pressure is logged for everybody if another one was, a minute ago or more.
func TestALevelOfPressureIsDueOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		var p pressureState
		logged, quiet := PressureNormal, pressureLogInterval // of the model
		due := map[bool]int{}
		for range 1000 {
			pause := []time.Duration{0, time.Nanosecond, pressureLogInterval / 2, pressureLogInterval, max(0, pressureLogInterval-quiet)}[random.IntN(5)]
			<-time.After(pause)                    // virtual
			level := PressureLevel(random.IntN(3)) //nolint:gosec // a few
			quiet += pause
			want := level != logged && quiet >= pressureLogInterval
			if want {
				logged, quiet = level, 0
			}
			require.Equal(t, want, p.isDue(level))
			due[want]++
		}
		assert.Greater(t, due[true], 100)
		assert.Greater(t, due[false], 100)
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
	n := d.Stats()
	assert.Equal(t, [...]uint64{1, 1}, [...]uint64{n.AllocCount, n.FreeCount})
	require.NoError(t, d.Close())
	require.ErrorIs(t, pair(s), ErrClosed)
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
		surrounded := func(bytes int64) Config { return Config{outer: limits.Limit{Bytes: bytes, Source: "a variable"}} }
		assert.Equal(t, free.Policy, (&Config{Footprint: f, outer: surrounded(info.TotalBytes).outer}).settings(info).Policy)
		for _, c := range []Config{{LimitBytes: info.TotalBytes - 1}, {MemoryFraction: 0.999}, surrounded(info.TotalBytes - 1)} {
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
		"FaultPlaces": {[]encoding.TextMarshaler{FaultPlacesOff, FaultPlacesOn, FaultPlacesBlocking}, new(FaultPlaces)},
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

// Of the 256 values of each setting with a name those are valid that have one, which is read as it is written. Any other is refused
// with its field.
func TestASettingIsValidIfItHasAName(t *testing.T) {
	t.Parallel()
	settings := 0
	for field := range reflect.TypeFor[Config]().Fields() {
		if field.Type.Kind() != reflect.Uint8 {
			continue
		}
		settings++
		valid := 0
		for value := range 256 {
			c := Config{}
			v := reflect.ValueOf(&c).Elem().FieldByIndex(field.Index)
			v.SetUint(uint64(value))
			name, err := v.Interface().(encoding.TextMarshaler).MarshalText()
			require.NoError(t, err)
			assert.Equal(t, fmt.Sprint(v.Interface()), string(name))
			read := reflect.New(field.Type)
			if err := read.Interface().(encoding.TextUnmarshaler).UnmarshalText(name); err == nil {
				valid++
				assert.Equal(t, uint64(value), read.Elem().Uint(), "%s: %s", field.Name, name)
				assert.NoError(t, c.check(), "%s: %s", field.Name, name)
				continue
			}
			assert.Equal(t, fmt.Sprintf("%s(%d)", field.Type.Name(), value), string(name))
			var bad *ConfigError
			require.ErrorAs(t, c.check(), &bad, "%s: %s", field.Name, name)
			assert.Equal(t, field.Name, bad.Field)
		}
		assert.Equal(t, 3, valid, field.Name)
	}
	assert.Equal(t, 5, settings)
}

// Each function of Events, and a Logger, has its device look at events. Without any, a device has none to tell.
func TestEachFunctionOfEventsIsEnough(t *testing.T) {
	t.Parallel()
	assert.False(t, (&Config{}).watched())
	assert.True(t, (&Config{Logger: noLogger{}}).watched())
	for field := range reflect.TypeFor[Events]().Fields() {
		c := Config{}
		f := reflect.ValueOf(&c.Events).Elem().FieldByIndex(field.Index)
		f.Set(reflect.MakeFunc(field.Type, func([]reflect.Value) []reflect.Value { return nil }))
		assert.True(t, c.watched(), field.Name)
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

// Each policy of waits is the pool's policy with that name.
func TestPoliciesOfWaits(t *testing.T) {
	t.Parallel()
	for w, want := range map[Waits]poolcore.Waits{
		WaitsNever: poolcore.WaitsNever, WaitsAvoidGrowth: poolcore.WaitsAvoidGrowth, WaitsAlways: poolcore.WaitsAlways,
	} {
		assert.Equal(t, want, w.policy(), w)
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

// A suspended stream waits for the streams that it names, and for all that hold memory if it names none.
func TestASuspendedStreamWaitsForSomebody(t *testing.T) {
	t.Parallel()
	holders := []pool.Holder{{Stream: 1, HeldBytes: 1}, {Stream: 2, HeldBytes: 1}, {Tenant: "guest", HeldBytes: 1}}
	from := Party{Stream: 1}
	for _, c := range []struct {
		by   []uint32
		want []WaitEdge
	}{
		{nil, []WaitEdge{{From: from, To: Party{Stream: 2}, Sure: true}, {From: from, To: Party{Tenant: "guest"}, Sure: true}}},
		{[]uint32{3}, []WaitEdge{{From: from, To: Party{Stream: 3}, Told: true, Sure: true}}},
	} {
		w := Waiters{Holders: holders}
		w.connect(map[uint32][][]uint32{1: {c.by}})
		assert.Equal(t, c.want, w.Edges)
	}
}

// One letter too many is a misspelling of each variable.
func TestAMisspelledVariableIsRefused(t *testing.T) {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, variablePrefix) {
			t.Setenv(name, "")
		}
	}
	all := variablesElsewhere()
	for _, v := range variables() {
		all = append(all, v.name)
	}
	for _, meant := range all {
		t.Setenv(meant+"X", "1")
		var wrong *EnvError
		require.ErrorAs(t, checkNames(nil), &wrong, meant)
		assert.Equal(t, meant, wrong.Want)
		t.Setenv(meant+"X", "")
	}
	for name, meant := range map[string]string{"VRAM_ROFILER": "VRAM_PROFILER", "VRAM_ROFILES": "VRAM_PROFILER", "VRAM_OFILER": ""} {
		assert.Equal(t, meant, nearest(name, []string{"VRAM_PROFILER"}), "two letters may be wrong where both are long")
	}
}

// Requests are in the order of the queue; those that are not in it follow, the oldest first, and of one age by their streams.
func TestTheOrderOfRequests(t *testing.T) {
	t.Parallel()
	type request = streams.WaitingRequest
	want := []request{
		{Stream: 9, Age: 7, Position: 1}, {Stream: 1, Age: 3, Position: 2}, {Stream: 2}, {Stream: 5}, {Stream: 8}, {Stream: 4, Age: 1}, {Stream: 3, Age: 2},
	}
	for first := range want {
		var w Waiters
		for _, r := range slices.Concat(want[first:], want[:first]) {
			r.Position = 0
			w.Requests = append(w.Requests, r)
		}
		w.rank([]pool.Waiter{{Stream: 9, Age: 7}, {Stream: 1, Age: 3}})
		assert.Equal(t, want, w.Requests)
	}
}

// Each state of memory has a field for its bytes, with its name.
func TestEachStateHasItsBytes(t *testing.T) {
	t.Parallel()
	sums := memorymap.Sums{UnpassedBytes: 1 << 40, AsleepBytes: 1 << 41}
	for i := range sums.Bytes {
		sums.Bytes[i] = 1 << i
	}
	for _, before := range []int64{0, 1 << 20} {
		var b MemoryBytes
		fields := reflect.ValueOf(&b).Elem()
		for _, f := range fields.Fields() {
			f.SetInt(before)
		}
		b.add(&sums)
		want := map[string]int64{"UnpassedBytes": before + 1<<40, "SleepingBytes": before + 1<<41}
		for i := range sums.Bytes {
			state := MemoryState(i) //nolint:gosec // a few
			var name strings.Builder
			for word := range strings.SplitSeq(state.String(), "-") {
				name.WriteString(strings.ToUpper(word[:1]) + word[1:])
			}
			want[name.String()+"Bytes"] = before + 1<<i
		}
		got := map[string]int64{}
		for f, v := range fields.Fields() {
			got[f.Name] = v.Int()
		}
		assert.Equal(t, want, got)
	}
}

// Each count of a stream that the device's statistics have, too, is in their sums, also each count of its sizes.
func TestCountsOfStreamsAreSums(t *testing.T) {
	t.Parallel()
	var all [2]StreamStats
	for i := range all {
		count := uint64(1000 * (i + 1))
		for _, v := range reflect.ValueOf(&all[i]).Elem().Fields() {
			if count *= 3; v.CanUint() {
				v.SetUint(count)
			}
		}
		size := reflect.New(reflect.TypeFor[streams.SizeStats]()).Elem()
		for _, v := range size.Fields() {
			if count++; v.CanUint() {
				v.SetUint(count)
			} else {
				v.SetInt(int64(count)) //nolint:gosec // small
			}
		}
		size.FieldByName("BlockBytes").SetInt(4096)
		all[i].Sizes = []streams.SizeStats{size.Interface().(streams.SizeStats)}
	}
	var sum Stats
	sum.count(all[0])
	sum.count(all[1])
	a, b, got := reflect.ValueOf(all[0]), reflect.ValueOf(all[1]), reflect.ValueOf(sum)
	var both []string
	for field := range got.Type().Fields() {
		if x := a.FieldByName(field.Name); field.Type.Kind() == reflect.Uint64 && x.IsValid() && field.Name != "PoolHits" {
			both = append(both, field.Name)
			assert.Equal(t, x.Uint()+b.FieldByName(field.Name).Uint(), got.FieldByName(field.Name).Uint(), field.Name)
		}
	}
	assert.Subset(t, both, []string{"AllocCount", "FreeCount", "MagazineHits", "DriverMisses", "LostFences"})
	assert.Equal(t, all[0].RangeHits+all[1].RangeHits, sum.StreamHits)
	assert.Equal(t, all[0].PoolHits+all[1].PoolHits, sum.PoolHits+sum.DriverMisses, "of several streams: a miss is no hit of the pool")
	require.Len(t, sum.Sizes, 1)
	for field, v := range reflect.ValueOf(sum.Sizes[0]).Fields() {
		x, y := reflect.ValueOf(all[0].Sizes[0]).FieldByIndex(field.Index), reflect.ValueOf(all[1].Sizes[0]).FieldByIndex(field.Index)
		switch {
		case field.Name == "BlockBytes":
			assert.EqualValues(t, 4096, v.Int())
		case v.CanUint():
			assert.Equal(t, x.Uint()+y.Uint(), v.Uint(), field.Name)
		default:
			assert.Equal(t, x.Int()+y.Int(), v.Int(), field.Name)
		}
	}
}

// The first line of a summary has each figure that only some programs have where it is not zero, and the changes of a difference with
// their signs.
func TestRareFiguresAreInTheLine(t *testing.T) {
	t.Parallel()
	nothing := (&Stats{}).line()
	for words, s := range map[string]Stats{
		"; set aside 7 B": {SetAsideBytes: 7}, "; shared 7 B": {SharedBytes: 7}, "; asleep 7 B": {SleepingBytes: 7}, "; 0 waiting for 0 B; 3 waits": {Waits: pool.WaitStats{Count: 3}},
		"; pressure critical": {Pressure: PressureCritical},
	} {
		line := s.line()
		assert.True(t, strings.HasPrefix(line, nothing+words), line)
		if s.Delta = true; strings.HasSuffix(words, " B") {
			assert.Contains(t, s.line(), strings.Replace(words, "7 B", "+7 B", 1))
		}
	}
}

// A warm-up for large buffers maps runs that hold whole ones, so many in all as are wanted, and none that is longer than it must be:
// a gibibyte, or one buffer.
func TestRunsOfAWarmUpHoldWholeBuffers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pageBytes := int64(4<<10) << rapid.IntRange(0, 13).Draw(t, "page")
		bytes := sizeclass.MaxBytes + rapid.Int64Range(1, 2<<30).Draw(t, "beyond a class")
		if rapid.Bool().Draw(t, "whole") {
			bytes = max(pageBytes, bytes/pageBytes*pageBytes) + rapid.Int64Range(-1, 1).Draw(t, "around a page")
		}
		bytes = max(bytes, sizeclass.MaxBytes+1)
		count := rapid.IntRange(0, 50).Draw(t, "count")
		runs, err := warmRuns([]Demand{{Bytes: bytes, Count: count}}, pageBytes, math.MaxInt64)
		require.NoError(t, err)
		block := int64(sizeclass.Units(bytes)) << sizeclass.UnitShift
		held, most := int64(0), max(block, warmRunBytes)
		for _, pages := range runs {
			runBytes := int64(pages) * pageBytes
			assert.Less(t, runBytes, most+pageBytes)
			assert.GreaterOrEqual(t, runBytes, block)
			held += min(runBytes/block, max(1, warmRunBytes/block))
		}
		assert.GreaterOrEqual(t, held, int64(count))
		assert.Equal(t, (int64(count)+max(1, warmRunBytes/block)-1)/max(1, warmRunBytes/block), int64(len(runs)), "as few as can be")
	})
}

// A warm-up of small buffers may have all of the limit, and no page more.
func TestSmallBuffersOfAWarmUpFillTheLimit(t *testing.T) {
	t.Parallel()
	for class := range sizeclass.Count {
		spanBytes := int64(sizeclass.SpanUnits(class)) << sizeclass.UnitShift
		blockBytes := int64(sizeclass.BlockUnits(class)) << sizeclass.UnitShift
		want := []Demand{{Bytes: blockBytes, Count: 3 * int(sizeclass.SpanBlocks(class))}}
		_, err := warmRuns(want, 512, 3*spanBytes)
		require.NoError(t, err, "blocks of %d bytes", blockBytes)
		_, err = warmRuns(want, 512, 3*spanBytes-1)
		require.Error(t, err, "blocks of %d bytes", blockBytes)
	}
}

// The table of devices in use has those that were added and not removed, with the others on their GPU as neighbours.
func TestTheTableOfDevices(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var devices table
		all := make([]*Device, 6)
		for i := range all {
			all[i] = new(Device)
		}
		on := map[*Device]byte{} // the GPU of each that is in use; 0 has no name
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			d := rapid.SampledFrom(all).Draw(t, "device")
			if _, added := on[d]; added || rapid.Bool().Draw(t, "remove") {
				devices.remove(d)
				delete(on, d)
			} else {
				on[d] = rapid.ByteRange(0, 2).Draw(t, "GPU")
				devices.add(cudadrv.UUID{on[d]}, d)
			}
			for _, x := range all {
				var want []*Device
				for _, y := range all {
					if y != x && on[x] != 0 && on[x] == on[y] {
						want = append(want, y)
					}
				}
				assert.ElementsMatch(t, want, devices.of(x))
			}
		}
	})
}

// Devices that come and go at the same time leave nothing in the table, and take nothing of others with them.
func TestTheTableOfDevicesAtTheSameTime(t *testing.T) {
	t.Parallel()
	var devices table
	gpu := cudadrv.UUID{1}
	kept, other := new(Device), new(Device)
	devices.add(gpu, kept)
	devices.add(gpu, other)
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for range 500 {
				d := new(Device)
				devices.add(gpu, d)
				assert.Contains(t, devices.of(d), kept)
				devices.remove(d)
			}
		})
	}
	work.Wait()
	assert.Equal(t, []*Device{other}, devices.of(kept))
}

// A device that cannot be used is no peer: its error is the call's, on either side.
func TestAPeerThatDoesNotOpen(t *testing.T) {
	t.Parallel()
	d, err := Open(Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	faults := fault.Wrap(sim.New(sim.Config{}))
	require.NoError(t, faults.Add(fault.Rule{Func: "cuDevicePrimaryCtxRetain", Result: cudadrv.Unknown}))
	broken, err := Open(Config{Driver: faults})
	require.NoError(t, err)
	for _, pair := range [][2]*Device{{d, broken}, {broken, d}} {
		_, err := pair[0].CanAccessPeer(pair[1])
		require.ErrorIs(t, err, cudadrv.Unknown)
		require.ErrorIs(t, pair[0].EnablePeerAccess(pair[1]), cudadrv.Unknown)
	}
	require.NoError(t, broken.Close())
	require.NoError(t, d.Close())
}

// A call that the pool refuses since a Close came in between says that the device is closed; the panic of a driver is another error.
func TestACallThatMeetsTheEndOfThePool(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(d, own *Device) error{
		"Warm":             func(d, _ *Device) error { return d.Warm(t.Context(), Demand{Bytes: 1 << 20, Count: 1}) },
		"Trim":             func(d, _ *Device) error { _, err := d.Trim(t.Context(), 0); return err },
		"EnablePeerAccess": func(d, own *Device) error { return own.EnablePeerAccess(d) },
	} {
		faults := fault.Wrap(sim.New(sim.Config{Devices: 2}))
		var devices []*Device
		for ordinal := range 2 {
			d, err := Open(Config{Driver: faults, Ordinal: ordinal})
			require.NoError(t, err)
			s, err := d.NewStream()
			require.NoError(t, err)
			b, err := s.Alloc(4 << 20)
			require.NoError(t, err)
			require.NoError(t, b.Free())
			devices = append(devices, d)
		}
		faults.SetBefore(func(function string) {
			if slices.Contains([]string{"cuMemCreate", "cuMemUnmap", "cuMemSetAccess"}, function) {
				panic(recoveredtest.Planted(name))
			}
		})
		err := call(devices[0], devices[1])
		require.ErrorIs(t, err, pool.ErrDriverPanic, name)
		require.NotErrorIs(t, err, ErrClosed, name)
		faults.SetBefore(nil)
		require.NoError(t, devices[0].engine.Load().pool.Close())
		var closed *ClosedError
		require.ErrorAs(t, call(devices[0], devices[1]), &closed, name)
		for _, d := range devices {
			_ = d.Close() // memory that the driver has not released is in the error
		}
	}
}

// Work of a device reaches the buffers of another one from EnablePeerAccess on, in one direction: of a device on the same GPU, and
// of one on another.
func TestAccessReachesTheBuffersOfADevice(t *testing.T) {
	t.Parallel()
	driver := sim.New(sim.Config{Devices: 2})
	for _, ordinals := range [][2]int{{0, 0}, {0, 1}} {
		var devices []*Device
		var work []streams.Submitter
		var buffers []Buffer
		for _, ordinal := range ordinals {
			d, err := Open(Config{Driver: driver, Ordinal: ordinal})
			require.NoError(t, err)
			s, err := d.NewStream()
			require.NoError(t, err)
			b, err := s.Alloc(1)
			require.NoError(t, err)
			x, err := streams.NewSubmitter(s)
			require.NoError(t, err)
			devices, work, buffers = append(devices, d), append(work, x), append(buffers, b)
		}
		_, err := work[0].Reach(buffers[1])
		require.ErrorIs(t, err, streams.ErrForeign)
		require.NoError(t, devices[0].EnablePeerAccess(devices[1]))
		owner, err := work[0].Reach(buffers[1])
		require.NoError(t, err, "%v", ordinals)
		assert.Equal(t, work[1], owner)
		_, err = work[1].Reach(buffers[0])
		require.ErrorIs(t, err, streams.ErrForeign, "it has one direction")
		for i, d := range devices {
			require.NoError(t, buffers[i].Free())
			require.NoError(t, d.Close())
		}
	}
}

// A Close that waits for a capture on its GPU for too long lets captures of all other streams begin again.
func TestCapturesThatWereHeldUpBeginAfterAClose(t *testing.T) {
	t.Parallel()
	d, err := Open(Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	var submitters []streams.Submitter
	for range 3 {
		s, err := d.NewStream()
		require.NoError(t, err)
		x, err := streams.NewSubmitter(s)
		require.NoError(t, err)
		submitters = append(submitters, x)
	}
	nothing := func() error { return nil }
	for at, x := range submitters {
		require.NoError(t, x.BeginCapture(nothing))
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			_, err := holdCaptures([]*Device{d})
			var refused *CaptureError
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, d.streams.Load().open[at].ID(), refused.Stream)
			assert.InDelta(t, captureTimeout.Seconds(), time.Since(begun).Seconds(), 0.1)
		})
		x.EndCapture()
	}
	release, err := holdCaptures([]*Device{d})
	require.NoError(t, err)
	release()
	for _, x := range submitters {
		require.NoError(t, x.BeginCapture(nothing))
		x.EndCapture()
	}
	require.NoError(t, d.Close())
}

// A Reconfigure that switches statistics off reads them before: the counts have all allocations and frees until then, also where
// nobody has read them yet.
func TestCountsAreReadBeforeStatisticsAreOff(t *testing.T) {
	t.Parallel()
	d, err := Open(Config{Driver: sim.New(sim.Config{}), LimitBytes: 64 << 20})
	require.NoError(t, err)
	var all []*Stream
	for range 2 {
		s, err := d.NewStream()
		require.NoError(t, err)
		all = append(all, s)
	}
	want := uint64(0)
	for round := range 3 {
		for _, s := range all {
			for _, bytes := range []int64{700, 4096, 4096, 40 << 20} {
				b, err := s.Alloc(bytes)
				require.NoError(t, err)
				require.NoError(t, b.Free())
				want++
			}
		}
		require.NoError(t, d.Reconfigure(Settings{Stats: new(StatsOff)}))
		n := d.Stats()
		assert.Equal(t, [...]uint64{want, want}, [...]uint64{n.AllocCount, n.FreeCount}, "round %d", round)
		assert.Equal(t, want, n.MagazineHits+n.StreamHits+n.PoolHits+n.DriverMisses)
		reclaims := n.ReclaimCount
		require.NoError(t, d.Reconfigure(Settings{Stats: new(StatsOn)}))
		assert.Equal(t, d.Stats().ReclaimCount, reclaims)
	}
	require.NoError(t, d.Close())
}

// With statistics off the figures have the waits that were counted, and none that was waiting then.
func TestNoRequestWaitsInFiguresOfThePast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, err := Open(Config{Driver: sim.New(sim.Config{}), LimitBytes: 32 << 20})
		require.NoError(t, err)
		s, err := d.NewStream()
		require.NoError(t, err)
		b, err := s.Alloc(30 << 20)
		require.NoError(t, err)
		f := s.AllocAsync(t.Context(), Request{Bytes: 8 << 20, Wait: true})
		synctest.Wait()
		n := d.Stats().Waits
		require.Equal(t, [...]int64{1, 8 << 20}, [...]int64{int64(n.Waiting), n.DemandBytes})
		require.NoError(t, d.Reconfigure(Settings{Stats: new(StatsOff)}))
		require.NoError(t, b.Free())
		b, err = f.Await(t.Context())
		require.NoError(t, err)
		n = d.Stats().Waits
		assert.EqualValues(t, 1, n.Count)
		assert.Equal(t, [...]int64{0, 0}, [...]int64{int64(n.Waiting), n.DemandBytes})
		require.NoError(t, b.Free())
		require.NoError(t, d.Close())
	})
}

// A stream that has buffers of another counts them as its own, and their sum may be its peak; the peaks of the other stay.
func TestBuffersThatWereHandedOverCountForTheirStream(t *testing.T) {
	t.Parallel()
	for _, peaks := range [][2]int64{{20, 30}, {20, 99}, {99, 30}, {99, 99}} {
		s := Stats{Streams: []StreamStats{
			{Stream: 1, LiveBytes: 50, HeldBytes: 70, PeakLiveBytes: 60, PeakHeldBytes: 80},
			{Stream: 2, LiveBytes: 20, HeldBytes: 30, PeakLiveBytes: peaks[0], PeakHeldBytes: peaks[1]},
			{Stream: 3, LiveBytes: 1, HeldBytes: 2, PeakLiveBytes: 3, PeakHeldBytes: 4},
		}}
		s.chargeHanded([]pool.Handed{{From: 1, To: 2, Bytes: 40}, {From: 1, To: 9, Bytes: 1}, {From: 9, To: 1, Bytes: 1}})
		assert.Equal(t, []StreamStats{
			{Stream: 1, LiveBytes: 10, HeldBytes: 30, PeakLiveBytes: 60, PeakHeldBytes: 80},
			{Stream: 2, LiveBytes: 60, HeldBytes: 70, PeakLiveBytes: max(peaks[0], 60), PeakHeldBytes: max(peaks[1], 70)},
			{Stream: 3, LiveBytes: 1, HeldBytes: 2, PeakLiveBytes: 3, PeakHeldBytes: 4},
		}, s.Streams)
		s.chargeHanded([]pool.Handed{{From: 1, To: 3, Bytes: 11}}) // read a moment later
		assert.Zero(t, s.Streams[0].LiveBytes)
		assert.EqualValues(t, 11, s.Streams[2].LiveBytes)
	}
}

// A stream that has ended leaves nothing with the device, also one whose failure was reported.
func TestATickForgetsStreamsThatHaveEnded(t *testing.T) {
	t.Parallel()
	d, err := Open(Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	e := d.engine.Load()
	e.ticks.stop()
	d.failed[s.ID()] = true
	d.tick(e)
	assert.Len(t, d.failed, 1)
	require.NoError(t, s.Close())
	for control := d.streams.Load().open[0]; !control.Gone(); {
		runtime.Gosched()
	}
	d.tick(e)
	assert.Empty(t, d.failed)
	assert.Empty(t, d.streams.Load().open)
	require.NoError(t, d.Close())
}

// Tenants with names of one part that are made and closed at the same time: those that are open are on the list, each once, and one name
// is one tenant.
func TestManyGoroutinesMakeTenants(t *testing.T) {
	t.Parallel()
	d := &Device{closeDone: make(chan struct{})}
	const goroutines, rounds = 4, 200
	var names []string
	for i := 0; len(names) < 2*goroutines+1; i++ {
		if name := fmt.Sprint("guest", i); d.tenants.part(name) == d.tenants.part("guest0") {
			names = append(names, name)
		}
	}
	common := names[2*goroutines]
	for range rounds {
		var same [goroutines]*Tenant
		together.Run(goroutines, func(number int) {
			var err error
			same[number], err = d.Tenant(common, Quota{})
			assert.NoError(t, err)
			stays, err := d.Tenant(names[2*number], Quota{})
			assert.NoError(t, err)
			ends, err := d.Tenant(names[2*number+1], Quota{})
			assert.NoError(t, err)
			assert.NoError(t, ends.Close())
			assert.Equal(t, names[2*number], stays.Name())
		})
		want := []string{common}
		for i := range goroutines {
			require.Same(t, same[0], same[i])
			want = append(want, names[2*i])
		}
		var got []string
		for _, x := range d.tenants.list() {
			got = append(got, x.Name())
		}
		require.ElementsMatch(t, want, got)
		together.Run(goroutines, func(number int) {
			for _, x := range d.tenants.list() {
				if x.Name() == names[2*number] || number == 0 && x == same[0] {
					assert.NoError(t, x.Close())
				}
			}
		})
		require.Empty(t, d.tenants.list())
	}
}

// Devices that begin and end at the same time are in the table of GPUs while they are open.
func TestManyGoroutinesEnterDevices(t *testing.T) {
	t.Parallel()
	const goroutines = 4
	for range 300 {
		var all table
		var stay [goroutines]*Device
		together.Run(goroutines, func(number int) {
			stay[number] = &Device{}
			ends := &Device{}
			all.add(cudadrv.UUID{1}, ends)
			all.add(cudadrv.UUID{1}, stay[number])
			all.remove(ends)
		})
		rows, _ := all.all()
		require.Len(t, rows, goroutines)
		for _, d := range stay {
			require.True(t, slices.ContainsFunc(rows, func(r row) bool { return r.device == d }))
		}
		together.Run(goroutines, func(number int) { all.remove(stay[number]) })
		rows, _ = all.all()
		require.Empty(t, rows)
	}
}

// Bookings that are made and ended at the same time add up.
func TestManyGoroutinesBook(t *testing.T) {
	t.Parallel()
	s := &Set{}
	s.booked.Store(&[]int64{0, 0})
	together.Run(4, func(number int) {
		for range 200 {
			for !s.book(s.booked.Load(), number%2, 3) {
			}
			Placement{Bytes: 2, set: s, number: number % 2, done: &atomic.Bool{}}.Done()
		}
	})
	assert.Equal(t, []int64{400, 400}, *s.booked.Load())
}

// Functions that are posted at the same time are each called once, also as the goroutine that calls them ends.
func TestManyGoroutinesPostNotices(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNotices(nil, &recovered.Log{})
		const goroutines, each, rounds = 4, 3, 300
		for range rounds {
			var calls [goroutines * each]int // of the goroutine of the calls
			together.Run(goroutines, func(number int) {
				for i := range each {
					n.post(func() { calls[number*each+i]++ })
				}
			})
			n.flush()
			for i := range calls {
				require.Equal(t, 1, calls[i])
			}
		}
		require.Zero(t, n.due.Load())
	})
}

// Changes of the list of streams that are made at the same time are all in it.
func TestManyGoroutinesChangeTheStreams(t *testing.T) {
	t.Parallel()
	d := &Device{}
	d.streams.Store(&registry{})
	const goroutines, each = 4, 200
	together.Run(goroutines, func(int) {
		for range each {
			d.change(func(r *registry) { r.gone.AllocCount++ })
		}
	})
	assert.EqualValues(t, goroutines*each, d.streams.Load().gone.AllocCount)
}

// The first uses of a device at the same time open it once.
func TestManyGoroutinesUseADeviceFirst(t *testing.T) {
	t.Parallel()
	for range 30 {
		driver := fault.Wrap(sim.New(sim.Config{}))
		d, err := Open(Config{Driver: driver})
		require.NoError(t, err)
		var engines [4]*engine
		together.Run(len(engines), func(number int) {
			var err error
			engines[number], err = d.use()
			assert.NoError(t, err)
		})
		for _, e := range engines {
			require.Same(t, engines[0], e)
		}
		require.EqualValues(t, 1, driver.Calls("cuDevicePrimaryCtxRetain"))
		require.NoError(t, d.Close())
	}
}

// The first uses of a device that does not open each have the driver's error, also those that wait for one which has just ended.
func TestManyGoroutinesUseADeviceThatDoesNotOpen(t *testing.T) {
	t.Parallel()
	driver := fault.Wrap(sim.New(sim.Config{}))
	require.NoError(t, driver.Add(fault.Rule{Func: "cuDevicePrimaryCtxRetain", Result: cudadrv.Unknown}))
	d, err := Open(Config{Driver: driver})
	require.NoError(t, err)
	together.Run(4, func(int) {
		for range 300 {
			e, err := d.use()
			assert.Nil(t, e)
			assert.ErrorIs(t, err, cudadrv.Unknown)
		}
	})
	require.NoError(t, d.Close())
}

// Each call that asks the streams one after the other reaches the first, the last and those between.
func TestEachStreamIsAsked(t *testing.T) {
	t.Parallel()
	d, err := Open(Config{Driver: sim.New(sim.Config{}), SampleBytes: 1})
	require.NoError(t, err)
	const count = 3
	var all [count]*Stream
	var kept [count]Buffer
	for i := range all {
		all[i], err = d.NewStream()
		require.NoError(t, err)
		kept[i], err = all[i].Alloc(int64(i+1) << 20)
		require.NoError(t, err)
	}
	each := func(n Stats, want func(i int) int64, of func(*StreamStats) int64, name string) {
		t.Helper()
		require.Len(t, n.Streams, count, name)
		for i := range n.Streams {
			assert.Equal(t, want(i), of(&n.Streams[i]), "%s of stream %d", name, i)
		}
	}
	own := func(i int) int64 { return int64(i+1) << 20 }
	more := func(i int) int64 { return own(i) + 8<<20 }
	peak := func(n *StreamStats) int64 { return n.PeakLiveBytes }
	grow := func(bytes int64) {
		for _, s := range all {
			b, err := s.Alloc(bytes)
			require.NoError(t, err)
			require.NoError(t, b.Free())
		}
	}

	for i := range kept {
		b, found := d.Lookup(kept[i].Ptr() + 1)
		assert.True(t, found)
		assert.Equal(t, kept[i].Ptr(), b.Ptr())
		_, err := d.AdoptStream(all[i].Handle())
		held, _ := errors.AsType[*HandleError](err)
		require.NotNil(t, held, "%v", err)
		assert.Equal(t, all[i].ID(), held.Stream)
	}
	listed, err := d.LiveBuffers(t.Context())
	require.NoError(t, err)
	assert.Len(t, listed.Buffers, count)
	sampled, err := d.SampledBuffers(t.Context())
	require.NoError(t, err)
	assert.Len(t, sampled, count)
	layout, err := d.MemoryMap(t.Context(), 0)
	require.NoError(t, err)
	assert.EqualValues(t, 6<<20, layout.Total.LiveBytes)
	var found []int64
	stop, err := d.Observe(Observer{Found: func(e BufferEvent) { found = append(found, e.Bytes) }})
	require.NoError(t, err)
	assert.Equal(t, []int64{own(0), own(1), own(2)}, found)
	stop()

	grow(16 << 20)
	each(d.Measure(func() { grow(8 << 20) }).Stats, more, peak, "peak inside")
	each(d.Stats(), func(i int) int64 { return own(i) + 16<<20 }, peak, "peak")
	d.ResetPeaks()
	each(d.Stats(), own, peak, "peak after a reset")
	each(d.Stats(), own, func(n *StreamStats) int64 { return n.LiveBytes }, "live")
	_, err = d.Trim(t.Context(), 0)
	require.NoError(t, err)
	each(d.Stats(), func(int) int64 { return 0 }, func(n *StreamStats) int64 { return n.CachedBytes / (2 << 20) }, "whole pages cached after a trim")
	require.NoError(t, d.Reconfigure(Settings{Stats: new(StatsExact)}))
	for i, s := range all { // no stream has magazines any more
		before := d.Stats().Streams[i].MagazineHits
		for range 3 {
			b, err := s.Alloc(700)
			require.NoError(t, err)
			require.NoError(t, b.Free())
		}
		assert.Equal(t, before, d.Stats().Streams[i].MagazineHits)
	}
	before := d.Stats().AllocCount
	grow(700)
	require.NoError(t, d.Reconfigure(Settings{Stats: new(StatsOff)}))
	assert.Equal(t, before+count, d.Stats().AllocCount, "the counts of the end")
	var left *InUseError
	require.ErrorAs(t, d.Close(), &left)
	assert.Len(t, left.Buffers, count)
}

// A setting stays, whichever observers begin and end during its change.
func TestObserversAmongChangesOfSettings(t *testing.T) {
	t.Parallel()
	d, err := Open(Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	together.Run(3, func(number int) {
		for i := range 100 {
			if number > 0 {
				stop, err := d.Observe(Observer{})
				assert.NoError(t, err)
				stop()
				continue
			}
			want := []StatsLevel{StatsOn, StatsExact}[i%2]
			assert.NoError(t, d.Reconfigure(Settings{Stats: new(want)}))
			assert.Equal(t, want, d.config.Load().Stats)
		}
	})
	require.NoError(t, d.Close())
}

// A limit of the surroundings that is found with an old configuration changes nothing else of the present one.
func TestALimitIsAppliedToThePresentConfiguration(t *testing.T) {
	t.Parallel()
	d, err := openIn(Config{Driver: sim.New(sim.Config{TotalBytes: 64 << 20})}, surroundedBy(map[string]string{"CUDA_DEVICE_MEMORY_LIMIT": "32m"}))
	require.NoError(t, err)
	old := d.config.Load()
	require.NoError(t, d.Reconfigure(Settings{Stats: new(StatsExact)}))
	got := d.surround(old, cudadrv.Info{TotalBytes: 64 << 20})
	assert.Same(t, d.config.Load(), got)
	assert.Equal(t, StatsExact, got.Stats)
	assert.EqualValues(t, 32<<20, got.outer.Bytes)
	require.NoError(t, d.Close())
}

// A call that ends its goroutine, as a function of the program may, ends no ticker, and stop waits for no end of it.
func TestATickerOutlivesTheGoroutineOfACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls, resume := 0, make(chan struct{})
		x := startTicker(time.Second, func() {
			if calls++; calls == 3 {
				<-resume
			}
			runtime.Goexit()
		})
		time.Sleep(time.Minute) //nolint:forbidigo // virtual time
		synctest.Wait()
		require.Equal(t, 3, calls)
		stopped := make(chan struct{})
		go func() {
			x.stop()
			close(stopped)
		}()
		synctest.Wait()
		close(resume)
		<-stopped
		time.Sleep(time.Minute) //nolint:forbidigo // virtual time
		assert.Equal(t, 3, calls)
	})
}

// A ticker that was stopped calls nothing more, also where its timer has fired before, and stop waits for the call that runs.
func TestAStoppedTickerCallsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls, resume := 0, make(chan struct{})
		x := startTicker(time.Second, func() {
			calls++
			<-resume
		})
		x.stop()
		x.fire()
		assert.Zero(t, calls)
		x = startTicker(time.Second, x.call)
		time.Sleep(time.Minute) //nolint:forbidigo // virtual time
		synctest.Wait()
		require.Equal(t, 1, calls)
		x.fire() // while a call runs
		require.Equal(t, 1, calls)
		stopped := make(chan struct{})
		go func() {
			x.stop()
			close(stopped)
		}()
		synctest.Wait()
		select {
		case <-stopped:
			t.Error("it did not wait")
		default:
		}
		close(resume)
		<-stopped
		time.Sleep(time.Minute) //nolint:forbidigo // virtual time
		assert.Equal(t, 1, calls)
	})
}

// opener is a driver whose Open waits.
type opener struct {
	cudadrv.Driver
	begun, proceed chan struct{}
}

func (o *opener) Open(ordinal int) (cudadrv.Device, error) {
	close(o.begun)
	<-o.proceed
	return o.Driver.Open(ordinal)
}

// Calls that find a device in use, which another call is opening, find the tenants and the limit that came before.
func TestTenantsAndSettingsComeBeforeTheFirstUse(t *testing.T) {
	for range 20 {
		o := &opener{sim.New(sim.Config{}), make(chan struct{}), make(chan struct{})}
		d, err := Open(Config{Driver: o})
		require.NoError(t, err)
		var all []*Tenant
		add := func(from, to int) {
			for i := range to - from {
				tenant, err := d.Tenant(fmt.Sprint("tenant ", from+i), Quota{})
				require.NoError(t, err)
				all = append(all, tenant)
			}
		}
		add(0, 500)
		used := make(chan error)
		go func() {
			_, err := d.use()
			used <- err
		}()
		<-o.begun
		add(500, 600)
		limit := int64(64 << 20)
		require.NoError(t, d.Reconfigure(Settings{LimitBytes: &limit}))
		close(o.proceed)
		for spins := 0; d.engine.Load() == nil; spins++ { // nearly without a pause, to be there first
			if spins%100 == 99 {
				runtime.Gosched()
			}
		}
		assert.Equal(t, limit, d.limit.Load())
		for i := range all {
			require.NoError(t, (*pool.TenantControl)(all[len(all)-1-i]).Of(d.engine.Load().pool), "tenant %d", len(all)-1-i)
		}
		require.NoError(t, <-used)
		require.NoError(t, d.Close())
	}
}

// Of goroutines that ask for a tenant of one name at once each gets one that requests may name.
func TestGoroutinesAskForOneTenant(t *testing.T) {
	d, err := Open(Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	e, err := d.use()
	require.NoError(t, err)
	for round := range 300 {
		together.Run(4, func(int) {
			tenant, err := d.Tenant(fmt.Sprint("tenant ", round), Quota{ShareBytes: 1})
			if assert.NoError(t, err) {
				assert.NoError(t, (*pool.TenantControl)(tenant).Of(e.pool))
			}
		})
	}
	require.NoError(t, d.Close())
}
