package main

import (
	"errors"
	"io"
	"os"

	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/lab/advice"
	"github.com/go-vram/vram/lab/analysis"
)

// analyzeCmd implements the command analyze. It needs no GPU: its replays are on the simulated device.
type analyzeCmd struct {
	SVG    string   `name:"svg" placeholder:"FILE" help:"Draw live and reserved bytes over the events, and the sizes, of one trace."`
	Quick  bool     `help:"Only describe the trace: no replays, and no recommendations."`
	JSON   bool     `name:"json" help:"Print an array of reports."`
	Traces []string `arg:"" name:"trace" help:"Files, or names of embedded traces."`
}

// Validate reports invalid flags.
func (c *analyzeCmd) Validate() error {
	if c.SVG != "" && (len(c.Traces) != 1 || c.Quick) {
		return errors.New("--svg: want one trace, and not --quick")
	}
	return nil
}

// Run analyses trace by trace.
func (c *analyzeCmd) Run(p *program) error {
	var traces []*trace.Trace
	for _, name := range c.Traces {
		tr, err := trace.Open(name)
		if err != nil {
			return &usageError{err}
		}
		traces = append(traces, tr)
	}
	if c.Quick {
		return c.quick(p, traces)
	}
	var svg *os.File
	if c.SVG != "" {
		var err error
		if svg, err = os.Create(c.SVG); err != nil { // before the run, so that a wrong path fails at once
			return &usageError{err}
		}
	}
	var reports []*advice.Report
	for i, tr := range traces {
		r, err := advice.Of(p.ctx, tr)
		if err == nil && svg != nil {
			err = errors.Join(r.Chart().Write(svg), svg.Close())
		}
		if err == nil && !c.JSON {
			err = c.separated(p, i, r)
		}
		if err != nil {
			return err
		}
		reports = append(reports, r)
	}
	if c.JSON {
		return printJSON(p.stdout, reports)
	}
	return nil
}

// separated writes a text after an empty line, if it is not the first.
func (c *analyzeCmd) separated(p *program, number int, text interface{ Write(w io.Writer) error }) error {
	if number > 0 {
		if _, err := io.WriteString(p.stdout, "\n"); err != nil {
			return err
		}
	}
	return text.Write(p.stdout)
}

// quick prints only the patterns.
func (c *analyzeCmd) quick(p *program, traces []*trace.Trace) error {
	var patterns []*analysis.Pattern
	for i, tr := range traces {
		pattern := analysis.Of(tr)
		patterns = append(patterns, pattern)
		if c.JSON {
			continue
		}
		if err := c.separated(p, i, pattern); err != nil {
			return err
		}
	}
	if c.JSON {
		return printJSON(p.stdout, patterns)
	}
	return nil
}
