package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/go-vram/vram/cuda"
)

// speed is the time and the memory of a step.
type speed struct {
	Name    string `json:"name"`
	Device  string `json:"device"`
	Type    string `json:"type"`
	Batch   int    `json:"batch"`
	Parts   int    `json:"parts"`
	Length  int    `json:"length"`
	Tokens  int    `json:"tokens"` // of a step
	Library string `json:"library"`

	StepMillis   float64 `json:"step_ms"`
	TokensPerSec float64 `json:"tokens_per_s"`
	// PeakBytes is the most that was reserved from the first step on; StepBytes from the measured steps on.
	PeakBytes int64   `json:"peak_reserved_bytes"`
	StepBytes int64   `json:"step_reserved_bytes"`
	LiveBytes int64   `json:"live_bytes"`
	Heap      float64 `json:"heap_allocations"` // of Go, in a step
	Driver    float64 `json:"driver_calls"`     // of the allocator, in a step
	Loss      float32 `json:"loss"`
}

// speed measures steps that follow each other without a wait.
func (m *measured) speed(ctx context.Context) (s speed, err error) {
	m.draw()
	for range m.warm {
		if err := m.Step(m.tokens, m.targets); err != nil {
			return s, err
		}
	}
	c := m.Context()
	if err := c.Synchronize(ctx); err != nil {
		return s, err
	}
	dev := c.Device()
	before := dev.Stats()
	dev.ResetPeaks()
	var heap, after runtime.MemStats
	runtime.ReadMemStats(&heap)
	start := time.Now()
	for range m.steps {
		if err := m.Step(m.tokens, m.targets); err != nil {
			return s, err
		}
	}
	runtime.ReadMemStats(&after)
	if err := c.Synchronize(ctx); err != nil {
		return s, err
	}
	each := time.Since(start).Seconds() / float64(m.steps)
	stats := dev.Stats()
	s = speed{
		Name: m.name, Device: dev.Info().Name, Type: m.sizes.Type.String(), Batch: m.training.Batch, Parts: m.training.Parts, Length: m.training.Length,
		Tokens: len(m.tokens), Library: m.HeadPath().String(), StepMillis: 1e3 * each, TokensPerSec: float64(len(m.tokens)) / each,
		PeakBytes: before.PeakReservedBytes, StepBytes: stats.PeakReservedBytes, LiveBytes: stats.LiveBytes,
		Heap: float64(after.Mallocs-heap.Mallocs) / float64(m.steps), Driver: float64(stats.DriverCalls-before.DriverCalls) / float64(m.steps),
	}
	s.Loss, err = m.Loss()
	return s, err
}

// parts prints the time of each kernel of a step that is submitted operation by operation.
func (m *measured) parts(out io.Writer) error {
	m.draw()
	for range 2 {
		if err := m.Step(m.tokens, m.targets); err != nil {
			return err
		}
	}
	profile, err := m.Context().StartProfile()
	if err != nil {
		return err
	}
	if err := m.Step(m.tokens, m.targets); err != nil {
		return err
	}
	launches, err := profile.Stop()
	if err != nil {
		return err
	}
	type part struct {
		kernel string
		blocks cuda.Dim3
		count  int
		sum    time.Duration
	}
	parts, all := map[string]*part{}, time.Duration(0)
	for _, l := range launches {
		key := fmt.Sprint(l.Kernel, l.Geometry.Grid)
		if parts[key] == nil {
			parts[key] = &part{kernel: l.Kernel, blocks: l.Geometry.Grid}
		}
		parts[key].count++
		parts[key].sum += l.Duration
		all += l.Duration
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "kernel\tblocks\ttimes\tus each\tus\t%%\n")
	for _, p := range slices.SortedFunc(maps.Values(parts), func(a, b *part) int { return cmp.Compare(b.sum, a.sum) }) {
		us := float64(p.sum.Nanoseconds()) / 1e3
		_, _ = fmt.Fprintf(w, "%s\t%dx%d\t%d\t%.1f\t%.0f\t%.1f\n", p.kernel, p.blocks.X, p.blocks.Y, p.count, us/float64(p.count), us, 100*float64(p.sum)/float64(all))
	}
	_, _ = fmt.Fprintf(w, "all\t\t%d\t\t%.0f\t\n", len(launches), float64(all.Nanoseconds())/1e3)
	return w.Flush()
}
