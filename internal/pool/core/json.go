package core

import "github.com/go-vram/vram/internal/jsontext"

// MarshalJSON implements json.Marshaler: keys are the fields' names in snake_case.
func (e *LimitError) MarshalJSON() ([]byte, error) { return jsontext.Object(*e) }
