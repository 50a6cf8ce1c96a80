package jsontext

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type text int

func (text) MarshalText() ([]byte, error) { return []byte("te\"xt"), nil }

type inner struct{ FreeCount uint64 }

type self struct{}

func (self) MarshalJSON() ([]byte, error) { return []byte(`[1]`), nil }

func (self) Error() string { return "no self" }

func TestObject(t *testing.T) {
	v := struct {
		inner2 int
		inner
		LiveBytes  int64
		Longest    time.Duration
		Level      text
		GPUTotal   float64
		Names      []string
		None       []int
		On         bool
		Self       self
		Nil        *int
		Err, None2 error
		Any        any
	}{inner2: 1, Err: errors.New("no"), Any: inner{3}, LiveBytes: -5, Longest: 1500 * time.Millisecond, GPUTotal: 0.5, Names: []string{"a\n", "\u2028"}, On: true}
	got, err := Object(v, "hit_rate", 0.25)
	require.NoError(t, err)
	assert.True(t, json.Valid(got), string(got))
	assert.Equal(t, `{"free_count":0,"live_bytes":-5,"longest_seconds":1.5,"level":"te\"xt","gpu_total":0.5,"names":["a\u000a","\u2028"],`+
		`"none":[],"on":true,"self":[1],"nil":null,"err":"no","none2":null,"any":{"free_count":3},"hit_rate":0.25}`, string(got))
}

// What JSON has no form for is text: an error that could write itself, where any error may be; the bytes of a text; numbers.
func TestText(t *testing.T) {
	got, err := Object(struct {
		Cause error
		Whole *self
		Stack []byte
		Never float64
		Far   []float32
	}{self{}, new(self), []byte("main.f\n"), math.NaN(), []float32{float32(math.Inf(-1)), 2}})
	require.NoError(t, err)
	assert.True(t, json.Valid(got), string(got))
	assert.Equal(t, `{"cause":"no self","whole":[1],"stack":"main.f\u000a","never":"NaN","far":["-Inf",2]}`, string(got))
}

// Every string comes back as encoding/json reads it.
func TestStrings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		var back string
		require.NoError(t, json.Unmarshal(String(nil, s), &back))
		if back != s {
			t.Fatalf("%q came back as %q", s, back)
		}
	})
	assert.Equal(t, "\"\ufffd\"", string(String(nil, "\xff")))
}

func TestKeys(t *testing.T) {
	for name, want := range map[string]string{"LiveBytes": "live_bytes", "GPUMemory": "gpu_memory", "Func": "func", "StreamID": "stream_id", "A": "a"} {
		assert.Equal(t, want, Key(name))
	}
}
