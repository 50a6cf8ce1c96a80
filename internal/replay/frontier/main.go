// Command frontier plays traces, files or by default the embedded ones, in each footprint mode on the simulated device, and prints what memory costs in
// time: a table in Markdown, and a plot where -svg names a file. Timings are of this machine; driver time is modelled.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/replay"
	"github.com/go-vram/vram/internal/trace"
)

func main() {
	repeats := flag.Int("repeats", 3, "how often each trace is played in each mode; times are the least, the rest is of the last")
	limits := flag.Bool("limits", true, "look for the least limits, too")
	plot := flag.String("svg", "", "write a plot to this file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, flag.Args(), max(1, *repeats), *limits, *plot); err != nil {
		fmt.Fprintln(os.Stderr, "frontier:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}

// modes are played in this order.
func modes() []vram.Footprint { return []vram.Footprint{vram.Fast, vram.Balanced, vram.Lean} }

// point is one trace in one mode.
type point struct {
	mode   vram.Footprint
	result replay.Result
	cold   times
	warm   float64 // least ns of an event, from the second round on
}

// times are those of the first round, in ns an event.
type times struct{ own, driver float64 }

func run(ctx context.Context, traces []string, repeats int, limits bool, plot string) error {
	if len(traces) == 0 {
		traces = trace.Embedded()
	}
	var points []point
	for _, name := range traces {
		tr, err := trace.Open(name)
		if err != nil {
			return err
		}
		for _, mode := range modes() {
			p, err := play(ctx, tr, mode, repeats, limits)
			if err != nil {
				return err
			}
			points = append(points, p)
		}
	}
	fmt.Print(markdown(points))
	if plot == "" {
		return nil
	}
	return os.WriteFile(plot, []byte(svg(points)), 0o644) //nolint:gosec // a picture for everybody
}

// play plays one trace in one mode.
func play(ctx context.Context, tr *trace.Trace, mode vram.Footprint, repeats int, limits bool) (point, error) {
	p := point{mode: mode}
	for i := range repeats {
		r, err := replay.Run(ctx, tr, replay.Options{
			NewDriver: func() cudadrv.Driver { return sim.New(sim.Config{}) },
			Config:    vram.Config{Footprint: mode}, MinCapacity: limits && i == repeats-1,
		})
		if err != nil {
			return point{}, err
		}
		p.result = r
		p.note(r, i == 0)
	}
	return p, nil
}

// note takes the least times.
func (p *point) note(r replay.Result, first bool) {
	cold, warm := r.Rounds[0].NsPerOp, slices.MinFunc(r.Rounds[1:], func(a, b replay.Round) int {
		return cmp.Compare(a.NsPerOp, b.NsPerOp)
	}).NsPerOp
	if first || cold < p.cold.own {
		p.cold.own = cold
	}
	if first || warm < p.warm {
		p.warm = warm
	}
	p.cold.driver = r.Rounds[0].DriverNsPerOp
}
