package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
)

// errLoad reports that a load was not served correctly.
var errLoad = errors.New("the load was not served")

// standing is a tenant's result of a load.
type standing struct {
	name                  string
	clientCount, answered int
	quota, share          float64 // of the weights; of the tokens
	tokens                uint64
	first, gaps           []time.Duration // sorted
	failures              map[string]int  // by kind
	firstFailure          error
}

// failed returns the number of failures.
func (s *standing) failed() (n int) {
	for _, count := range s.failures {
		n += count
	}
	return n
}

// standings returns the tenants' results in the order of the command line, and their total.
func (o *outcome) standings() (each []standing, all standing) {
	parts, tokens := 0, uint64(0)
	for _, w := range o.tenants {
		parts += w.parts
		tokens += o.tokens[w.name]
	}
	for _, w := range o.tenants {
		s := o.standing(w.name, func(c *client) bool { return c.tenant == w.name })
		s.quota, s.tokens = float64(w.parts)/float64(parts), o.tokens[w.name]
		if tokens > 0 {
			s.share = float64(s.tokens) / float64(tokens)
		}
		each = append(each, s)
	}
	all = o.standing("all", func(*client) bool { return true })
	all.quota, all.share, all.tokens = 1, 1, tokens
	return each, all
}

func (o *outcome) standing(name string, of func(*client) bool) standing {
	s := standing{name: name, failures: map[string]int{}}
	for _, c := range o.clients {
		if !of(c) {
			continue
		}
		s.clientCount++
		for _, x := range c.samples {
			if x.tokens > 0 {
				s.first = append(s.first, x.first)
				s.gaps = append(s.gaps, x.gaps...)
			}
			if x.err == nil {
				s.answered++
				continue
			}
			s.failures[x.err.kind]++
			if s.firstFailure == nil {
				s.firstFailure = x.err
			}
		}
	}
	slices.Sort(s.first)
	slices.Sort(s.gaps)
	return s
}

// quantile returns the smallest of sorted values that the given part of them does not exceed; 0 if there are none.
func quantile(sorted []time.Duration, part float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, min(len(sorted)-1, int(part*float64(len(sorted))+0.5)-1))]
}

// err reports the faults of a load.
func (o *outcome) err() error {
	_, all := o.standings()
	switch {
	case all.failed() > 0:
		return fmt.Errorf("%w: %d requests failed, the first: %w", errLoad, all.failed(), all.firstFailure)
	case o.stats.PeakReservedBytes > o.stats.LimitBytes:
		return fmt.Errorf("%w: %d bytes were held, over the limit of %d", errLoad, o.stats.PeakReservedBytes, o.stats.LimitBytes)
	}
	return nil
}

// print writes a table of the tenants, and the device's statistics.
func (o *outcome) print(to io.Writer) {
	each, all := o.standings()
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"tenant", "clients", "quota", "tokens", "off", "tokens/s", "answered", "first p50 ms", "p99", "next p50 ms", "p99", "failed"})
	ms := func(of []time.Duration, part float64) string {
		return fmt.Sprintf("%.2f", float64(quantile(of, part))/float64(time.Millisecond))
	}
	row := func(s standing) table.Row {
		off := ""
		if s.name != all.name {
			off = fmt.Sprintf("%+.1f %%", 100*(s.share/s.quota-1))
		}
		return table.Row{
			s.name, s.clientCount, percent(s.quota), percent(s.share), off, fmt.Sprintf("%.0f", float64(s.tokens)/o.duration.Seconds()), s.answered,
			ms(s.first, 0.5), ms(s.first, 0.99), ms(s.gaps, 0.5), ms(s.gaps, 0.99), s.failed(),
		}
	}
	for _, s := range each {
		t.AppendRow(row(s))
	}
	t.AppendSeparator()
	t.AppendRow(row(all))
	s := o.stats
	kept := "never exceeded"
	if s.PeakReservedBytes > s.LimitBytes {
		kept = "EXCEEDED"
	}
	_, _ = fmt.Fprintf(to, "%s\n"+
		"Tokens are of %.1f s. First: from a request to its first token, waits for memory included; next: from a token to the next one, at the client.\n"+
		"memory: peak %s held of a limit of %s, %s\n"+
		"waits for memory: %d, the longest %v\n"+
		"failures by kind: %s\n"+
		"shutdown: %d requests in flight when stopped; %d answered after that\n",
		t.Render(), o.duration.Seconds(), bytesOf(s.PeakReservedBytes), bytesOf(s.LimitBytes), kept,
		s.Waits.Count, s.Waits.Longest.Round(time.Millisecond), kinds(all.failures), o.inFlight, o.drained)
}

// kinds lists failures: "none", or "over_quota 3, transport 1".
func kinds(of map[string]int) string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(of)) {
		all = append(all, fmt.Sprintf("%s %d", kind, of[kind]))
	}
	if all == nil {
		return "none"
	}
	return strings.Join(all, ", ")
}

func percent(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) }

func bytesOf(n int64) string { return humanize.IBytes(uint64(max(0, n))) } //nolint:gosec // not negative
