package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
)

// errLoad reports that a load was not served correctly.
var errLoad = errors.New("the load was not served")

// standing is a tenant's result of a load.
type standing struct {
	name                            string
	clientCount, answered, failures int
	quota                           float64 // shares of all, as the next two
	served                          float64 // in bytes times seconds
	requests                        float64 // answered
	median, high, longest, oldest   time.Duration
	firstFailure                    error
}

// deviations returns the relative differences of a tenant's shares of memory and answers from its quota.
func (s *standing) deviations() (ofMemory, ofRequests float64) {
	return s.served/s.quota - 1, s.requests/s.quota - 1
}

// standings returns the tenants' results in the order of the command line, and their total.
func (o *outcome) standings() (each []standing, all standing) {
	parts, bytes, requests := 0, 0.0, 0.0
	for _, w := range o.tenants {
		parts += w.parts
		bytes += o.byteSeconds[w.name]
		requests += o.requests[w.name]
	}
	for _, w := range o.tenants {
		s := o.standing(w.name, func(c *client) bool { return c.tenant == w.name })
		s.quota = float64(w.parts) / float64(parts)
		if bytes > 0 {
			s.served = o.byteSeconds[w.name] / bytes
		}
		if requests > 0 {
			s.requests = o.requests[w.name] / requests
		}
		each = append(each, s)
	}
	all = o.standing("all", func(*client) bool { return true })
	all.quota, all.served, all.requests = 1, 1, 1
	return each, all
}

func (o *outcome) standing(name string, of func(*client) bool) standing {
	s := standing{name: name}
	var latencies []time.Duration
	for _, c := range o.clients {
		if !of(c) {
			continue
		}
		s.clientCount++
		for _, x := range c.samples {
			if x.err != nil {
				s.failures++
				if s.firstFailure == nil {
					s.firstFailure = x.err
				}
				continue
			}
			latencies = append(latencies, x.latency)
			s.oldest = max(s.oldest, x.waited)
		}
	}
	slices.Sort(latencies)
	s.answered = len(latencies)
	s.median, s.high, s.longest = quantile(latencies, 0.5), quantile(latencies, 0.99), quantile(latencies, 1)
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
	case all.failures > 0:
		return fmt.Errorf("%w: %d requests failed, the first: %w", errLoad, all.failures, all.firstFailure)
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
	t.AppendHeader(table.Row{"tenant", "clients", "quota", "memory", "off", "requests", "off", "answered", "failed", "p50 ms", "p99 ms", "max ms", "oldest wait ms"})
	row := func(s standing) table.Row {
		ofMemory, ofRequests := "", ""
		if s.name != all.name {
			m, r := s.deviations()
			ofMemory, ofRequests = fmt.Sprintf("%+.1f %%", 100*m), fmt.Sprintf("%+.1f %%", 100*r)
		}
		return table.Row{
			s.name, s.clientCount, percent(s.quota), percent(s.served), ofMemory, percent(s.requests), ofRequests, s.answered, s.failures,
			s.median.Milliseconds(), s.high.Milliseconds(), s.longest.Milliseconds(), s.oldest.Milliseconds(),
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
		"Memory is of the bytes times seconds that requests had in %.1f s, requests of those answered then; the rest is of all that were answered.\n"+
		"memory: peak %s held of a limit of %s, %s; all clients at once need %s\n"+
		"waits: %d, the longest %v; %.0f requests/s; %d driver calls\n"+
		"shutdown: %d requests in flight when stopped; %d answered after that\n",
		t.Render(), o.duration.Seconds(), bytesOf(s.PeakReservedBytes), bytesOf(s.LimitBytes), kept,
		bytesOf(int64(len(o.clients))*meanBytes()), s.Waits.Count, s.Waits.Longest.Round(time.Millisecond),
		float64(o.answered)/o.duration.Seconds(), s.DriverCalls, o.inFlight, o.drained)
}

func percent(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) }

func bytesOf(n int64) string { return humanize.IBytes(uint64(max(0, n))) } //nolint:gosec // not negative
