package pool

import (
	"strconv"

	"github.com/go-vram/vram/internal/jsontext"
)

// MarshalJSON implements json.Marshaler: keys are the fields' names in snake_case, durations are in
// seconds.
func (s WaitStats) MarshalJSON() ([]byte, error) { return jsontext.Object(s) }

// MarshalJSON implements json.Marshaler, as that of WaitStats does.
func (s TenantStats) MarshalJSON() ([]byte, error) { return jsontext.Object(s) }

// MarshalJSON implements json.Marshaler, as that of WaitStats does.
func (q Quota) MarshalJSON() ([]byte, error) { return jsontext.Object(q) }

// MarshalJSON implements json.Marshaler: the count, the sum in seconds, and the buckets that have
// any, each with its bound in seconds; the last bucket has none.
func (h DurationHistogram) MarshalJSON() ([]byte, error) {
	b := strconv.AppendUint([]byte(`{"count":`), h.Count(), 10)
	b = jsontext.Seconds(append(b, `,"sum_seconds":`...), h.Sum)
	b = append(b, `,"buckets":[`...)
	first := true
	for i, n := range h.Counts {
		if n == 0 {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(b, '{')
		if bound := h.Bound(i); bound > 0 {
			b = append(jsontext.Seconds(append(b, `"below_seconds":`...), bound), ',')
		}
		b = append(strconv.AppendUint(append(b, `"count":`...), n, 10), '}')
	}
	return append(b, "]}"...), nil
}

// MarshalJSON implements json.Marshaler, as that of WaitStats does.
func (w Waiter) MarshalJSON() ([]byte, error) { return jsontext.Object(w) }

// MarshalJSON implements json.Marshaler, as that of WaitStats does.
func (h Holder) MarshalJSON() ([]byte, error) { return jsontext.Object(h) }

// MarshalJSON implements json.Marshaler, as that of WaitStats does.
func (h Holding) MarshalJSON() ([]byte, error) { return jsontext.Object(h) }

// MarshalJSON implements json.Marshaler, as that of WaitStats does; an error is its text.
func (e *OutOfMemoryError) MarshalJSON() ([]byte, error) { return jsontext.Object(*e) }

// MarshalJSON implements json.Marshaler, as that of WaitStats does; an error is its text.
func (e *WaitError) MarshalJSON() ([]byte, error) { return jsontext.Object(*e) }

// MarshalJSON implements json.Marshaler, as that of WaitStats does.
func (e *DeadlockError) MarshalJSON() ([]byte, error) { return jsontext.Object(*e) }

// MarshalJSON implements json.Marshaler, as that of WaitStats does.
func (e *QuotaError) MarshalJSON() ([]byte, error) { return jsontext.Object(*e) }

// MarshalJSON implements json.Marshaler, as that of WaitStats does.
func (e *QuotaBoundsError) MarshalJSON() ([]byte, error) { return jsontext.Object(*e) }

// MarshalJSON implements json.Marshaler, as that of WaitStats does.
func (r Remedy) MarshalJSON() ([]byte, error) { return jsontext.Object(r) }
