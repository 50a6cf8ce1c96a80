package streams

import (
	"encoding/json"

	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/internal/jsonform"
)

// MarshalJSON implements json.Marshaler: a list without sizes is [].
func (s Stats) MarshalJSON() ([]byte, error) {
	type plain Stats
	s.Sizes = jsonform.List(s.Sizes)
	return json.Marshal(plain(s))
}

// MarshalJSON implements json.Marshaler: durations are in seconds.
func (r WaitingRequest) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Stream      uint32     `json:"stream"`
		Bytes       int64      `json:"bytes"`
		Count       int        `json:"count"`
		Tag         string     `json:"tag"`
		Tenant      string     `json:"tenant"`
		Priority    int        `json:"priority"`
		For         WaitFor    `json:"for"`
		Waited      float64    `json:"waited_seconds"`
		Left        float64    `json:"left_seconds"`
		HasDeadline bool       `json:"has_deadline"`
		Blocked     bool       `json:"blocked"`
		Place       site.Stack `json:"place"`
		Position    int        `json:"position"`
		Age         uint64     `json:"age"`
	}{
		r.Stream, r.Bytes, r.Count, r.Tag, r.Tenant, r.Priority, r.For, r.Waited.Seconds(), r.Left.Seconds(), r.HasDeadline,
		r.Blocked, r.Place, r.Position, r.Age,
	})
}

// MarshalJSON implements json.Marshaler: the duration is in seconds.
func (w LongWait) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Stream   uint32  `json:"stream"`
		Bytes    int64   `json:"bytes"`
		Waited   float64 `json:"waited_seconds"`
		Priority int     `json:"priority"`
		Tag      string  `json:"tag"`
		Tenant   string  `json:"tenant"`
		ForQuota bool    `json:"for_quota"`
	}{w.Stream, w.Bytes, w.Waited.Seconds(), w.Priority, w.Tag, w.Tenant, w.ForQuota})
}

// MarshalJSON implements json.Marshaler: the error is its text.
func (e *BatchError) MarshalJSON() ([]byte, error) {
	type plain BatchError
	return json.Marshal(struct {
		plain
		Err any `json:"err"`
	}{plain(*e), jsonform.Error(e.Err)})
}

// MarshalJSON implements json.Marshaler: the error is its text.
func (e *CaptureError) MarshalJSON() ([]byte, error) {
	type plain CaptureError
	return json.Marshal(struct {
		plain
		Err any `json:"err"`
	}{plain(*e), jsonform.Error(e.Err)})
}

// MarshalJSON implements json.Marshaler: the error is its text.
func (e *OrderError) MarshalJSON() ([]byte, error) {
	type plain OrderError
	return json.Marshal(struct {
		plain
		Err any `json:"err"`
	}{plain(*e), jsonform.Error(e.Err)})
}
