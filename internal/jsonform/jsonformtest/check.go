// Package jsonformtest tests that the errors and events of a package are JSON as the statistics are.
package jsonformtest

import (
	"encoding"
	"encoding/json"
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
type cause struct{ Detail string }

func (cause) Error() string { return "no room" }

// Check tests that each value, a pointer to a struct, has a key in snake_case for each of its fields, at any depth, that durations are
// in seconds, and that errors and values with MarshalText are text.
func Check(t *testing.T, values ...any) {
	t.Helper()
	for _, x := range values {
		v := reflect.New(reflect.TypeOf(x).Elem())
		fill(v.Elem())
		name := v.Elem().Type().String()
		text, err := json.Marshal(v.Interface())
		require.NoError(t, err, name)
		assert.NotContains(t, string(text), "{}", name)
		var back map[string]any
		require.NoError(t, json.Unmarshal(text, &back), name)
		for _, f := range fields(v.Elem().Type()) {
			key := snakeCase(f.Name)
			if f.Type == reflect.TypeFor[time.Duration]() {
				key += "_seconds"
			}
			require.Contains(t, back, key, name)
			switch {
			case f.Type == reflect.TypeFor[error]():
				assert.Equal(t, "no room", back[key], "%s: %s", name, text)
			case f.Type == reflect.TypeFor[time.Duration]():
				assert.InDelta(t, 1.5, back[key], 0, name)
			case f.Type.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
				assert.IsType(t, "", back[key], "%s: %s", name, text)
			}
		}
		for _, key := range keys(back) {
			assert.Equal(t, strings.ToLower(key), key, name)
		}
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

// fill gives each exported field a value that is not zero.
func fill(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[error]():
		v.Set(reflect.ValueOf(error(cause{"why"})))
	case v.Type() == reflect.TypeFor[time.Duration]():
		v.SetInt(int64(1500 * time.Millisecond))
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(1, 0)))
	case v.Kind() == reflect.Interface:
		v.Set(reflect.ValueOf(7))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case v.Kind() == reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case v.Kind() == reflect.String:
		v.SetString("x")
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(1)
	case v.CanUint():
		v.SetUint(1)
	case v.CanFloat():
		v.SetFloat(1)
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
