package analysis

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/go-vram/vram/internal/units"
)

// Write writes the pattern for people, a section an idea.
func (p *Pattern) Write(w io.Writer) error {
	t := &text{}
	t.title("%s: %s, %s on %s, %v", p.Trace, units.Count(p.EventCount, "event"), units.Count(p.AllocCount, "allocation"),
		units.Count(len(p.Streams), "stream"), time.Duration(p.DurationMicros)*time.Microsecond)
	t.line("peak live %s, churn %.1f (all that was ever allocated, over the peak)", units.Bytes(p.PeakLiveBytes), p.Churn)
	p.sizes(t)
	p.lifetimes(t)
	p.steps(t)
	p.streams(t)
	p.peak(t)
	_, err := io.WriteString(w, t.String())
	return err
}

// text is lines under titles.
type text struct{ strings.Builder }

func (t *text) title(format string, args ...any) {
	if t.Len() > 0 {
		t.WriteByte('\n')
	}
	t.WriteString(fmt.Sprintf(format, args...) + "\n")
}

func (t *text) line(format string, args ...any) {
	t.WriteString("  " + fmt.Sprintf(format, args...) + "\n")
}

func percent(share float64) string {
	switch p := 100 * share; {
	case p > 0 && p < 0.1:
		return "<0.1 %"
	default:
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	}
}

const barColumns = 30

// bar returns a share as a row of signs.
func bar(share float64) string { return strings.Repeat("#", int(share*barColumns+0.5)) }

func (p *Pattern) sizes(t *text) {
	t.title("Sizes: %s", units.Count(p.Sizes.DistinctCount, "length"))
	t.line("%-12s %9s  %-*s %9s", "from", "count", barColumns, "share of allocations", "of bytes")
	for _, b := range p.Sizes.Buckets {
		t.line("%-12s %9d  %-*s %9s", units.Bytes(b.FromBytes), b.Count, barColumns, bar(b.OfCount), percent(b.OfBytes))
	}
	t.line("most bytes: %s", list(p.Sizes.ByBytes, 4, func(s Size) string {
		return fmt.Sprintf("%s x%d (%s)", units.Bytes(s.EachBytes), s.Count, percent(s.OfBytes))
	}))
	t.line("most often: %s", list(p.Sizes.ByCount, 4, func(s Size) string {
		return fmt.Sprintf("%s x%d (%s)", units.Bytes(s.EachBytes), s.Count, percent(s.OfCount))
	}))
}

// list returns the first elements, so many, with commas.
func list[T any](elements []T, count int, word func(T) string) string {
	var words []string
	for _, e := range elements[:min(count, len(elements))] {
		words = append(words, word(e))
	}
	return strings.Join(words, ", ")
}

func (p *Pattern) lifetimes(t *text) {
	l := &p.Lifetimes
	within := fmt.Sprintf("up to a step, %d events", l.StepEvents)
	if p.Steps == nil {
		within = fmt.Sprintf("up to a tenth, %d events", l.StepEvents)
	}
	t.title("Lifetimes: %s in the median", units.Count(l.MedianEvents, "event"))
	row := func(name string, s Share) {
		t.line("%-34s %9d  %9s %9s", name, s.Count, percent(s.OfCount), percent(s.OfBytes))
	}
	t.line("%-34s %9s  %9s %9s", "lives", "count", "of count", "of bytes")
	row(fmt.Sprintf("up to %d events", shortEvents), l.Short)
	row(within, l.Step)
	row("longer", l.Long)
	row("to the end", l.Held)
	t.line("the very next event frees %s; runs of %d and more have %s of the allocations, the longest %d",
		units.Count(l.NextCount, "buffer"), p.Runs.LeastLength, percent(p.Runs.AllocShare), p.Runs.LongestLength)
}

func (p *Pattern) steps(t *text) {
	if s := p.Steps; s != nil {
		t.title("Steps: %d of %s, %v each", s.Count, units.Count(s.AllocCount, "allocation"), time.Duration(s.Micros)*time.Microsecond)
		if s.Exact {
			t.line("every step asks for the same sizes in the same order")
		} else {
			t.line("%s of a step's allocations come again in the next", percent(s.SameShare))
		}
	} else {
		t.title("Steps: none that repeat")
	}
	g := p.Growth
	if g == nil {
		t.line("live memory does not grow")
		return
	}
	part := "tenth of the trace"
	if g.Steps {
		part = "step"
	}
	t.line("GROWS: live memory rises by %s in each %s, from %s to %s", units.Bytes(g.PartBytes), part, units.Bytes(g.FirstBytes), units.Bytes(g.LastBytes))
	t.line("of these sizes: %s", list(g.Sizes, 4, func(s Gained) string { return fmt.Sprintf("%s x%d", units.Bytes(s.EachBytes), s.Count) }))
}

func (p *Pattern) streams(t *text) {
	t.title("Streams: their own peaks come to %.2f of the peak", p.OwnPeaksOverPeak)
	for _, s := range p.Streams {
		foreign := ""
		if s.ForeignFrees > 0 {
			foreign = fmt.Sprintf(", %s freed by other streams (%s)", units.Count(s.ForeignFrees, "buffer"), units.Bytes(s.ForeignBytes))
		}
		t.line("stream %d: %s of the allocations, own peak %s%s", s.Stream, percent(s.OfCount), units.Bytes(s.PeakLiveBytes), foreign)
	}
}

func (p *Pattern) peak(t *text) {
	k := &p.Peak
	t.title("Peak: %s after event %d, %v, at %s of the trace", units.Bytes(p.PeakLiveBytes), k.Event,
		time.Duration(k.Micros)*time.Microsecond, percent(k.AtShare))
	t.line("%s; of their bytes %s live to the end, %s longer than a step, %s up to a step, %s briefly", units.Count(k.Count, "buffer"),
		percent(k.Held.OfBytes), percent(k.Long.OfBytes), percent(k.Step.OfBytes), percent(k.Short.OfBytes))
	t.line("most bytes: %s", list(k.Sizes, 6, func(s Size) string {
		return fmt.Sprintf("%s x%d (%s)", units.Bytes(s.EachBytes), s.Count, percent(s.OfBytes))
	}))
}
