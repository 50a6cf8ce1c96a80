package core

import "github.com/go-vram/vram/internal/pool/memory"

// Books are the figures of a pool at one moment.
type Books struct {
	FreeBytes        int64 // mapped, and lent to no client
	LargestFreeBytes int64 // the longest free run of any tag
	PendingBytes     int64 // free, with a fence that has not passed
	LentBytes        int64 // held by the clients, and not asleep
	SleepingBytes    int64 // held by clients, without memory: see Sleep
	SetAsideBytes    int64 // of LentBytes: in reservations, not drawn yet
	BusyBytes        int64 // part of the job in flight
	LostBytes        int64 // of handles that the driver refused to take back
	ReservedBytes    int64 // of all handles, mapped or not
	LimitBytes       int64 // of ReservedBytes
	OutsideBytes     int64 // memory past the arena, which is no part of either: see Charge
	Peaks                  // since New or ResetPeaks
	Waiting          int   // requests that are not answered yet
}

// Peaks are maxima.
type Peaks struct {
	PeakReservedBytes int64 // held from the driver, with OutsideBytes
	PeakFreeBytes     int64 // mapped, and lent to no client
	// PeakLiveBytes is the most that the clients' callers had, as last reported at each moment, and never more than was lent.
	// Refused bytes do not count. The soft budget has another peak, which includes requested bytes and is never reset.
	PeakLiveBytes int64
}

func peaksOf(p memory.Peaks, liveBytes int64) Peaks {
	return Peaks{PeakReservedBytes: p.ReservedBytes, PeakFreeBytes: p.FreeBytes, PeakLiveBytes: liveBytes}
}

// BeginScope begins a scope of the peaks, as ResetPeaks restarts them. No other scope has that number.
func (c *Core) BeginScope(number uint64, given map[Client]int64) {
	c.memory.BeginScope(number)
	lent := c.setGiven(given)
	c.clients.givenPeak.Begin(number, min(c.clients.givenBytes, lent))
}

// EndScope ends a scope, and returns the peaks inside it.
func (c *Core) EndScope(number uint64) Peaks {
	return peaksOf(c.memory.EndScope(number), c.clients.givenPeak.End(number))
}

// Books reads the figures.
func (c *Core) Books() Books {
	m := c.memory
	return Books{
		FreeBytes: m.FreeBytes(), LargestFreeBytes: m.MaxFreeBytes(), PendingBytes: m.PendingBytes(),
		LentBytes: m.LentBytes() - m.SleepingBytes(), SleepingBytes: m.SleepingBytes(), SetAsideBytes: c.setAsideBytes(),
		BusyBytes: m.BusyBytes(), LostBytes: m.LostBytes(), ReservedBytes: m.ReservedBytes(), LimitBytes: c.settings.LimitBytes,
		OutsideBytes: m.OutsideBytes(), Peaks: peaksOf(m.Peaks(), c.clients.givenPeak.Peak()), Waiting: c.unanswered(),
	}
}

// ReservedBytes returns the bytes of all handles, mapped or not.
func (c *Core) ReservedBytes() int64 { return c.memory.ReservedBytes() }

// setAsideBytes returns the undrawn bytes of reservations.
func (c *Core) setAsideBytes() (bytes int64) {
	for _, cl := range c.clients.all {
		if cl.reserves {
			bytes += int64(cl.heldPages) * c.memory.PageBytes() //nolint:gosec // pages of one arena
		}
	}
	return bytes
}

// unanswered returns the number of requests that are not answered yet.
func (c *Core) unanswered() int {
	n := c.waiters.count() + len(c.fences.held)
	c.queue.each(func(r *request) {
		if !r.waits() && (r.kind == refill || r.token != 0) { // else it is one of those, or the pool's own
			n++
		}
	})
	return n
}

// WaitCounts are the requests that wait, and those that have.
type WaitCounts struct {
	Waiting     int
	DemandBytes int64 // that they want
	Count       uint64
	Deadlocks   uint64 // of them, refused since all that held memory waited
}

// WaitCounts counts them.
func (c *Core) WaitCounts() WaitCounts {
	return WaitCounts{c.waiters.count(), c.waiters.demandBytes, c.waiters.waitCount, c.scheduler.noProgress.deadlockCount}
}

// Warmed returns the progress of the Warm that a job was for, in bytes: mapped, and wanted in all; 0 if it was for none.
func (c *Core) Warmed(j *Job) (mappedBytes, wantedBytes int64) {
	r := j.request
	if r == nil || r.kind != warm || r.token == 0 {
		return 0, 0
	}
	for _, pages := range r.lengths {
		wantedBytes += c.memory.Bytes(pages)
	}
	return r.freed, wantedBytes
}
