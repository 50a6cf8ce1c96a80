package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/monitor/page"
)

// frame is one sample of a device, as a terminal shows it.
type frame struct {
	device    *page.Device
	time      time.Time
	memoryMap *page.Map // nil: it could not be read
	allocRate float64   // in a second
	freeRate  float64
	hitRate   float64 // of the allocations since the sample before
	since     bool    // there is one
}

// rates compares the figures with those of the sample before.
func (f *frame) rates(before *page.Device, passed time.Duration) {
	now, then := &f.device.Figures, &before.Figures
	if now.AllocCount < then.AllocCount || now.FreeCount < then.FreeCount { // of another process
		return
	}
	f.since = true
	allocs := float64(now.AllocCount - then.AllocCount)
	f.allocRate = allocs / passed.Seconds()
	f.freeRate = float64(now.FreeCount-then.FreeCount) / passed.Seconds()
	f.hitRate = 1
	if allocs > 0 {
		f.hitRate = float64(now.MagazineHits+now.StreamHits-then.MagazineHits-then.StreamHits) / allocs
	}
}

// part is a state of memory in a bar.
type part struct {
	name   string
	bytes  int64
	colour string // the number of a colour of the terminal
	letter rune   // where there are no colours
}

func partsOf(f *page.Figures) []part {
	return []part{
		{"live", f.LiveBytes, "34", 'L'},
		{"pending", f.PendingBytes, "33", 'P'},
		{"cached", f.CachedBytes, "36", 'C'},
		{"set aside", f.SetAsideBytes, "35", 'S'},
		{"free", f.FreeBytes, "37", 'F'},
	}
}

// painter writes in colours, or without.
type painter bool

func (p painter) paint(colour, s string) string {
	if !p || s == "" {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}

// cells are so many cells of a part.
func (p painter) cells(x part, count int) string {
	if p {
		return p.paint(x.colour, strings.Repeat("█", count))
	}
	return strings.Repeat(string(x.letter), count)
}

// mostWidth bounds the lines: the eye does not follow longer bars.
const mostWidth = 120

// render is the lines of the frame on a terminal of that width.
func (f *frame) render(width int, colours bool) []string {
	d, p := f.device, painter(colours)
	width = min(max(width, 20), mostWidth)
	lines := append(f.title(width, p), f.memory(width, p)...)
	lines = append(lines, "")
	for _, x := range f.facts() {
		lines = append(lines, cut(fmt.Sprintf("%-12s %s", x[0], x[1]), width))
	}
	if m := f.memoryMap; m != nil && len(m.Segments) > 0 {
		lines = append(lines, "", cut(fmt.Sprintf("memory map: %s", units.Count(len(m.Segments), "segment")), width))
		lines = append(lines, mapLines(m, width, p)...)
	}
	lines = append(lines, "")
	if len(d.Streams) > 0 {
		lines = append(lines, p.paint("1", cut(fmt.Sprintf("%6s %10s %10s %10s %10s %9s %12s %6s %4s",
			"stream", "live", "cached", "pending", "held", "buffers", "allocations", "hits", "wait"), width)))
	}
	for _, s := range d.Streams {
		lines = append(lines, cut(fmt.Sprintf("%6d %10s %10s %10s %10s %9d %12d %5.1f%% %4d", s.Stream, units.Bytes(s.LiveBytes),
			units.Bytes(s.CachedBytes), units.Bytes(s.PendingBytes), units.Bytes(s.HeldBytes), s.LiveCount, s.AllocCount, 100*s.HitRate,
			s.Waiting), width))
	}
	for _, t := range d.Tenants {
		lines = append(lines, cut(fmt.Sprintf("tenant %s: held %s, charged %s, %d queued", t.Name, units.Bytes(t.HeldBytes),
			units.Bytes(t.ChargedBytes), t.Queued), width))
	}
	return lines
}

// cut keeps a line short. Names come from programs: what is no text in them is left out.
func cut(line string, width int) string {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return -1
		}
		return r
	}, line)
	return text.Snip(clean, width, "…")
}

func (f *frame) title(width int, p painter) []string {
	d := f.device
	name := d.Name
	if name == "" {
		name = fmt.Sprintf("device %d", d.Index)
	}
	line := fmt.Sprintf("%s, %s", name, d.State)
	if d.Driver != "" {
		line = fmt.Sprintf("%s, driver %s, %s", name, d.Driver, d.State)
	}
	line = cut(line, max(1, width-10))
	return []string{p.paint("1", line) + strings.Repeat(" ", max(1, width-8-text.RuneWidthWithoutEscSequences(line))) + f.time.Format("15:04:05")}
}

// memory is a bar of the reserved memory in terms of the limit, and its legend.
func (f *frame) memory(width int, p painter) []string {
	g := &f.device.Figures
	whole := max(g.LimitBytes, g.ReservedBytes, 1)
	bar, used, bytes := "", 0, int64(0)
	for _, x := range partsOf(g) {
		bytes += x.bytes
		to := min(width, int(float64(bytes)/float64(whole)*float64(width)+0.5))
		bar += p.cells(x, max(0, to-used))
		used = max(used, to)
	}
	bar += strings.Repeat("·", max(0, width-used))
	head := fmt.Sprintf("reserved %s of %s (peak %s)", units.Bytes(g.ReservedBytes), units.Bytes(g.LimitBytes), units.Bytes(f.device.PeakReservedBytes))
	lines := []string{cut(head, width), bar}
	line, length := "", 0
	for _, x := range partsOf(g) {
		item := fmt.Sprintf("%s %s", x.name, units.Bytes(x.bytes))
		if length > 0 && length+len(item)+5 > width {
			lines = append(lines, line)
			line, length = "", 0
		}
		if length > 0 {
			line += "   "
			length += 3
		}
		line += p.cells(x, 1) + " " + item
		length += len(item) + 2
	}
	return append(lines, line)
}

// facts are names and figures.
func (f *frame) facts() [][2]string {
	d, g := f.device, &f.device.Figures
	rates := fmt.Sprintf("%d allocations, %d frees", g.AllocCount, g.FreeCount)
	if f.since {
		rates = fmt.Sprintf("%.0f allocations/s, %.0f frees/s, hit rate %.1f%%", f.allocRate, f.freeRate, 100*f.hitRate)
	}
	waits := fmt.Sprintf("%d now for %s, %d in all, longest %v", g.Waiting, units.Bytes(g.WaitDemandBytes), d.WaitCount,
		time.Duration(d.LongestWaitSeconds*float64(time.Second)).Round(time.Millisecond))
	if d.DeadlockCount > 0 {
		waits += fmt.Sprintf(", %d refused as deadlocks", d.DeadlockCount)
	}
	facts := [][2]string{
		{"live", fmt.Sprintf("peak %s, efficiency %.1f%%", units.Bytes(d.PeakLiveBytes), 100*d.Efficiency)},
		{"free ranges", fmt.Sprintf("longest %s, fragmentation %.1f%%", units.Bytes(d.LargestFreeBytes), 100*d.Fragmentation)},
		{"rates", rates},
		{"served by", fmt.Sprintf("magazines %d, streams %d, pool %d, driver %d; %.1f%% hits in all", g.MagazineHits, g.StreamHits, g.PoolHits, g.DriverMisses, 100*d.HitRate)},
		{"waiting", waits},
		{"pressure", fmt.Sprintf("%s, rose %d times", d.Pressure, d.PressureRises)},
		{"driver", fmt.Sprintf("%d calls, %v", d.DriverCalls, time.Duration(d.DriverSeconds*float64(time.Second)).Round(time.Microsecond))},
	}
	if d.Panics > 0 {
		facts = append(facts, [2]string{"panics", fmt.Sprintf("%d recovered: each is a defect", d.Panics)})
	}
	return facts
}

// header is the names of the figures of a line.
func (f *frame) header() string {
	return fmt.Sprintf("%8s %10s %10s %10s %10s %10s %10s %9s %6s %7s %s", "time", "reserved", "live", "pending", "cached", "free", "limit",
		"allocs/s", "hits", "waiting", "pressure")
}

// line is the frame where there is no terminal.
func (f *frame) line() string {
	g := &f.device.Figures
	return fmt.Sprintf("%8s %10s %10s %10s %10s %10s %10s %9.0f %5.1f%% %7d %s", f.time.Format("15:04:05"), units.Bytes(g.ReservedBytes),
		units.Bytes(g.LiveBytes), units.Bytes(g.PendingBytes), units.Bytes(g.CachedBytes), units.Bytes(g.FreeBytes), units.Bytes(g.LimitBytes),
		f.allocRate, 100*f.device.HitRate, g.Waiting, f.device.Pressure)
}
