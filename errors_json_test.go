package vram_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/internal/jsontext"
	"github.com/go-vram/vram/streams"
)

// errorsAndEvents has a value of every error type of the root, pool and streams with fields, and of every event.
var errorsAndEvents = []any{
	&vram.AlignError{}, &vram.BatchError{}, &vram.BudgetError{}, &vram.CaptureError{}, &vram.ClosedError{}, &vram.ConfigError{}, &vram.DeadlockError{},
	&vram.EnvError{}, &vram.FreeError{}, &vram.HandleError{}, &vram.InUseError{}, &vram.LengthError{}, &vram.LimitError{}, &streams.OrderError{},
	&vram.OutOfMemoryError{}, &vram.PlaceError{}, &vram.QuotaBoundsError{}, &vram.QuotaError{}, &vram.SizeError{}, &vram.StrandedError{}, &vram.WaitError{},
	&vram.BufferEvent{}, &vram.GrowthEvent{}, &vram.LongWaitEvent{}, &vram.PanicEvent{}, &vram.PressureEvent{}, &vram.QuarantineEvent{}, &vram.TrimEvent{}, &vram.WarmEvent{},
}

// fillFields gives each exported field a value that is not zero.
func fillFields(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[error]():
		v.Set(reflect.ValueOf(error(&vram.SizeError{RequestedBytes: 9})))
	case v.Type() == reflect.TypeFor[time.Duration]():
		v.SetInt(int64(1500 * time.Millisecond))
	case v.Type() == reflect.TypeFor[site.Stack]():
		v.Set(reflect.ValueOf(site.Here(0)))
	case v.Kind() == reflect.Interface:
		v.Set(reflect.ValueOf(7))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillFields(v.Field(i))
			}
		}
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillFields(v.Elem())
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillFields(v.Index(0))
	case v.Kind() == reflect.String:
		v.SetString("x")
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(1)
	case v.CanUint():
		v.SetUint(1)
	}
}

// Every error and event has the JSON conventions of Stats: a key for each field in snake_case, durations in seconds, errors and
// places as text.
func TestErrorsAndEventsAsJSON(t *testing.T) {
	for _, x := range errorsAndEvents {
		v := reflect.New(reflect.TypeOf(x).Elem())
		fillFields(v.Elem())
		name := v.Elem().Type().String()
		text, err := json.Marshal(v.Interface())
		require.NoError(t, err, name)
		assert.False(t, strings.Contains(string(text), "{}"), "%s: %s", name, text)
		var back map[string]any
		require.NoError(t, json.Unmarshal(text, &back), name)
		for i := range v.Elem().NumField() {
			f := v.Elem().Type().Field(i)
			if !f.IsExported() {
				continue
			}
			key := jsontext.Key(f.Name)
			if f.Type == reflect.TypeFor[time.Duration]() {
				key += "_seconds"
			}
			require.Contains(t, back, key, name)
			switch f.Type {
			case reflect.TypeFor[error](), reflect.TypeFor[site.Stack](), reflect.TypeFor[vram.PressureLevel](), reflect.TypeFor[vram.StreamHandle]():
				assert.IsType(t, "", back[key], "%s: %s", name, text)
			case reflect.TypeFor[time.Duration]():
				assert.InDelta(t, 1.5, back[key], 0, name)
			}
		}
		keys := map[string]bool{}
		keysOf(back, keys)
		for key := range keys {
			assert.Equal(t, strings.ToLower(key), key, name)
		}
	}
}

// The list of errors and events has all that the packages declare.
func TestNoErrorOrEventIsForgotten(t *testing.T) {
	listed := map[string]bool{}
	for _, x := range errorsAndEvents {
		listed[reflect.TypeOf(x).Elem().Name()] = true
	}
	listed["LongWaitEvent"] = true // by its name in streams: LongWait
	for _, folder := range []string{".", "pool", "streams", "streams/magazine"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		require.NoError(t, err)
		count := 0
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			ast.Inspect(parsed, func(n ast.Node) bool {
				declared, is := n.(*ast.TypeSpec)
				if is && declared.Name.IsExported() && (strings.HasSuffix(declared.Name.Name, "Error") || strings.HasSuffix(declared.Name.Name, "Event")) {
					count++
					assert.True(t, listed[declared.Name.Name], "%s: %s", file, declared.Name.Name)
				}
				return true
			})
		}
		assert.Positive(t, count, folder)
	}
}

// The JSON of some errors and events, whole.
func TestTheJSONOfAnError(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	s, gold := h.stream(), h.tenant("gold", vram.Quota{LimitBytes: mib})
	_, err := s.AllocFor(t.Context(), vram.Request{Bytes: 2 * mib, Tenant: gold})
	var over *vram.QuotaError
	require.ErrorAs(t, err, &over)
	for want, x := range map[string]any{
		`{"tenant":"gold","requested_bytes":2097152,"charged_bytes":0,"quota":{"limit_bytes":1048576,"share_bytes":0,"exclusive":false},"held_bytes":0,"queued":0}`: over,
		`{"index":1,"count":2,"err":"vram: requested more than 5 B"}`:              &vram.BatchError{Index: 1, Count: 2, Err: errors.New("vram: requested more than 5 B")},
		`{"level":"high","before":"normal","used_bytes":7,"limit_bytes":8}`:        vram.PressureEvent{Level: vram.PressureHigh, UsedBytes: 7, LimitBytes: 8},
		`{"place":"OnOutOfMemory","value":"map[a:1]","stack":"main.f\u000a"}`:      vram.PanicEvent{Place: "OnOutOfMemory", Value: map[string]int{"a": 1}, Stack: []byte("main.f\n")},
		`{"field":"Tuning.PressureMark","value":2.5,"want":"at most 1","call":""}`: &vram.ConfigError{Field: "Tuning.PressureMark", Value: 2.5, Want: "at most 1"},
		`{"kind":"raise-limit","bytes":5,"stream":0}`:                              vram.Remedy{Kind: vram.RemedyRaiseLimit, Bytes: 5},
	} {
		text, err := json.Marshal(x)
		require.NoError(t, err)
		assert.JSONEq(t, want, string(text))
	}
}
