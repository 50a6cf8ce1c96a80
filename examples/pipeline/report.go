package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/pool"
)

// report returns the run's figures as text of at most 60 columns. Call it when the stages have stopped and before
// their buffers are freed.
func (t *training) report() string {
	stats := t.stats()
	parts := strings.Join([]string{t.summary(stats), t.service(stats), t.memory(stats), t.waiting(stats.Waits)}, "\n")
	lines := strings.Split(parts, "\n")
	for i := range lines { // the tables pad their last column
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func (t *training) summary(stats vram.Stats) string {
	first := t.firstStep.DriverCalls
	return fmt.Sprintf("%d steps in %.1f s, %.1f a second; device time %.1f s\n"+
		"driver calls: %d, of them %d up to the end of step 1\n"+
		"peaks: %s live, %s reserved (%.3f times)\n",
		t.stepCount(), t.wall.Seconds(), float64(t.stepCount())/max(t.wall.Seconds(), 1e-9), t.elapsed.Seconds(),
		stats.DriverCalls, first,
		size(stats.PeakLiveBytes), size(stats.PeakReservedBytes),
		float64(stats.PeakReservedBytes)/float64(max(1, stats.PeakLiveBytes)))
}

// service prints the requests by the level that served them.
func (t *training) service(stats vram.Stats) string {
	w := newTable("Allocator", "stage", "operations", "ns/op", "magazine", "ranges", "pool", "driver")
	var all []float64
	for i, st := range t.stages {
		s := stats.Streams[i]
		all = append(all, st.callNanos...)
		w.AppendRow(table.Row{
			st.number, humanize.Comma(int64(s.AllocCount + s.FreeCount)), nanos(st.callNanos),
			percent(s.MagazineHits, s.AllocCount), percent(s.RangeHits, s.AllocCount), percent(s.PoolHits, s.AllocCount), "",
		})
	}
	w.AppendFooter(table.Row{
		"all", humanize.Comma(int64(stats.AllocCount + stats.FreeCount)), nanos(all),
		percent(stats.MagazineHits, stats.AllocCount), percent(stats.StreamHits, stats.AllocCount),
		percent(stats.PoolHits, stats.AllocCount), percent(stats.DriverMisses, stats.AllocCount),
	})
	return w.Render() + "\nns/op: median over forwards and backwards; shares: which\nlevel served the allocations.\n"
}

// memory prints the memory of each stream.
func (t *training) memory(stats vram.Stats) string {
	w := newTable("Memory when the stages had stopped", "stage", "live", "peak live", "cached", "reserved", "frag.")
	for i, st := range t.stages {
		s := stats.Streams[i]
		w.AppendRow(table.Row{
			st.number, size(s.LiveBytes), size(s.PeakLiveBytes), size(s.CachedBytes), size(s.HeldBytes), share(s.Fragmentation()),
		})
	}
	w.AppendRow(table.Row{"pool", "", "", size(stats.FreeBytes), size(stats.FreeBytes), ""})
	w.AppendFooter(table.Row{
		"all", size(stats.LiveBytes), size(stats.PeakLiveBytes), size(stats.CachedBytes + stats.FreeBytes),
		size(stats.ReservedBytes), share(stats.Fragmentation()),
	})
	return w.Render() + "\nfrag.: share of the free memory outside its longest range.\n"
}

// waiting prints the time that the stages' goroutines waited for memory, and the time that their streams had no work.
func (t *training) waiting(forMemory pool.WaitStats) string {
	w := newTable("Waiting", "stage", "futures", "ready", "median", "p99", "longest", "idle")
	var all []*waits
	var idle float64
	for _, st := range t.stages {
		all = append(all, &st.waits)
		idle += 1 - t.busy(st)
		w.AppendRow(waitingRow(st.number, merged(&st.waits), 1-t.busy(st)))
	}
	w.AppendFooter(waitingRow("all", merged(all...), idle/stageCount))
	const bubble = float64(stageCount-1) / (microBatchCount + stageCount - 1)
	text := w.Render()
	if t.options.patient {
		text += fmt.Sprintf("\nfor what others had: %s waits, longest %s", humanize.Comma(int64(forMemory.Count)), brief(forMemory.Longest))
	}
	return text + fmt.Sprintf("\nfutures: times in Await; ready: complete before it.\n"+
		"idle: device time without a kernel; equal stages that never\nwaited for anything else would have a bubble of %s.\n", share(bubble))
}

func waitingRow(name any, w waits, idle float64) table.Row {
	return table.Row{
		name, humanize.Comma(int64(len(w.took))), percent(uint64(w.readyCount), uint64(len(w.took))),
		brief(quantile(w.took, 0.5)), brief(quantile(w.took, 0.99)), brief(w.longest()), share(idle),
	}
}

func newTable(title string, header ...any) table.Writer {
	w := table.NewWriter()
	style := table.StyleLight
	style.Format.Header, style.Format.Footer = text.FormatDefault, text.FormatDefault
	style.Options = table.Options{SeparateHeader: true, SeparateFooter: true}
	style.Box.PaddingLeft = ""
	w.SetStyle(style)
	w.SetTitle(title)
	w.AppendHeader(header)
	columns := make([]table.ColumnConfig, 0, len(header))
	for i := range header[1:] {
		columns = append(columns, table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight, AlignFooter: text.AlignRight})
	}
	w.SetColumnConfigs(columns)
	return w
}

// nanos formats the median of times in nanoseconds.
func nanos(values []float64) string {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return fmt.Sprintf("%.1f", quantile(sorted, 0.5))
}

// percent formats a part of a whole; a positive part is not shown as 0.
func percent(part, whole uint64) string {
	if whole == 0 {
		return "-"
	}
	return share(float64(part) / float64(whole))
}

func share(of float64) string {
	switch p := 100 * of; {
	case p == 0 || p == 100:
		return fmt.Sprintf("%.0f%%", p)
	case p < 0.05:
		return fmt.Sprintf("%.3f%%", p)
	default:
		return fmt.Sprintf("%.1f%%", math.Min(p, 99.9))
	}
}

// size formats bytes with up to three digits.
func size(bytes int64) string { return humanize.IBytesN(uint64(max(0, bytes)), 3) }

// brief formats a duration with three digits.
func brief(d time.Duration) string {
	if d == 0 {
		return "0ns"
	}
	unit := time.Nanosecond
	for _, u := range []time.Duration{time.Microsecond, time.Millisecond, time.Second} {
		if d >= u {
			unit = u
		}
	}
	return d.Round(max(1, unit/10)).String()
}
