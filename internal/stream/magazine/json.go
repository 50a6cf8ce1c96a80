package magazine

import "github.com/go-vram/vram/internal/jsontext"

// MarshalJSON implements json.Marshaler: keys are the fields' names in snake_case.
func (e *ClosedError) MarshalJSON() ([]byte, error) { return jsontext.Object(*e) }

// MarshalJSON implements json.Marshaler, as that of ClosedError does; an error and the places are text.
func (e *FreeError) MarshalJSON() ([]byte, error) { return jsontext.Object(*e) }
