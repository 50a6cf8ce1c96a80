package pool

import "sync/atomic"

// Tally counts requests and frees that came to nothing, or not at once. Any number of goroutines
// may use it. A pool has one for the device, and each stream its own, whose counts are part of it.
type Tally struct {
	device *Tally // nil: it is the device's

	outOfMemory, refused, retries, badFrees, endedWaits atomic.Uint64
}

// RequestCounts counts requests and frees that came to nothing, or not at once.
type RequestCounts struct {
	// OutOfMemoryCount counts requests that ended with an *OutOfMemoryError.
	OutOfMemoryCount uint64 `json:"out_of_memory_count"`
	// RefusedCount counts requests that a typed error refused before memory was searched for them: a
	// size, an alignment or a name that cannot be, a quota, a stream that is closed.
	RefusedCount uint64 `json:"refused_count"`
	// RetryCount counts how often a request was tried again that had failed: when OnOutOfMemory asked for
	// it, when another device on the GPU had released memory, or after a wait for work that kept freed memory.
	RetryCount uint64 `json:"retry_count"`
	// BadFreeCount counts frees of buffers that were not live: double frees, and stale ones. A free
	// of the zero Buffer belongs to no device.
	BadFreeCount uint64 `json:"bad_free_count"`
	// EndedWaitCount counts requests with Request.Wait whose context ended before they had memory: they
	// ended with a *WaitError.
	EndedWaitCount uint64 `json:"ended_wait_count"`
}

// Init makes the tally a part of the device's.
func (t *Tally) Init(device *Tally) { t.device = device }

// OutOfMemory counts a request that ended for want of memory.
func (t *Tally) OutOfMemory() {
	for ; t != nil; t = t.device {
		t.outOfMemory.Add(1)
	}
}

// Refuse counts a request that was refused with an error, and returns that.
func (t *Tally) Refuse(err error) error {
	for ; t != nil; t = t.device {
		t.refused.Add(1)
	}
	return err
}

// Retry counts a request that is tried again.
func (t *Tally) Retry() {
	for ; t != nil; t = t.device {
		t.retries.Add(1)
	}
}

// BadFree counts a free of a buffer that was not live.
func (t *Tally) BadFree() {
	for ; t != nil; t = t.device {
		t.badFrees.Add(1)
	}
}

// EndWait counts a request whose context ended its wait.
func (t *Tally) EndWait() {
	for ; t != nil; t = t.device {
		t.endedWaits.Add(1)
	}
}

// Counts reads the counts.
func (t *Tally) Counts() RequestCounts {
	return RequestCounts{t.outOfMemory.Load(), t.refused.Load(), t.retries.Load(), t.badFrees.Load(), t.endedWaits.Load()}
}
