// Command measure measures the variants of the kernels of package ops on a device, and writes their table:
//
//	go run ./compute/ops/measure > table.txt && mv table.txt compute/kernel/tune/tables/nvidia-h200.txt
//
// It prints one line for each operation on standard error, with the time of the rule's variant and of the best one. It starts
// none after the time of the flag -for. A variant that computes a wrong result fails the command, and the table has its row.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/tune"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
)

func main() {
	limit := flag.Duration("for", 75*time.Second, "begin no measurement after this time")
	flag.Parse()
	if err := run(dynamic.New(dynamic.Config{}), *limit); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

// threads is the number of compiling threads: the command does nothing else at that time.
const threads = 8

func run(driver cudadrv.Driver, limit time.Duration) (err error) {
	dev, err := vram.Open(vram.Config{Driver: driver})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	stream, err := dev.NewStream()
	if err != nil {
		return err
	}
	c, err := cuda.NewContext(stream)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	o, err := ops.New(c, kernel.Threads(threads), kernel.WithTables(), kernel.WithLog(slog.Default()),
		kernel.WithTuning(kernel.Tuning{Mode: kernel.TuneNow, MemoryBytes: 4 << 30, Limit: 20 * time.Second}))
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, c.Synchronize(context.Background()), o.Close())
	}()
	m := measurer{c: c, o: o, begin: time.Now(), limit: limit}
	if err := m.all(); err != nil {
		return err
	}
	fmt.Print(o.Kernels().Tuned())
	stats := o.Kernels().Stats()
	fmt.Fprintf(os.Stderr, "%d of %d kernels gain; %d were not reached in %v\n%v\n", m.gained, m.measured, m.left, limit, stats)
	if stats.Disqualified > 0 || stats.TuningFailed > 0 {
		return fmt.Errorf("%d variants are disqualified, %d measurements failed", stats.Disqualified, stats.TuningFailed)
	}
	return nil
}

// measurer runs operations, each of which measures its kernel once.
type measurer struct {
	c     *cuda.Context
	o     ops.Ops
	begin time.Time
	limit time.Duration
	known *tune.Table // that was reported

	measured, gained, left int
}

// report prints the kernels that were measured since the last call.
func (m *measurer) report(name string) {
	table := m.o.Kernels().Tuned()
	for _, on := range table.Devices() {
		for _, of := range table.Keys(on) {
			rows := table.Rows(on, of)
			if m.known.Rows(on, of) != nil {
				continue
			}
			m.measured++
			rule, best := ruleAndBest(rows)
			gain := 100 * (1 - float64(best.Median)/float64(rule.Median))
			if best.Variant != rule.Variant {
				m.gained++
			}
			fmt.Fprintf(os.Stderr, "%-44s %9v %-30s %9v %-36s %5.1f %%  %d variants\n",
				name, rule.Median, rule.Variant, best.Median, best.Variant, gain, len(rows))
		}
	}
	m.known = table
}

// ruleAndBest returns the row of the rule's variant, and the row of the variant to use.
func ruleAndBest(rows []tune.Row) (rule, best tune.Row) {
	for _, r := range rows {
		if r.Reference {
			rule = r
		}
	}
	if ranked := tune.Rank(rows); len(ranked) > 0 {
		return rule, ranked[0]
	}
	return rule, rule
}
