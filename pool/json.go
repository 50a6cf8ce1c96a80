package pool

import (
	"encoding/json"

	"github.com/go-vram/vram/internal/jsonform"
)

// MarshalJSON implements json.Marshaler: durations are in seconds.
func (s WaitStats) MarshalJSON() ([]byte, error) {
	type plain WaitStats
	return json.Marshal(struct {
		plain
		Longest   float64           `json:"longest_seconds"`
		Durations DurationHistogram `json:"durations"`
	}{plain(s), s.Longest.Seconds(), s.Durations})
}

// MarshalJSON implements json.Marshaler: durations are in seconds.
func (s TenantStats) MarshalJSON() ([]byte, error) {
	type plain TenantStats
	return json.Marshal(struct {
		plain
		Longest   float64           `json:"longest_seconds"`
		Durations DurationHistogram `json:"durations"`
	}{plain(s), s.Longest.Seconds(), s.Durations})
}

// MarshalJSON implements json.Marshaler: the count, the sum in seconds, and the buckets that have
// any, each with its bound in seconds; the last bucket has none.
func (h DurationHistogram) MarshalJSON() ([]byte, error) {
	type bucket struct {
		Below float64 `json:"below_seconds,omitzero"`
		Count uint64  `json:"count"`
	}
	buckets := []bucket{}
	for i, n := range h.Counts {
		if n > 0 {
			buckets = append(buckets, bucket{h.Bound(i).Seconds(), n})
		}
	}
	return json.Marshal(struct {
		Count   uint64   `json:"count"`
		Sum     float64  `json:"sum_seconds"`
		Buckets []bucket `json:"buckets"`
	}{h.Count(), h.Sum.Seconds(), buckets})
}

// MarshalJSON implements json.Marshaler: an empty list is [], and errors are their texts.
func (e *OutOfMemoryError) MarshalJSON() ([]byte, error) {
	type plain OutOfMemoryError
	p := plain(*e)
	p.Streams, p.Tenants, p.Largest = jsonform.List(e.Streams), jsonform.List(e.Tenants), jsonform.List(e.Largest)
	p.Processes = jsonform.List(e.Processes)
	return json.Marshal(struct {
		plain
		ProcessesErr any `json:"processes_err"`
		Cause        any `json:"cause"`
	}{p, jsonform.Error(e.ProcessesErr), jsonform.Error(e.Cause)})
}

// MarshalJSON implements json.Marshaler: the duration is in seconds, an empty list is [], and the context's error is its text.
func (e *WaitError) MarshalJSON() ([]byte, error) {
	type plain WaitError
	p := plain(*e)
	p.Holders, p.Tenants, p.Largest = jsonform.List(e.Holders), jsonform.List(e.Tenants), jsonform.List(e.Largest)
	return json.Marshal(struct {
		plain
		Waited float64 `json:"waited_seconds"`
		Err    any     `json:"err"`
	}{p, e.Waited.Seconds(), jsonform.Error(e.Err)})
}

// MarshalJSON implements json.Marshaler: an empty list is [].
func (e *DeadlockError) MarshalJSON() ([]byte, error) {
	type plain DeadlockError
	p := plain(*e)
	p.Holders, p.Waiters, p.Largest = jsonform.List(e.Holders), jsonform.List(e.Waiters), jsonform.List(e.Largest)
	return json.Marshal(p)
}
