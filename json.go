package vram

import (
	"fmt"
	"strings"

	"github.com/go-vram/vram/internal/jsontext"
)

// MarshalJSON implements json.Marshaler, as that of Stats does.
func (w Waiters) MarshalJSON() ([]byte, error) { return jsontext.Object(w) }

// MarshalJSON implements json.Marshaler, as that of Stats does.
func (p Party) MarshalJSON() ([]byte, error) { return jsontext.Object(p) }

// MarshalJSON implements json.Marshaler, as that of Stats does.
func (e WaitEdge) MarshalJSON() ([]byte, error) { return jsontext.Object(e) }

// MarshalJSON implements json.Marshaler, as that of Stats does.
func (m MemoryMap) MarshalJSON() ([]byte, error) { return jsontext.Object(m) }

// MarshalJSON implements json.Marshaler, as that of Stats does.
func (m MemorySegment) MarshalJSON() ([]byte, error) { return jsontext.Object(m) }

// MarshalJSON implements json.Marshaler, as that of Stats does.
func (m MemoryRange) MarshalJSON() ([]byte, error) { return jsontext.Object(m) }

// MarshalJSON implements json.Marshaler, as that of Stats does.
func (b MemoryBytes) MarshalJSON() ([]byte, error) { return jsontext.Object(b) }

// MarshalJSON implements json.Marshaler, as that of Stats does.
func (p Profile) MarshalJSON() ([]byte, error) { return jsontext.Object(p) }

// MarshalJSON implements json.Marshaler, as that of Stats does: the stack is its place, and frames has all of
// its calls, as text.
func (p ProfileRecord) MarshalJSON() ([]byte, error) {
	return jsontext.Object(p, "frames", strings.FieldsFunc(p.Stack.Trace(""), func(c rune) bool { return c == '\n' }))
}

// MarshalJSON implements json.Marshaler, as that of Stats does; an error is its text.
func (e *ConfigError) MarshalJSON() ([]byte, error) { return jsontext.Object(*e) }

// MarshalJSON implements json.Marshaler, as that of Stats does; an error is its text.
func (e *EnvError) MarshalJSON() ([]byte, error) { return jsontext.Object(*e) }

// MarshalJSON implements json.Marshaler, as that of Stats does; an error is its text.
func (e *HandleError) MarshalJSON() ([]byte, error) { return jsontext.Object(*e) }

// MarshalJSON implements json.Marshaler, as that of Stats does; an error is its text.
func (e *PlaceError) MarshalJSON() ([]byte, error) { return jsontext.Object(*e) }

// MarshalJSON implements json.Marshaler, as that of Stats does; an error is its text.
func (e *InUseError) MarshalJSON() ([]byte, error) { return jsontext.Object(*e) }

// MarshalJSON implements json.Marshaler, as that of Stats does; an error is its text.
func (e GrowthEvent) MarshalJSON() ([]byte, error) { return jsontext.Object(e) }

// MarshalJSON implements json.Marshaler, as that of Stats does; an error is its text.
func (e WarmEvent) MarshalJSON() ([]byte, error) { return jsontext.Object(e) }

// MarshalJSON implements json.Marshaler, as that of Stats does; an error is its text.
func (e TrimEvent) MarshalJSON() ([]byte, error) { return jsontext.Object(e) }

// MarshalJSON implements json.Marshaler, as that of Stats does; an error is its text.
func (e PressureEvent) MarshalJSON() ([]byte, error) { return jsontext.Object(e) }

// MarshalJSON implements json.Marshaler, as that of Stats does; an error is its text.
func (e QuarantineEvent) MarshalJSON() ([]byte, error) { return jsontext.Object(e) }

// MarshalJSON implements json.Marshaler, as that of Stats does; the value and the stack are text.
func (e PanicEvent) MarshalJSON() ([]byte, error) {
	return jsontext.Object(struct {
		Place, Value string
		Stack        []byte
	}{e.Place, fmt.Sprint(e.Value), e.Stack})
}
