package core

import "fmt"

func (c *Core) shortage(r *request) Shortage {
	s := Shortage{
		RequestedBytes: r.requestedBytes,
		ReservedBytes:  c.reservedBytes,
		LimitBytes:     c.settings.LimitBytes,
		MissingBytes:   int64(r.wanted()) * c.pageBytes, //nolint:gosec // pages of one request
		Waited:         r.id != 0,
	}
	if r.capped {
		s.DriverBytes = r.capBytes
	}
	s.FreeBytes, s.LargestFreeBytes, s.PendingBytes = c.FreeBytes(), c.LargestFreeBytes(), c.PendingBytes()
	for _, id := range c.ids {
		cl := c.clients[id]
		var unpassed int64
		if d := c.pages.tagged[id]; d != nil {
			unpassed = int64(d.pages) * c.pageBytes //nolint:gosec // pages of one arena
		}
		held := int64(cl.heldPages) * c.pageBytes //nolint:gosec // pages of one arena
		// What it gave back may have come before it said that this is no more in use.
		s.Holdings = append(s.Holdings, Holding{id, held, min(cl.givenBytes, held), cl.lanes, cl.uncovered, unpassed, cl.reserves})
	}
	return s
}

// setGiven takes down what a client's callers have.
func (c *Core) setGiven(cl *client, bytes int64) {
	bytes = max(0, bytes)
	c.givenBytes += bytes - cl.givenBytes
	cl.givenBytes = bytes
	c.givenPeakBytes = max(c.givenPeakBytes, min(c.givenBytes, c.LentBytes()))
}

// FreeBytes are mapped and nobody's.
func (c *Core) FreeBytes() int64 { return int64(c.pages.counts[free]) * c.pageBytes }

// BusyBytes are part of the job in flight.
func (c *Core) BusyBytes() int64 { return int64(c.pages.counts[busy]) * c.pageBytes }

// LentBytes are held by the clients.
func (c *Core) LentBytes() int64 { return int64(c.pages.counts[lent]) * c.pageBytes }

// FreeRuns is the number of free runs.
func (c *Core) FreeRuns() int {
	n := c.pages.clean.bins.Count()
	for _, d := range c.pages.tagged {
		n += d.bins.Count()
	}
	return n
}

// PendingBytes are free with a fence that has not passed.
func (c *Core) PendingBytes() int64 {
	return int64(c.pages.counts[free]-c.pages.clean.pages) * c.pageBytes
}

// LargestFreeBytes is the longest free run of any tag.
func (c *Core) LargestFreeBytes() int64 {
	n := c.pages.clean.bins.Largest(c.pages.links)
	for _, d := range c.pages.tagged {
		n = max(n, d.bins.Largest(c.pages.links))
	}
	return c.bytes(n)
}

// ReservedBytes are those of all handles, mapped or not.
func (c *Core) ReservedBytes() int64 { return c.reservedBytes }

// PeakReservedBytes is the most that was reserved since New or ResetPeaks.
func (c *Core) PeakReservedBytes() int64 { return c.peakReservedBytes }

// PeakLiveBytes is the most that the clients' callers had since New or ResetPeaks, as the clients said last at each moment, and
// never more than was lent. What was refused is no part of it. The soft budget is measured by another peak, of what was asked for
// too, which is never reset.
func (c *Core) PeakLiveBytes() int64 { return c.givenPeakBytes }

// DriverGrants is the number of Refills that a driver job served.
func (c *Core) DriverGrants() uint64 { return c.driverGrants }

// Predicted is how many rises of demand came when they were foreseen, and how many did not.
func (c *Core) Predicted() (hits, misses uint64) { return c.forecast.hits, c.forecast.misses }

// LostBytes are those of handles that the driver refused to take back.
func (c *Core) LostBytes() int64 { return c.lostBytes }

// Waiting is the number of requests that are not answered yet.
func (c *Core) Waiting() int {
	n := c.waiters.table.Waiting() + len(c.held)
	c.queue.each(func(r *request) {
		if r.id == 0 && (r.kind == refill || r.token != 0) { // else it is one of those, or the pool's own
			n++
		}
	})
	return n
}

// ResetPeaks restarts the peaks at the present values. given is what the callers of clients have that have not said so since.
func (c *Core) ResetPeaks(given map[Client]int64) {
	for _, id := range c.ids {
		if bytes, ok := given[id]; ok {
			c.setGiven(c.clients[id], bytes)
		}
	}
	c.peakReservedBytes = c.reservedBytes
	c.givenPeakBytes = min(c.givenBytes, c.LentBytes())
}

// String is a line for transcripts.
func (c *Core) String() string {
	return fmt.Sprintf("reserved %d free %d lent %d busy %d waiting %d",
		c.reservedBytes, c.FreeBytes(), c.LentBytes(), c.BusyBytes(), len(c.queue.refills)+len(c.queue.others))
}
