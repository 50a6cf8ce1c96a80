package main

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/fleet"
	"github.com/go-vram/vram/fleet/core"
	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/lab/baseline"
	"github.com/go-vram/vram/lab/bench"
	"github.com/go-vram/vram/lab/compare"
	"github.com/go-vram/vram/lab/replay"
	"github.com/go-vram/vram/monitor/gpus"
	"github.com/go-vram/vram/monitor/page"
)

// distinct returns a value whose figures all differ, so that an exchanged figure shows: numbers of bytes are mebibytes,
// and slices have two elements.
func distinct[T any]() T {
	var value T
	next := int64(10)
	var set func(v reflect.Value, name string)
	set = func(v reflect.Value, name string) {
		switch v.Kind() {
		case reflect.Int, reflect.Int32, reflect.Int64:
			next++
			v.SetInt(next)
			if strings.HasSuffix(name, "Bytes") {
				v.SetInt(next << 20)
			}
		case reflect.Uint32, reflect.Uint64:
			next++
			v.SetUint(uint64(next)) //nolint:gosec // small
		case reflect.Float64:
			next++
			v.SetFloat(float64(next))
		case reflect.String:
			next++
			v.SetString("s" + strconv.FormatInt(next, 10))
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			set(v.Elem(), name)
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			for i := range 2 {
				set(v.Index(i), name)
			}
		case reflect.Struct:
			if v.Type() == reflect.TypeFor[time.Time]() {
				return
			}
			for i := range v.NumField() {
				if v.Field(i).CanSet() {
					set(v.Field(i), v.Type().Field(i).Name)
				}
			}
		}
	}
	set(reflect.ValueOf(&value).Elem(), "")
	return value
}

// cells are the texts of printed tables, by the first column and the heading; the pieces of a wide table are one.
func cells(t *testing.T, printed string) map[string]map[string]string {
	t.Helper()
	all := map[string]map[string]string{}
	var header []string
	for line := range strings.Lines(printed) {
		switch {
		case strings.HasPrefix(line, "┌"):
			header = nil
		case strings.HasPrefix(line, "│"):
			row := strings.Split(strings.Trim(strings.TrimSpace(line), "│"), "│")
			for i := range row {
				row[i] = strings.TrimSpace(row[i])
			}
			if header == nil {
				header = row
				continue
			}
			require.Len(t, row, len(header))
			if all[row[0]] == nil {
				all[row[0]] = map[string]string{}
			}
			for i, name := range header[1:] {
				all[row[0]][name] = row[i+1]
			}
		}
	}
	return all
}

func arrow(first, last string) string { return first + " → " + last }

func whole[T int | int64 | uint64](n T) string { return strconv.FormatInt(int64(n), 10) }

// Each figure of a replay is under its own heading.
func TestColumnsOfAReplay(t *testing.T) {
	var out bytes.Buffer
	r := distinct[replay.Result]()
	r.LongestWaitNs = 7000
	first, last := r.Rounds[0], r.Rounds[1]
	c := &replayCmd{Rounds: 2, Wait: true, MinCapacity: true, Gap: 1, Hazards: true}
	want := map[string]string{
		"events": whole(r.EventCount), "streams": whole(r.StreamCount), "peak live": bytesText(r.PeakLiveBytes),
		"peak reserved": bytesText(r.PeakReservedBytes), "reserved/live": decimals(r.ReservedOverLive, 3),
		"cold ns/op": decimals(first.NsPerOp, 1), "warm ns/op": decimals(*r.WarmNsPerOp, 1), "allocs/op": decimals(*r.AllocsPerOp, 4),
		"driver calls": arrow(whole(first.DriverCalls), whole(last.DriverCalls)),
		"driver ns/op": arrow(decimals(first.DriverNsPerOp, 1), decimals(last.DriverNsPerOp, 1)),
		"hit rate":     arrow(decimals(100*first.HitRate, 1)+"%", decimals(100*last.HitRate, 1)+"%"),
		"cached":       bytesText(last.CachedBytes), "failed": whole(first.FailedCount + last.FailedCount),
		"waits": whole(r.WaitCount), "deadlocks": whole(r.DeadlockCount), "restarts": whole(r.RestartCount), "longest wait": "7µs",
		"least limit": bytesText(r.MinCapacityBytes), "limit/live": decimals(r.MinCapacityOverLive, 3),
		"p50 ns": decimals(r.P50Nanos, 0), "p99 ns": decimals(r.P99Nanos, 0), "p99.9 ns": decimals(r.P999Nanos, 0),
		"hazards": whole(r.Hazards.Count),
	}
	require.NoError(t, c.print(&program{stdout: &out}, 0, []replay.Result{r}))
	assert.Equal(t, want, cells(t, out.String())[r.Trace])

	err := failures([]replay.Result{{Trace: "x", Rounds: []replay.Round{{FailedCount: 9, DeadlockedCount: 2}, {FailedCount: 4, DeadlockedCount: 1}}}})
	require.EqualError(t, err, "x: 3 allocations refused as deadlocks: every stream with memory waited for more\nx: 10 allocations found no memory")
}

// So are the figures of a comparison, in the row of its name, with b divided by a.
func TestColumnsOfAComparison(t *testing.T) {
	var out bytes.Buffer
	r := distinct[compare.Result]()
	r.Baselines[1].Way = baseline.Way("another")
	want := map[string]map[string]string{}
	spread := func(s compare.Spread) string {
		return fmt.Sprintf("%s (%s to %s)", decimals(s.Median, 1), decimals(s.Least, 1), decimals(s.Most, 1))
	}
	for name, of := range map[string]struct {
		figure func(s *compare.Side) float64
		text   func(s *compare.Side, v float64) string
	}{
		"warm ns an event":          {func(s *compare.Side) float64 { return s.WarmNs.Median }, func(s *compare.Side, _ float64) string { return spread(s.WarmNs) }},
		"cold ns an event":          {func(s *compare.Side) float64 { return s.ColdNs.Median }, func(s *compare.Side, _ float64) string { return spread(s.ColdNs) }},
		"p50 ns of an event":        {figure: func(s *compare.Side) float64 { return s.P50Nanos }},
		"p99 ns of an event":        {figure: func(s *compare.Side) float64 { return s.P99Nanos }},
		"p99.9 ns of an event":      {figure: func(s *compare.Side) float64 { return s.P999Nanos }},
		"driver calls, first round": {figure: func(s *compare.Side) float64 { return float64(s.FirstDriverCalls) }},
		"driver calls, last round":  {figure: func(s *compare.Side) float64 { return float64(s.LastDriverCalls) }},
		"driver ns an event, first": {func(s *compare.Side) float64 { return s.FirstDriverNs }, func(_ *compare.Side, v float64) string { return decimals(v, 1) }},
		"driver ns an event, last":  {func(s *compare.Side) float64 { return s.LastDriverNs }, func(_ *compare.Side, v float64) string { return decimals(v, 1) }},
		"peak reserved":             {func(s *compare.Side) float64 { return float64(s.PeakReservedBytes) }, func(_ *compare.Side, v float64) string { return units.Bytes(int64(v)) }},
		"efficiency":                {func(s *compare.Side) float64 { return s.Efficiency }, func(_ *compare.Side, v float64) string { return decimals(v, 3) }},
		"fragmentation at the end":  {func(s *compare.Side) float64 { return s.Fragmentation }, func(_ *compare.Side, v float64) string { return decimals(v, 3) }},
		"cached by streams":         {func(s *compare.Side) float64 { return float64(s.CachedBytes) }, func(_ *compare.Side, v float64) string { return units.Bytes(int64(v)) }},
		"from magazines":            {figure: func(s *compare.Side) float64 { return float64(s.Hits.Magazine) }},
		"from the stream's ranges":  {figure: func(s *compare.Side) float64 { return float64(s.Hits.Stream) }},
		"from the pool":             {figure: func(s *compare.Side) float64 { return float64(s.Hits.Pool) }},
		"from the driver":           {figure: func(s *compare.Side) float64 { return float64(s.Hits.Driver) }},
		"waits":                     {figure: func(s *compare.Side) float64 { return float64(s.WaitCount) }},
		"out of memory":             {figure: func(s *compare.Side) float64 { return float64(s.FailedCount - s.DeadlockedCount) }},
		"refused as deadlocks":      {figure: func(s *compare.Side) float64 { return float64(s.DeadlockedCount) }},
	} {
		text := func(s *compare.Side) string {
			if of.text == nil {
				return decimals(of.figure(s), 0)
			}
			return of.text(s, of.figure(s))
		}
		want[name] = map[string]string{"a": text(&r.A), "b": text(&r.B), "b / a": quotient(of.figure(&r.A), of.figure(&r.B))}
	}
	require.NoError(t, printComparison(&program{stdout: &out}, &r))
	printed := cells(t, out.String())
	for name := range want {
		assert.Equal(t, want[name], printed[name], name)
	}
	assert.Equal(t, []string{"", "1", "0.500", "1.500"}, []string{quotient(0, 2), quotient(2, 2), quotient(4, 2), quotient(2, 3)})

	r.EventCount = 2
	r.Baselines[0].Rounds[0].Driver, r.Baselines[0].Rounds[1].Driver = 40, 20
	out.Reset()
	require.NoError(t, printBaselines(&program{stdout: &out}, &r))
	b := r.Baselines[0]
	first, last := b.Rounds[0], b.Rounds[1]
	assert.Equal(t, map[string]string{
		"peak reserved": units.Bytes(b.PeakReservedBytes), "efficiency": decimals(min(1, float64(r.PeakLiveBytes)/float64(b.PeakReservedBytes)), 3),
		"first calls": whole(first.DriverCalls), "last calls": whole(last.DriverCalls), "first ns": "20.0", "last ns": "10.0",
		"last hits": whole(last.Hits), "sizes": whole(b.SizeCount), "failed": whole(first.FailedCount + last.FailedCount),
	}, cells(t, out.String())[string(b.Way)])
}

// So are the figures of a benchmark.
func TestColumnsOfABenchmark(t *testing.T) {
	var out bytes.Buffer
	r := distinct[bench.Row]()
	require.NoError(t, printRows(&program{stdout: &out}, []bench.Row{{Scenario: bench.ScenarioCalibration, NsPerOp: 4}, r}, false))
	assert.Equal(t, map[string]string{
		"impl": r.Impl, "size": bytesText(r.SizeBytes), "n": whole(r.Count), "goroutines": whole(r.Goroutines), "ns/op": decimals(r.NsPerOp, 1),
		"× calibration": decimals(r.NsPerOp/4, 2), "allocs/op": decimals(r.AllocsPerOp, 4), "p50 ns": decimals(r.P50Nanos, 0),
		"p99 ns": decimals(r.P99Nanos, 0), "p99.9 ns": decimals(r.P999Nanos, 0), "node visits/op": decimals(*r.NodeVisitsPerOp, 1),
		"driver ns/op": decimals(*r.DriverNsPerOp, 0), "driver calls/op": decimals(*r.DriverCallsPerOp, 3),
	}, cells(t, out.String())[r.Scenario])
}

// So are the figures of a fleet.
func TestColumnsOfAFleet(t *testing.T) {
	var out strings.Builder
	now := time.Unix(1000, 0)
	s := distinct[fleet.Status]()
	s.Devices[0].Owned, s.Devices[0].OfferBytes = true, 1<<40
	s.Waiting[0].Reason, s.Waiting[0].Since = core.Turn, now.Add(-time.Minute)
	s.Waiting[1].Reason = core.Memory
	s.Holding[0].Since = now.Add(-time.Hour)
	require.NoError(t, printFleet(&out, s, now))
	printed := cells(t, out.String())
	d, other, h, w := s.Devices[0], s.Devices[1], s.Holding[0], s.Waiting[0]
	assert.Equal(t, map[string]string{
		"host": d.Host, "offers": bytesText(d.OfferBytes), "held": bytesText(d.HeldBytes), "free": bytesText(d.OfferBytes - d.HeldBytes),
		"owner": "a process", "waits": whole(d.Load.Waiting),
	}, printed[d.Name])
	assert.Equal(t, []string{"none", ""}, []string{printed[other.Name]["owner"], printed[other.Name]["waits"]})
	assert.Equal(t, map[string]string{"holder": h.Holder, "bytes": bytesText(h.Bytes), "since": "1h0m0s", "devices": strings.Join(h.Devices, ", ")}, printed[h.Ticket])
	assert.Equal(t, map[string]string{
		"holder": w.Holder, "bytes": bytesText(w.Bytes), "since": "1m0s", "priority": whole(w.Priority), "passed": whole(w.Bypassed),
		"waits for": "its turn after " + strings.Join(w.Before, ", "),
	}, printed[w.Ticket])
	assert.Equal(t, "memory of "+strings.Join(s.Waiting[1].Holders, ", "), printed[s.Waiting[1].Ticket]["waits for"])
}

// So are the figures of a device, and of the machine's GPUs.
func TestRowsOfInfo(t *testing.T) {
	var out bytes.Buffer
	r := distinct[report]()
	r.GPUs = nil
	require.NoError(t, r.print(&out))
	printed := map[string]string{}
	for name, row := range cells(t, out.String()) {
		printed[name] = row["value"]
	}
	for name, want := range map[string]string{
		"driver": r.Driver, "device": fmt.Sprintf("%d: %s", r.Ordinal, r.Device), "driver version": r.DriverVersion, "memory": bytesText(r.TotalBytes),
		"free memory": bytesText(r.FreeBytes), "granularity": bytesText(r.GranularityBytes), "footprint": r.Footprint,
		"limit": bytesText(r.LimitBytes) + ", by " + r.LimitSource, "longest segment": bytesText(r.SegmentBytes),
		"stream cache": bytesText(r.StreamCacheBytes) + ", " + units.Count(r.StreamCacheBlocks, "block"),
		"pool cache":   bytesText(r.PoolCacheBytes) + ", " + units.Count(r.PoolCacheBlocks, "block"), "release after": r.ReleaseAfter,
		"waits": r.Waits, "statistics": r.Stats, "debug": "false", "embedded traces": strings.Join(r.EmbeddedTraces, ", "), "GPUs": r.GPUsError,
	} {
		assert.Equal(t, want, printed[name], name)
	}
	assert.Equal(t, []string{"13.0", "12.4", "11.8"}, []string{versionText(13000), versionText(12040), versionText(11080)})
	assert.Equal(t, "one, two, three\n1.0 GiB of 4.0 GiB free", gpuText(&gpus.Device{
		Name: "one", UUID: "two", PCI: "three", MemoryKnown: true, FreeBytes: 1 << 30, TotalBytes: 4 << 30, UsedBytes: 2 << 30,
	}))
}

// under returns the texts of a line by the headings that they end below, except for the last one, which begins below its heading.
func under(header, line string) map[string]string {
	all, from := map[string]string{}, 0
	names := strings.Fields(header)
	for i, name := range names {
		to := from + strings.Index(header[from:], name) + len(name)
		if i == len(names)-1 {
			to = len(line)
		}
		all[name] = strings.TrimSpace(line[from:to])
		from = to
	}
	return all
}

// Each figure of a line, and of a frame, is under its heading or in its sentence.
func TestColumnsOfTop(t *testing.T) {
	d := distinct[page.Device]()
	d.HitRate, d.Streams[0].HitRate, d.Streams[1].HitRate = 0.25, 0.5, 0.75
	f := frame{device: &d, time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), allocRate: 7}
	g := &d.Figures
	assert.Equal(t, map[string]string{
		"time": "03:04:05", "reserved": units.Bytes(g.ReservedBytes), "live": units.Bytes(g.LiveBytes), "pending": units.Bytes(g.PendingBytes),
		"cached": units.Bytes(g.CachedBytes), "free": units.Bytes(g.FreeBytes), "limit": units.Bytes(g.LimitBytes), "allocs/s": "7",
		"hits": share(d.HitRate, true), "waiting": whole(g.Waiting), "refused": whole(g.OutOfMemoryCount + g.DeadlockCount + g.EndedWaitCount),
		"pressure": d.Pressure,
	}, under(f.header(), f.line()))

	d.Tenants[1].Name = ""
	lines := f.render(mostWidth, false)
	text := strings.Join(lines, "\n")
	header := -1
	for i, line := range lines {
		if strings.HasPrefix(line, "stream ") {
			header = i
		}
	}
	require.Positive(t, header)
	for i, s := range d.Streams {
		assert.Equal(t, map[string]string{
			"stream": whole(uint64(s.Stream)), "live": units.Bytes(s.LiveBytes), "cached": units.Bytes(s.CachedBytes), "pending": units.Bytes(s.PendingBytes),
			"held": units.Bytes(s.HeldBytes), "buffers": whole(s.LiveCount), "allocations": whole(s.AllocCount), "hits": share(s.HitRate, true),
			"wait": whole(s.Waiting),
		}, under(lines[header], lines[header+1+i]))
	}
	n := d.Tenants[0]
	for _, want := range []string{
		fmt.Sprintf("reserved %s of %s (peak %s)", units.Bytes(g.ReservedBytes), units.Bytes(g.LimitBytes), units.Bytes(d.PeakReservedBytes)),
		fmt.Sprintf("tenant %s: held %s, charged %s, %d wait for its quota, %d for memory", n.Name, units.Bytes(n.HeldBytes), units.Bytes(n.ChargedBytes),
			n.WaitingForQuota, n.WaitingForMemory),
		fmt.Sprintf("peak %s, efficiency %s", units.Bytes(d.PeakLiveBytes), share(d.Efficiency, true)),
		fmt.Sprintf("longest %s, fragmentation %s", units.Bytes(d.LargestFreeBytes), share(d.Fragmentation, true)),
		fmt.Sprintf("%d allocations, %d frees", g.AllocCount, g.FreeCount),
		fmt.Sprintf("magazines %d, streams %d, pool %d, driver %d; %s hits in all", g.MagazineHits, g.StreamHits, g.PoolHits, g.DriverMisses, share(d.HitRate, true)),
		fmt.Sprintf("%d now for %s, %d in all, longest %v", g.Waiting, units.Bytes(g.WaitDemandBytes), d.WaitCount,
			time.Duration(d.LongestWaitSeconds)*time.Second),
		fmt.Sprintf("out of memory %d, deadlocks %d, timed out %d, before a search %d", g.OutOfMemoryCount, g.DeadlockCount, g.EndedWaitCount, g.RefusedCount),
		fmt.Sprintf("%d requests; %d bad frees", d.RetryCount, d.BadFreeCount), fmt.Sprintf("%s, rose %d times", d.Pressure, d.PressureRises),
		fmt.Sprintf("%d calls of the allocator", d.DriverCalls), fmt.Sprintf("%d recovered", d.Panics),
	} {
		assert.Contains(t, text, want)
	}
	d.Waiters.RequestCount, d.Waiters.Requests = 40, make([]page.WaitingRequest, mostWaiters+2)
	assert.Contains(t, strings.Join(f.waiters(mostWidth), "\n"), "and 35 more")

	// The figures since the sample before are those between the two.
	before := page.Device{Figures: page.Figures{AllocCount: 100, FreeCount: 50, MagazineHits: 30, StreamHits: 20, OutOfMemoryCount: 3, DeadlockCount: 2, EndedWaitCount: 1}}
	d.Figures = page.Figures{AllocCount: 140, FreeCount: 60, MagazineHits: 40, StreamHits: 30, OutOfMemoryCount: 4, DeadlockCount: 4, EndedWaitCount: 4}
	f.rates(&before, 2*time.Second)
	assert.Equal(t, []any{20.0, 5.0, 0.5, uint64(6), true}, []any{f.allocRate, f.freeRate, f.hitRate, f.refused, f.since})
}

// A range is in each cell that it overlaps with the bytes there, and a mixed one with its states in proportion.
func TestCellsOfAMap(t *testing.T) {
	sums := make([]page.Sums, 5)
	mixed := distinct[page.Sums]()
	spread(sums, &page.Range{OffsetBytes: 50, Bytes: 400, Mixed: &mixed}, 100)
	for i, cell := range []float64{50, 100, 100, 100, 50} {
		of := reflect.ValueOf(sums[i])
		for field := range of.NumField() {
			name := of.Type().Field(field).Name
			if name == "UnpassedBytes" || name == "SleepingBytes" { // of other states
				continue
			}
			all := float64(reflect.ValueOf(mixed).Field(field).Int())
			assert.InDelta(t, all*cell/400, of.Field(field).Int(), 1, "%s of cell %d", name, i)
		}
	}
	// 13 bytes in cells of 3: the last one is not full.
	m := &page.Map{Segments: []page.Segment{{Bytes: 13, Ranges: []page.Range{{Bytes: 12, State: "live"}, {OffsetBytes: 12, Bytes: 1, State: "free"}}}}}
	assert.Equal(t, []string{"LL", "LL", "F"}, mapLines(m, 2, painter(false)))
	// Where two states have as much of a cell, the first one of the legend has it.
	m = &page.Map{Segments: []page.Segment{{Bytes: 6, Ranges: []page.Range{
		{Bytes: 1, State: "free"}, {OffsetBytes: 1, Bytes: 1, State: "pending"}, {OffsetBytes: 2, Bytes: 4, State: "free"},
	}}}}
	assert.Equal(t, []string{"P", "F", "F"}, mapLines(m, 1, painter(false)))
}

// A load leaves an allocation out that finds no memory.
func TestALoadLeavesOutWhatFindsNoMemory(t *testing.T) {
	dev, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{}), LimitBytes: 8 << 20})
	require.NoError(t, err)
	s, err := dev.NewStream()
	require.NoError(t, err)
	live := map[uint32]vram.Buffer{}
	events := []trace.Event{{Op: trace.Alloc, ID: 1, Bytes: 6 << 20}, {Op: trace.Alloc, ID: 2, Bytes: 6 << 20}, {Op: trace.Free, ID: 2}, {Op: trace.Free, ID: 1}}
	for i := range events {
		require.NoError(t, playEvent(&events[i], []*vram.Stream{s}, live))
		assert.Len(t, live, []int{1, 1, 1, 0}[i])
	}
	require.NoError(t, dev.Close())
}

// The header comes again after each twenty lines.
func TestHeadersOfLines(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out}
	f := aFrame()
	for range 2*headerEvery + 1 {
		require.NoError(t, s.show(f))
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	require.Len(t, lines, 2*headerEvery+4)
	for _, i := range []int{0, headerEvery + 1, 2*headerEvery + 2} {
		assert.Equal(t, f.header(), lines[i])
	}
}

// Texts of several traces are separated by an empty line.
func TestTextsAreSeparated(t *testing.T) {
	analyzed := func(names ...string) string {
		code, stdout, stderr := vramCommand(t, append([]string{"analyze", "-quick"}, names...)...)
		require.Equal(t, exitOK, code, stderr)
		return stdout
	}
	assert.Equal(t, analyzed("resnet_train")+"\n"+analyzed("pipeline_1f1b"), analyzed("resnet_train", "pipeline_1f1b"))
}

// A flag's limit comes before the environment's, and that before the load's own.
func TestTheLimitOfALoad(t *testing.T) {
	flag, err := replay.ParseLimit("3GiB")
	require.NoError(t, err)
	recorded := &trace.Trace{Info: trace.Info{PeakLiveBytes: 4 << 20}}
	given, none := &loadFlags{Limit: limitFlag{flag}}, &loadFlags{}
	assert.Equal(t, []int64{3 << 30, 3 << 30, 1 << 30, 1 << 30, demoLimitBytes, 5 << 20}, []int64{
		given.limitBytes(1<<30, nil), given.limitBytes(0, recorded), none.limitBytes(1<<30, nil), none.limitBytes(1<<30, recorded),
		none.limitBytes(0, nil), none.limitBytes(0, recorded),
	})
}
