package advice

import (
	"fmt"
	"io"
	"strings"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/lab/plot"
)

// Write writes the report for people: the pattern, the figures of each mode, and the recommendations.
func (r *Report) Write(w io.Writer) error {
	if err := r.Pattern.Write(w); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nAllocator: %d rounds in each footprint mode on the simulated device, driver time as on an H200\n", roundCount)
	trialHeader(&b)
	for i := range r.Modes {
		r.Modes[i].row(&b)
	}
	for i := range r.Baselines {
		r.Baselines[i].row(&b)
	}
	b.WriteString("  plain: without vram, cuMemAlloc and cuMemFree for each request; by size: a pool with a list for each exact size, which returns nothing\n")
	b.WriteString("\nRecommendations\n")
	b.WriteString(r.scale.principle())
	for i := range r.Recommendations {
		r.Recommendations[i].write(&b)
	}
	r.together(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func trialHeader(b *strings.Builder) {
	fmt.Fprintf(b, "  %-9s %11s %9s %8s %13s %20s %17s %11s\n", "mode", "reserved", "of live", "unused", "fragmentation", "first round", "last round", "least limit")
}

func (t *Trial) row(b *strings.Builder) {
	least := "-"
	if t.LeastLimitBytes > 0 {
		least = units.Bytes(t.LeastLimitBytes)
	}
	fmt.Fprintf(b, "  %-9s %11s %9.3f %8s %13.2f %20s %17s %11s\n", t.Name, units.Bytes(t.PeakReservedBytes), t.ReservedOverLive, share(t.UnusedShare),
		t.Fragmentation, fmt.Sprintf("%d calls %v", t.FirstCalls, rounded(t.FirstDriver)), fmt.Sprintf("%d calls %v", t.LastCalls, rounded(t.LastDriver)), least)
}

// together writes the row of all changes as one configuration, below the row without changes.
func (r *Report) together(b *strings.Builder) {
	if r.Together == nil {
		b.WriteString("\nTogether: no change\n")
		return
	}
	fmt.Fprintf(b, "\nTogether: %s\n", strings.Join(r.Settings, ", "))
	trialHeader(b)
	for i := range r.Modes {
		if r.Modes[i].Name == vram.Balanced.String() {
			none := r.Modes[i]
			none.Name = "unchanged"
			none.row(b)
		}
	}
	r.Together.row(b)
	gain, price := r.scale.differences(&r.unchanged, r.Together)
	writeEffect(b, true, gain, price)
	if len(r.unseen) > 0 {
		fmt.Fprintf(b, "    not in this row, which has neither kernels nor pauses: the effect of %s\n", strings.Join(r.unseen, ", "))
	}
}

func writeEffect(b *strings.Builder, change bool, gain, price string) {
	gains, prices := "would gain", "would cost"
	if change {
		gains, prices = "gain", "price"
	}
	if gain != "" {
		fmt.Fprintf(b, "    %s: %s\n", gains, gain)
	}
	if price != "" {
		fmt.Fprintf(b, "    %s: %s\n", prices, price)
	}
}

func (r *Recommendation) write(b *strings.Builder) {
	sign := "="
	if r.Change {
		sign = ">"
	}
	fmt.Fprintf(b, "%s %s: %s\n", sign, r.Topic, r.Advice)
	writeEffect(b, r.Change, r.Gain, r.Price)
	if len(r.OnTopOf) > 0 {
		fmt.Fprintf(b, "    with: %s\n", strings.Join(r.OnTopOf, ", "))
	}
	for _, line := range r.Because {
		fmt.Fprintf(b, "    since %s\n", line)
	}
	for line := range strings.Lines(r.Paste) {
		fmt.Fprintf(b, "      %s", line)
	}
	if r.Paste != "" {
		b.WriteString("\n")
	}
}

// mostPoints is how many points a curve has: as many as a screen shows.
const mostPoints = 700

// Chart returns the report as a drawing.
func (r *Report) Chart() *plot.Chart {
	p := r.Pattern
	bars := plot.Bars{Title: "Sizes that are asked for", X: "from this size up to twice as much", Y: "allocations"}
	for _, b := range p.Sizes.Buckets {
		bars.Names = append(bars.Names, strings.ReplaceAll(units.Bytes(b.FromBytes), " ", ""))
		bars.Values = append(bars.Values, float64(b.Count))
	}
	peak := float64(p.PeakLiveBytes)
	return &plot.Chart{
		Title: fmt.Sprintf("%s: %s live at the peak", p.Trace, units.Bytes(p.PeakLiveBytes)),
		Note:  fmt.Sprintf("First round on the simulated device, footprint %v; %s, %s.", r.mode, units.Count(p.EventCount, "event"), units.Count(len(p.Streams), "stream")),
		Panels: []plot.Panel{
			plot.Curves{
				Title: "Memory by event", X: "events", Y: "bytes",
				Mark: plot.Point{X: float64(p.Peak.Event), Y: peak}, MarkText: "peak " + units.Bytes(p.PeakLiveBytes),
				All: []plot.Curve{{Name: "live", Area: true, Points: points(r.Live)}, {Name: "reserved", Points: points(r.Reserved)}},
			},
			bars,
		},
	}
}

// points returns the values by number, and where they are many the largest of each stretch.
func points(values []int64) (all []plot.Point) {
	stretch := max(1, (len(values)+mostPoints-1)/mostPoints)
	for from := 0; from < len(values); from += stretch {
		most := from
		for i := from; i < min(from+stretch, len(values)); i++ {
			if values[i] > values[most] {
				most = i
			}
		}
		all = append(all, plot.Point{X: float64(most), Y: float64(values[most])})
	}
	return all
}
