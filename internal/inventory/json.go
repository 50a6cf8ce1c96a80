package inventory

import "github.com/go-vram/vram/internal/jsontext"

// MarshalJSON implements json.Marshaler: keys are the fields' names in snake_case, durations are in seconds,
// and the place is text.
func (b Buffer) MarshalJSON() ([]byte, error) { return jsontext.Object(b) }

// MarshalJSON implements json.Marshaler, as that of Buffer does.
func (g Group) MarshalJSON() ([]byte, error) { return jsontext.Object(g) }

// MarshalJSON implements json.Marshaler, as that of Buffer does.
func (l List) MarshalJSON() ([]byte, error) { return jsontext.Object(l) }
