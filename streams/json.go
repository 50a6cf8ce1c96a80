package streams

import "github.com/go-vram/vram/internal/jsontext"

// MarshalJSON implements json.Marshaler: keys are the fields' names in snake_case.
func (s Stats) MarshalJSON() ([]byte, error) { return jsontext.Object(s) }

// MarshalJSON implements json.Marshaler, as that of Stats does.
func (s SizeStats) MarshalJSON() ([]byte, error) { return jsontext.Object(s) }

// MarshalJSON implements json.Marshaler, as that of Stats does; durations are in seconds.
func (r WaitingRequest) MarshalJSON() ([]byte, error) { return jsontext.Object(r) }

// MarshalJSON implements json.Marshaler, as that of Stats does; durations are in seconds.
func (w LongWait) MarshalJSON() ([]byte, error) { return jsontext.Object(w) }

// MarshalJSON implements json.Marshaler, as that of Stats does; the place is text.
func (e BufferEvent) MarshalJSON() ([]byte, error) { return jsontext.Object(e) }

// MarshalJSON implements json.Marshaler, as that of Stats does; the place is text.
func (b SampledBuffer) MarshalJSON() ([]byte, error) { return jsontext.Object(b) }

// MarshalJSON implements json.Marshaler, as that of Stats does; an error is its text.
func (e *AlignError) MarshalJSON() ([]byte, error) { return jsontext.Object(*e) }

// MarshalJSON implements json.Marshaler, as that of Stats does; an error is its text.
func (e *BatchError) MarshalJSON() ([]byte, error) { return jsontext.Object(*e) }

// MarshalJSON implements json.Marshaler, as that of Stats does; an error is its text.
func (e *LengthError) MarshalJSON() ([]byte, error) { return jsontext.Object(*e) }

// MarshalJSON implements json.Marshaler, as that of Stats does; an error is its text.
func (e *SizeError) MarshalJSON() ([]byte, error) { return jsontext.Object(*e) }

// MarshalJSON implements json.Marshaler, as that of Stats does; an error is its text.
func (e *CaptureError) MarshalJSON() ([]byte, error) { return jsontext.Object(*e) }

// MarshalJSON implements json.Marshaler, as that of Stats does; an error is its text.
func (e *StrandedError) MarshalJSON() ([]byte, error) { return jsontext.Object(*e) }

// MarshalJSON implements json.Marshaler, as that of Stats does; an error is its text.
func (e *OrderError) MarshalJSON() ([]byte, error) { return jsontext.Object(*e) }
