// Package jsonformtest tests that the errors and events of a package are JSON as the statistics are.
package jsonformtest

import (
	"encoding"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cause is an error in a field: it has more in it than its text, which is all that JSON has of it.
type cause struct{ Number int }

func (c cause) Error() string { return fmt.Sprintf("no room %d", c.Number) }

// Check tests that each value, a pointer to a struct, has a key in snake_case for each of its fields, at any depth, which has the value
// of that field and of no other, that durations are in seconds, and that errors and values with MarshalText are text.
func Check(t *testing.T, values ...any) {
	t.Helper()
	for _, x := range values {
		v := reflect.New(reflect.TypeOf(x).Elem())
		fill(v.Elem(), new(int))
		name := v.Elem().Type().String()
		text, err := json.Marshal(v.Interface())
		require.NoError(t, err, name)
		assert.NotContains(t, string(text), "{}", name)
		var back map[string]any
		require.NoError(t, json.Unmarshal(text, &back), name)
		checkFields(t, v.Elem(), back, name)
		for _, key := range keys(back) {
			assert.Equal(t, strings.ToLower(key), key, name)
		}
	}
}

// checkFields tests that an object has the values of a struct's fields.
func checkFields(t *testing.T, v reflect.Value, back map[string]any, name string) {
	t.Helper()
	for _, f := range fields(v.Type()) {
		key := snakeCase(f.Name)
		if f.Type == reflect.TypeFor[time.Duration]() {
			key += "_seconds"
		}
		require.Contains(t, back, key, name)
		checkValue(t, v.FieldByName(f.Name), back[key], name+"."+f.Name)
	}
}

// checkValue tests that JSON has a value that fill has made. Types with a form of their own, except errors and text, may have any.
func checkValue(t *testing.T, v reflect.Value, back any, name string) {
	t.Helper()
	switch err, is := reflect.TypeAssert[error](v); {
	case v.Type() == reflect.TypeFor[error]() && is:
		assert.Equal(t, err.Error(), back, name)
	case v.Type() == reflect.TypeFor[time.Duration]():
		assert.InDelta(t, time.Duration(v.Int()).Seconds(), back, 0, name)
	case v.Type().Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		m, _ := reflect.TypeAssert[encoding.TextMarshaler](v)
		text, err := m.MarshalText()
		require.NoError(t, err, name)
		assert.Equal(t, string(text), back, name)
	case v.Type().Implements(reflect.TypeFor[json.Marshaler]()) || reflect.PointerTo(v.Type()).Implements(reflect.TypeFor[json.Marshaler]()):
	case v.Kind() == reflect.Struct:
		require.IsType(t, map[string]any{}, back, name)
		checkFields(t, v, back.(map[string]any), name) //nolint:forcetypeassert // the line above
	case v.Kind() == reflect.Pointer:
		checkValue(t, v.Elem(), back, name)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		require.IsType(t, []any{}, back, name)
		require.Len(t, back, 1, name)
		checkValue(t, v.Index(0), back.([]any)[0], name) //nolint:forcetypeassert // as above
	case v.Kind() == reflect.String || v.Kind() == reflect.Bool:
		assert.Equal(t, fmt.Sprint(v.Interface()), fmt.Sprint(back), name)
	case v.CanInt() || v.CanUint() || v.CanFloat():
		assert.EqualValues(t, v.Convert(reflect.TypeFor[float64]()).Float(), back, name)
	}
}

// Lists tests that each exported list of each value, a pointer to a struct, is [] in JSON where it has no elements: a reader in
// JavaScript walks over it without a look. Bytes, and lists that are text, are none.
func Lists(t *testing.T, values ...any) {
	t.Helper()
	for _, x := range values {
		v := reflect.New(reflect.TypeOf(x).Elem())
		name := v.Elem().Type().String()
		text, err := json.Marshal(v.Interface())
		require.NoError(t, err, name)
		var back map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(text, &back), name)
		for _, f := range fields(v.Elem().Type()) {
			if f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() != reflect.Uint8 && !f.Type.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
				assert.Equal(t, "[]", string(back[snakeCase(f.Name)]), "%s: %s", name, f.Name)
			}
		}
	}
}

// snakeCase returns a field's name as a key: GPUMemory is gpu_memory.
func snakeCase(name string) string {
	name = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`).ReplaceAllString(name, "${1}${3}_${2}${4}")
	return strings.ToLower(name)
}

// fields returns the exported fields of a struct, with the fields of embedded structs.
func fields(t reflect.Type) (all []reflect.StructField) {
	for f := range t.Fields() {
		switch {
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			all = append(all, fields(f.Type)...)
		case f.IsExported():
			all = append(all, f)
		}
	}
	return all
}

// fill gives each exported field a value that is not zero, and that no other has, as far as there are so many: last is the last one.
func fill(v reflect.Value, last *int) {
	*last++
	switch {
	case v.Type() == reflect.TypeFor[error]():
		v.Set(reflect.ValueOf(error(cause{*last})))
	case v.Type() == reflect.TypeFor[time.Duration]():
		v.SetInt(int64(time.Duration(*last) * 1500 * time.Millisecond))
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(int64(*last), 0)))
	case v.Kind() == reflect.Interface:
		v.Set(reflect.ValueOf(*last))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), last)
			}
		}
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), last)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), last)
	case v.Kind() == reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), last)
		}
	case v.Kind() == reflect.String:
		v.SetString(fmt.Sprintf("x%d", *last))
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt() && v.Type().Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		v.SetInt(1)
	case v.CanUint() && v.Type().Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		v.SetUint(1)
	case v.CanInt():
		v.SetInt(int64(*last))
	case v.CanUint():
		v.SetUint(uint64(*last))
	case v.CanFloat():
		v.SetFloat(float64(*last))
	}
}

// keys returns the keys of a JSON object, at any depth.
func keys(v any) (all []string) {
	switch v := v.(type) {
	case map[string]any:
		for key, x := range v {
			all = append(append(all, key), keys(x)...)
		}
	case []any:
		for _, x := range v {
			all = append(all, keys(x)...)
		}
	}
	return all
}

// All tests that values, with further names of types, has each type that the packages in the folders declare whose name ends in one of
// the endings: "Error". So none is forgotten in a call of Check.
func All(t *testing.T, folders, endings []string, values []any, further ...string) {
	t.Helper()
	for _, x := range values {
		further = append(further, reflect.TypeOf(x).Elem().Name())
	}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		require.NoError(t, err)
		var declared []string
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				declared = append(declared, types(t, file, endings)...)
			}
		}
		assert.NotEmpty(t, declared, folder)
		assert.Subset(t, further, declared, folder)
	}
}

// types are the exported names of types with one of the endings that a file declares.
func types(t *testing.T, file string, endings []string) (names []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	ast.Inspect(parsed, func(n ast.Node) bool {
		declared, is := n.(*ast.TypeSpec)
		if is && declared.Name.IsExported() && slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(declared.Name.Name, e) }) {
			names = append(names, declared.Name.Name)
		}
		return true
	})
	return names
}
