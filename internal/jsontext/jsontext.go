// Package jsontext writes values as JSON without encoding/json, which would make small programs
// larger. Keys are the fields' names in snake_case, so that no field is forgotten: LiveBytes is
// live_bytes. A time.Duration is in seconds, and its key ends in _seconds.
//
// It writes structs, slices, pointers, strings, booleans and numbers. An embedded struct is part of
// the struct around it. A value with the method MarshalJSON writes itself, unless it stands in a field for any error: that
// is always a string, as are a value with MarshalText, a []byte, and a number that JSON does not have. A nil pointer and a
// nil error are null.
package jsontext

import (
	"encoding"
	"math"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"
)

// marshaler is a value that writes itself, as json.Marshaler.
type marshaler interface{ MarshalJSON() ([]byte, error) }

// Object is the JSON of a struct, with further members behind its own: names and values in turns.
// An error is that of a MarshalText.
func Object(v any, more ...any) (b []byte, err error) {
	if b, err = fields(append(b, '{'), reflect.ValueOf(v)); err != nil {
		return nil, err
	}
	for i := 0; i < len(more); i += 2 {
		name, _ := more[i].(string)
		b = key(b, name)
		if b, err = Append(b, reflect.ValueOf(more[i+1])); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// Append writes a value.
func Append(b []byte, v reflect.Value) ([]byte, error) {
	if (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && v.IsNil() {
		return append(b, "null"...), nil
	}
	if v.CanInterface() {
		switch x := v.Interface().(type) {
		case marshaler:
			if e, is := x.(error); is && v.Type() == reflect.TypeFor[error]() {
				return String(b, e.Error()), nil
			}
			text, err := x.MarshalJSON()
			return append(b, text...), err
		case encoding.TextMarshaler:
			text, err := x.MarshalText()
			return String(b, string(text)), err
		case time.Duration:
			return Seconds(b, x), nil
		case error:
			return String(b, x.Error()), nil
		}
	}
	switch {
	case v.Kind() == reflect.Struct:
		b, err := fields(append(b, '{'), v)
		return append(b, '}'), err
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		return String(b, string(v.Bytes())), nil
	case v.Kind() == reflect.Slice:
		var err error
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = Append(b, v.Index(i)); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface:
		return Append(b, v.Elem())
	case v.Kind() == reflect.String:
		return String(b, v.String()), nil
	case v.Kind() == reflect.Bool:
		return strconv.AppendBool(b, v.Bool()), nil
	case v.CanInt():
		return strconv.AppendInt(b, v.Int(), 10), nil
	case v.CanUint():
		return strconv.AppendUint(b, v.Uint(), 10), nil
	case v.CanFloat() && (math.IsNaN(v.Float()) || math.IsInf(v.Float(), 0)):
		return String(b, strconv.FormatFloat(v.Float(), 'g', -1, 64)), nil
	case v.CanFloat():
		return strconv.AppendFloat(b, v.Float(), 'g', -1, 64), nil
	}
	return append(b, "null"...), nil
}

// fields writes the exported fields of a struct.
func fields(b []byte, v reflect.Value) (_ []byte, err error) {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			if b, err = fields(b, v.Field(i)); err != nil {
				return nil, err
			}
		case f.IsExported():
			name := Key(f.Name)
			if f.Type == reflect.TypeFor[time.Duration]() {
				name += "_seconds"
			}
			if b, err = Append(key(b, name), v.Field(i)); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}

// key begins a member.
func key(b []byte, name string) []byte {
	if last := b[len(b)-1]; last != '{' {
		b = append(b, ',')
	}
	return append(String(b, name), ':')
}

// Key is a field's name in snake_case: GPUMemory is gpu_memory.
func Key(name string) string {
	var b []byte
	upper := func(i int) bool { return i < len(name) && name[i] >= 'A' && name[i] <= 'Z' }
	for i := range len(name) {
		c := name[i]
		if upper(i) {
			if i > 0 && (!upper(i-1) || i+1 < len(name) && !upper(i+1)) {
				b = append(b, '_')
			}
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	return string(b)
}

// Seconds writes a duration.
func Seconds(b []byte, d time.Duration) []byte {
	return strconv.AppendFloat(b, d.Seconds(), 'g', -1, 64)
}

// String writes a string. Bytes that are no UTF-8 become U+FFFD.
func String(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029':
			const hex = "0123456789abcdef"
			b = append(b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
