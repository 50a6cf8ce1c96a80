package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/go-vram/vram"
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
	hitRate   float64 // of the allocations since the sample before; less than 0: there were none
	refused   uint64  // requests that found no memory since then
	since     bool    // there is a sample before
}

// rates compares the figures with the previous sample.
func (f *frame) rates(before *page.Device, passed time.Duration) {
	now, then := &f.device.Figures, &before.Figures
	if now.AllocCount < then.AllocCount || now.FreeCount < then.FreeCount { // of another process
		return
	}
	f.since = true
	allocs := float64(now.AllocCount - then.AllocCount)
	f.allocRate = allocs / passed.Seconds()
	f.freeRate = float64(now.FreeCount-then.FreeCount) / passed.Seconds()
	f.refused = noMemory(now) - min(noMemory(then), noMemory(now))
	f.hitRate = -1
	if allocs > 0 {
		f.hitRate = float64(now.MagazineHits+now.StreamHits-then.MagazineHits-then.StreamHits) / allocs
	}
}

// noMemory counts the requests that ended without memory: none was free, waiting was a deadlock, or none came in time.
func noMemory(g *page.Figures) uint64 { return g.OutOfMemoryCount + g.DeadlockCount + g.EndedWaitCount }

// share formats a fraction as a percentage, or as a dash if the total is zero.
func share(of float64, there bool) string {
	if !there {
		return "–"
	}
	return fmt.Sprintf("%.1f%%", 100*of)
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

// cells draws cells of a part.
func (p painter) cells(x part, count int) string {
	if p {
		return p.paint(x.colour, strings.Repeat("█", count))
	}
	return strings.Repeat(string(x.letter), count)
}

// mostWidth bounds the lines: the eye does not follow longer bars.
const mostWidth = 120

// render returns the lines of the frame for a terminal of that width.
func (f *frame) render(width int, colours bool) []string {
	d, p := f.device, painter(colours)
	width = min(max(width, 20), mostWidth)
	lines := append(f.title(width, p), f.memory(width, p)...)
	lines = append(lines, "")
	for _, x := range f.facts() {
		line := cut(fmt.Sprintf("%-12s %s", x.name, x.text), width)
		if x.alarms {
			line = p.paint("31", line)
		}
		lines = append(lines, line)
	}
	lines = append(lines, f.waiters(width)...)
	lines = append(lines, f.processes(width)...)
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
		lines = append(lines, cut(fmt.Sprintf("%6d %10s %10s %10s %10s %9d %12d %6s %4d", s.Stream, units.Bytes(s.LiveBytes),
			units.Bytes(s.CachedBytes), units.Bytes(s.PendingBytes), units.Bytes(s.HeldBytes), s.LiveCount, s.AllocCount,
			share(s.HitRate, s.AllocCount > 0), s.Waiting), width))
	}
	for _, t := range d.Tenants {
		lines = append(lines, cut(fmt.Sprintf("tenant %s: held %s, charged %s, %d wait for its quota, %d for memory", t.Name,
			units.Bytes(t.HeldBytes), units.Bytes(t.ChargedBytes), t.WaitingForQuota, t.WaitingForMemory), width))
	}
	return lines
}

// cut keeps a line short. Names come from programs, so cut removes control characters.
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

// memory draws reserved memory as a bar of the limit, and its legend.
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

// fact prints a line of figures under a name.
type fact struct {
	name, text string
	alarms     bool
}

func (f *frame) facts() []fact {
	d, g := f.device, &f.device.Figures
	rates := fmt.Sprintf("%d allocations, %d frees", g.AllocCount, g.FreeCount)
	if f.since {
		rates = fmt.Sprintf("%.0f allocations/s, %.0f frees/s, hit rate %s", f.allocRate, f.freeRate, share(f.hitRate, f.hitRate >= 0))
	}
	free := g.FreeBytes+g.CachedBytes > 0
	longest := "–"
	if free {
		longest = units.Bytes(d.LargestFreeBytes)
	}
	waits := fmt.Sprintf("%d now for %s, %d in all, longest %v", g.Waiting, units.Bytes(g.WaitDemandBytes), d.WaitCount,
		time.Duration(d.LongestWaitSeconds*float64(time.Second)).Round(time.Millisecond))
	pressure := fmt.Sprintf("%s, rose %d times", d.Pressure, d.PressureRises)
	if f.refused > 0 {
		pressure = fmt.Sprintf("%s, but %s found no memory just now", d.Pressure, units.Count(f.refused, "request"))
	}
	facts := []fact{
		{name: "live", text: fmt.Sprintf("peak %s, efficiency %s", units.Bytes(d.PeakLiveBytes), share(d.Efficiency, d.PeakReservedBytes > 0))},
		{name: "free ranges", text: fmt.Sprintf("longest %s, fragmentation %s", longest, share(d.Fragmentation, free))},
		{name: "rates", text: rates},
		{name: "served by", text: fmt.Sprintf("magazines %d, streams %d, pool %d, driver %d; %s hits in all", g.MagazineHits, g.StreamHits, g.PoolHits,
			g.DriverMisses, share(d.HitRate, g.AllocCount > 0))},
		{name: "waiting", text: waits},
		{name: "refused", text: fmt.Sprintf("out of memory %d, deadlocks %d, timed out %d, before a search %d", g.OutOfMemoryCount, g.DeadlockCount,
			g.EndedWaitCount, g.RefusedCount), alarms: f.refused > 0},
		{name: "tried again", text: fmt.Sprintf("%s; %s", units.Count(d.RetryCount, "request"), units.Count(d.BadFreeCount, "bad free"))},
		{name: "pressure", text: pressure, alarms: f.refused > 0},
		{name: "driver", text: fmt.Sprintf("%d calls of the allocator, %s", d.DriverCalls,
			driverTime(time.Duration(d.DriverSeconds*float64(time.Second)).Round(time.Microsecond).String(), d.Driver == "sim"))},
	}
	if d.Panics > 0 {
		facts = append(facts, fact{"panics", fmt.Sprintf("%d recovered: each is a defect", d.Panics), true})
	}
	return facts
}

// mostProcesses bounds the listed processes on the GPU, as mostWaiters does requests.
const mostProcesses = 5

// processes lists the processes on the GPU.
func (f *frame) processes(width int) (lines []string) {
	d := f.device
	if len(d.Processes) == 0 {
		return nil
	}
	lines = append(lines, "", "processes on the GPU:")
	for _, p := range d.Processes[:min(len(d.Processes), mostProcesses)] {
		line := "    " + vram.GPUProcess(p).String()
		if p.Own {
			line += ", this process"
		}
		lines = append(lines, cut(line, width))
	}
	if more := d.ProcessCount - mostProcesses; more > 0 {
		lines = append(lines, cut(fmt.Sprintf("    and %d more", more), width))
	}
	return lines
}

// mostWaiters bounds the listed waiting requests. Not more: the map and the streams should fit below them.
const mostWaiters = 5

// waiters lists the first requests that wait, and the holders of memory.
func (f *frame) waiters(width int) (lines []string) {
	w := &f.device.Waiters
	if len(w.Requests) == 0 {
		return nil
	}
	lines = append(lines, "", cut(units.Count(w.RequestCount, "waiting request")+":", width))
	for _, r := range w.Requests[:min(len(w.Requests), mostWaiters)] {
		lines = append(lines, cut(waiterLine(&r), width))
	}
	if more := w.RequestCount - mostWaiters; more > 0 {
		lines = append(lines, cut(fmt.Sprintf("    and %d more", more), width))
	}
	if len(w.Holders) > 0 {
		var names []string
		for _, h := range w.Holders {
			name := fmt.Sprintf("stream %d", h.Stream)
			if h.Stream == 0 {
				name = "tenant " + h.Tenant
			}
			names = append(names, name+" "+units.Bytes(h.HeldBytes))
		}
		lines = append(lines, cut("    held by "+strings.Join(names, ", "), width))
	}
	return lines
}

func waiterLine(r *page.WaitingRequest) string {
	line := " -  "
	if r.Position > 0 {
		line = fmt.Sprintf("%2d. ", r.Position)
	}
	line += fmt.Sprintf("%s on stream %d", units.Bytes(r.Bytes), r.Stream)
	if r.Tag != "" {
		line += ", tag " + r.Tag
	}
	if r.Tenant != "" {
		line += ", tenant " + r.Tenant
	}
	line += ", waits for " + r.For
	if r.WaitedSeconds > 0 {
		line += fmt.Sprintf(" since %v", time.Duration(r.WaitedSeconds*float64(time.Second)).Round(time.Millisecond))
	}
	return line
}

// header returns the names of a line's figures.
func (f *frame) header() string {
	return fmt.Sprintf("%8s %10s %10s %10s %10s %10s %10s %9s %6s %7s %7s %s", "time", "reserved", "live", "pending", "cached", "free", "limit",
		"allocs/s", "hits", "waiting", "refused", "pressure")
}

// line prints the frame as one line, for an output that is no terminal.
func (f *frame) line() string {
	g, pressure := &f.device.Figures, f.device.Pressure
	if f.refused > 0 {
		pressure += ", refusing"
	}
	return fmt.Sprintf("%8s %10s %10s %10s %10s %10s %10s %9.0f %6s %7d %7d %s", f.time.Format("15:04:05"), units.Bytes(g.ReservedBytes),
		units.Bytes(g.LiveBytes), units.Bytes(g.PendingBytes), units.Bytes(g.CachedBytes), units.Bytes(g.FreeBytes), units.Bytes(g.LimitBytes),
		f.allocRate, share(f.device.HitRate, g.AllocCount > 0), g.Waiting, noMemory(g), pressure)
}
