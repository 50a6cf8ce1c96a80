package streams

import "github.com/go-vram/vram/internal/jsontext"

// MarshalJSON implements json.Marshaler: keys are the fields' names in snake_case.
func (s Stats) MarshalJSON() ([]byte, error) { return jsontext.Object(s) }

// MarshalJSON implements json.Marshaler, as that of Stats does.
func (s SizeStats) MarshalJSON() ([]byte, error) { return jsontext.Object(s) }
