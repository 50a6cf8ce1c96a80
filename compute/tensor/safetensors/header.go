package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// metadataKey is the key of the header that names no tensor.
const metadataKey = "__metadata__"

// header is a parsed header.
type header struct {
	metadata map[string]string
	entries  []Entry // in the order of the text
}

// described is the value of a tensor in the header.
type described struct {
	Type   *string  `json:"dtype"`
	Shape  *numbers `json:"shape"`
	Ranges *numbers `json:"data_offsets"` // begin and end
}

// numbers is a list of which package json would take a null for 0.
type numbers []int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *numbers) UnmarshalJSON(text []byte) error {
	var all []*int64
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	*n = make(numbers, len(all))
	for i, one := range all {
		if one == nil {
			return errors.New("a null in a list of numbers")
		}
		(*n)[i] = *one
	}
	return nil
}

// parseHeader parses the text of a header. It does not compare ranges with each other or with the file.
func parseHeader(text []byte) (header, error) {
	if !utf8.Valid(text) {
		return header{}, refuse("the header is not UTF-8")
	}
	var h header
	seen := map[string]bool{}
	err := eachKey(text, func(name string, value json.RawMessage) error {
		if seen[name] {
			return &FormatError{Tensor: name, Reason: "it is in the header twice"}
		}
		seen[name] = true
		if name == metadataKey {
			return h.parseMetadata(value)
		}
		e, err := parseEntry(name, value)
		h.entries = append(h.entries, e)
		return err
	})
	return h, err
}

// eachKey calls f for each key of a JSON object and its value, in the order of the text. Unlike json.Unmarshal it sees
// keys that are there twice.
func eachKey(text []byte, f func(key string, value json.RawMessage) error) error {
	if len(text) == 0 || text[0] != '{' {
		return refuse("the header does not begin with an object")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	_, _ = d.Token() // the brace
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return invalid(err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return invalid(err)
		}
		name, _ := key.(string) // a key is a string, or Token returns an error
		if err := f(name, value); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return invalid(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return refuse("text follows the header's object")
	}
	return nil
}

// invalid returns the error of a header that is not JSON.
func invalid(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &FormatError{Reason: "the header is not valid JSON", Err: err}
}

func (h *header) parseMetadata(value json.RawMessage) error {
	h.metadata = map[string]string{}
	if value[0] != '{' {
		return refuse("%s is not an object", metadataKey)
	}
	return eachKey(value, func(key string, text json.RawMessage) error {
		var s *string
		if err := json.Unmarshal(text, &s); err != nil || s == nil {
			return refuse("%s: the value of %q is not a text", metadataKey, key)
		}
		if _, twice := h.metadata[key]; twice {
			return refuse("%s has %q twice", metadataKey, key)
		}
		h.metadata[key] = *s
		return nil
	})
}

// parseEntry parses the value of a tensor, and compares its range with its type and shape.
func parseEntry(name string, value json.RawMessage) (Entry, error) {
	wrong := func(reason string, err error) (Entry, error) {
		return Entry{}, &FormatError{Tensor: name, Reason: reason, Err: err}
	}
	if value[0] != '{' {
		return wrong("its value is not an object", nil)
	}
	seen := map[string]bool{}
	if err := eachKey(value, func(key string, _ json.RawMessage) error {
		if seen[key] {
			return fmt.Errorf("%q is there twice", key)
		}
		seen[key] = true
		if key != "dtype" && key != "shape" && key != "data_offsets" {
			return fmt.Errorf("%q is not a key of the format", key)
		}
		return nil
	}); err != nil {
		return wrong("its value is not as the format has it", err)
	}
	var d described
	if err := json.Unmarshal(value, &d); err != nil {
		return wrong("its value is not as the format has it", err)
	}
	if d.Type == nil || d.Shape == nil || d.Ranges == nil || len(*d.Ranges) != 2 {
		return wrong("dtype, shape or two data_offsets are missing", nil)
	}
	var t Type
	if t.UnmarshalText([]byte(*d.Type)) != nil {
		return wrong(fmt.Sprintf("%q is not a type of the format", *d.Type), nil)
	}
	size, reason := sizeOf(t, *d.Shape)
	if reason != "" {
		return wrong(reason, nil)
	}
	e := Entry{Name: name, Type: t, Shape: *d.Shape, begin: (*d.Ranges)[0], end: (*d.Ranges)[1]}
	if e.begin < 0 || e.end < e.begin || e.end-e.begin != size {
		return wrong(fmt.Sprintf("its range [%d, %d) does not have the %d bytes of %v %v", e.begin, e.end, size, t, e.Shape), nil)
	}
	return e, nil
}
