package streams

import (
	"encoding/json"

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
	type plain WaitingRequest
	return json.Marshal(struct {
		plain
		Waited float64 `json:"waited_seconds"`
		Left   float64 `json:"left_seconds"`
	}{plain(r), r.Waited.Seconds(), r.Left.Seconds()})
}

// MarshalJSON implements json.Marshaler: the duration is in seconds.
func (w LongWait) MarshalJSON() ([]byte, error) {
	type plain LongWait
	return json.Marshal(struct {
		plain
		Waited float64 `json:"waited_seconds"`
	}{plain(w), w.Waited.Seconds()})
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
