package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/go-vram/vram"
)

const (
	// Ten frames a second: faster ones cannot be read, slower ones do not look alive.
	frameInterval = 100 * time.Millisecond
	// Without a terminal, a line per second.
	lineInterval = time.Second
	// A longer bar shows nothing more.
	mostBarColumns = 48
)

// display shows the progress of a training until its end.
type display struct {
	training *training
	out      io.Writer
	stop     chan struct{}
	stopped  chan struct{}
}

// show starts a display: bars on a terminal, lines elsewhere.
func show(t *training, out io.Writer) *display {
	d := &display{training: t, out: out, stop: make(chan struct{}), stopped: make(chan struct{})}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" {
		go d.bars(os.Getenv("NO_COLOR") == "")
	} else {
		go d.lines()
	}
	return d
}

// end shows the last state and returns after the last write.
func (d *display) end() {
	close(d.stop)
	<-d.stopped
}

// bars draws a bar for each stage, and two lines of figures.
func (d *display) bars(colored bool) {
	defer close(d.stopped)
	t := d.training
	progress := mpb.New(mpb.WithOutput(d.out), mpb.WithRefreshRate(frameInterval), mpb.WithAutoRefresh())
	var bars []*mpb.Bar
	total := int64(t.options.stepCount * len(t.stages[0].turns))
	for _, st := range t.stages {
		style := mpb.BarStyle().Lbound("").Rbound("").Filler("█").Tip("█").Padding("░")
		if colored {
			style = style.FillerMeta(paint(text.FgCyan)).TipMeta(paint(text.FgCyan)).PaddingMeta(paint(text.FgHiBlack))
		}
		bars = append(bars, progress.New(total, style, mpb.BarWidth(mostBarColumns),
			mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return fmt.Sprintf("stage %d ", st.number) })),
			mpb.AppendDecorators(decor.Any(func(s decor.Statistics) string {
				return fmt.Sprintf(" %3d%% %-3v busy %2.0f%%", 100*s.Current/s.Total, st.showTurn(), 100*t.busy(st))
			})),
		))
	}
	for _, line := range []func(vram.Stats) string{t.memoryLine, t.serviceLine} {
		bars = append(bars, progress.New(total, mpb.NopStyle(), mpb.PrependDecorators(
			decor.Any(func(decor.Statistics) string { return line(t.stats()) }))))
	}
	update := func() {
		for i, bar := range bars {
			bar.SetCurrent(min(t.stages[i%len(t.stages)].begunCount.Load(), total-1)) // the last one is shown at the end only
		}
	}
	ticks := time.NewTicker(frameInterval)
	defer ticks.Stop()
	for running := true; running; {
		select {
		case <-ticks.C:
			update()
		case <-d.stop:
			running = false
		}
	}
	for i, bar := range bars {
		if t.stages[i%len(t.stages)].begunCount.Load() == total {
			bar.SetCurrent(total)
		} else {
			bar.Abort(false)
		}
	}
	progress.Wait()
}

// paint colors a part of a bar.
func paint(c text.Color) func(string) string {
	return func(s string) string {
		if s == "" {
			return s
		}
		return c.EscapeSeq() + s + text.Reset.EscapeSeq()
	}
}

// lines writes a line now and then, and one at the end.
func (d *display) lines() {
	defer close(d.stopped)
	ticks := time.NewTicker(lineInterval)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			d.line()
		case <-d.stop:
			d.line()
			return
		}
	}
}

func (d *display) line() {
	t := d.training
	stats := t.stats()
	busy := make([]string, 0, stageCount)
	for _, st := range t.stages {
		busy = append(busy, fmt.Sprintf("%.0f%%", 100*t.busy(st)))
	}
	_, _ = fmt.Fprintf(d.out, "%s; busy %s; %s\n", t.serviceLine(stats), strings.Join(busy, " "), t.memoryLine(stats))
}

// busy returns the share of the time so far in which the stage's stream has computed.
func (t *training) busy(st *stage) float64 {
	elapsed := t.elapsed
	if elapsed == 0 {
		elapsed = t.gpu.Now() - t.began
	}
	return min(1, float64(st.computed.Load())/float64(max(1, elapsed)))
}

func (t *training) memoryLine(s vram.Stats) string {
	return fmt.Sprintf("memory  live %s, reserved %s of %s",
		size(s.LiveBytes), size(s.ReservedBytes), size(s.LimitBytes))
}

func (t *training) serviceLine(s vram.Stats) string {
	return fmt.Sprintf("step %d/%d  %s operations, %d driver calls",
		t.stepCount(), t.options.stepCount, humanize.Comma(int64(s.AllocCount+s.FreeCount)), s.DriverCalls)
}
