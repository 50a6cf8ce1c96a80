package pickle_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/pickle"
)

func encoded(t require.TestingT, value any) []byte {
	var out bytes.Buffer
	require.NoError(t, pickle.Encode(&out, value))
	return out.Bytes()
}

// The bytes are those that the description of the format has for each value.
func TestEachValueHasItsOperation(t *testing.T) {
	for name, c := range map[string]struct {
		value any
		want  string
	}{
		"none":           {nil, "N"},
		"true":           {true, "\x88"},
		"false":          {false, "\x89"},
		"a byte":         {255, "K\xff"},
		"two bytes":      {256, "M\x00\x01"},
		"four bytes":     {65536, "J\x00\x00\x01\x00"},
		"the least of 4": {int64(math.MinInt32), "J\x00\x00\x00\x80"},
		"below 4 bytes":  {int64(math.MinInt32) - 1, "\x8a\x05\xff\xff\xff\x7f\xff"},
		"minus one":      {int64(-1), "J\xff\xff\xff\xff"},
		"five bytes":     {int64(1) << 31, "\x8a\x05\x00\x00\x00\x80\x00"},
		"an address":     {uint64(0x7f12_3456_7000), "\x8a\x06\x00\x70\x56\x34\x12\x7f"},
		"beyond an int":  {uint64(math.MaxUint64), "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00"},
		"minus a lot":    {int64(math.MinInt64), "\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80"},
		"a fraction":     {1.5, "G\x3f\xf8\x00\x00\x00\x00\x00\x00"},
		"a text":         {"hé", "X\x03\x00\x00\x00h\xc3\xa9q\x00"},
		"no UTF-8":       {"a\xff", "X\x04\x00\x00\x00a\xef\xbf\xbdq\x00"},
		"no list":        {pickle.List(nil), "]"},
		"an empty list":  {pickle.Values(), "]"},
		"a list":         {pickle.Values(1, 2), "](K\x01K\x02e"},
		"an empty dict":  {pickle.Dict{}, "}"},
		"a dict":         {pickle.Dict{{"a", 1}}, "}(X\x01\x00\x00\x00aq\x00K\x01u"},
		"an empty tuple": {pickle.Tuple{}, ")"},
		"a pair":         {pickle.Tuple{0, 0}, "K\x00K\x00\x86"},
		"four":           {pickle.Tuple{1, 2, 3, 4}, "(K\x01K\x02K\x03K\x04t"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, "\x80\x02"+c.want+".", string(encoded(t, c.value)))
		})
	}
}

// Texts and shared values stand in the output once.
func TestTheMemo(t *testing.T) {
	stack := &pickle.Shared{Value: pickle.Values("a")}
	assert.Equal(t, "\x80\x02](](X\x01\x00\x00\x00aq\x00eq\x01h\x01h\x00e.", string(encoded(t, pickle.Values(stack, stack, "a"))))

	assert.Equal(t, "\x80\x02](X\x04\x00\x00\x00a\xef\xbf\xbdq\x00h\x00h\x00e.", string(encoded(t, pickle.Values("a\xff", "a\xff", "a\xff"))), "no UTF-8")

	var texts []any
	for i := range 300 {
		texts = append(texts, string(rune('a'+i)))
	}
	got, err := decode(encoded(t, pickle.Values(append(texts, texts...)...)))
	require.NoError(t, err)
	assert.Equal(t, append(texts, texts...), *got.(*[]any))
}

// A list is filled in pieces, none of more than a thousand values.
func TestLongListsComeInPieces(t *testing.T) {
	const count = 2500
	list := func(yield func(any) bool) {
		for i := range count {
			if !yield(i % 7) {
				return
			}
		}
	}
	data := encoded(t, pickle.List(list))
	assert.Equal(t, 3, bytes.Count(data, []byte{'('}))
	got, err := decode(data)
	require.NoError(t, err)
	assert.Len(t, *got.(*[]any), count)
}

type broken struct{}

var errBroken = errors.New("broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

// A value that cannot be written is an error with its type, and a writer's error is returned; neither takes long.
func TestErrors(t *testing.T) {
	wrong := pickle.Encode(&bytes.Buffer{}, pickle.Dict{{"a", pickle.Values(int8(3))}})
	var typed *pickle.TypeError
	require.ErrorAs(t, wrong, &typed)
	assert.Equal(t, int8(3), typed.Value)
	require.ErrorContains(t, wrong, "int8")

	made := 0
	endless := func(yield func(any) bool) {
		for yield("some text") {
			made++
		}
	}
	require.ErrorIs(t, pickle.Encode(broken{}, pickle.List(endless)), errBroken)
	assert.Less(t, made, 100000)
}

// drawn returns a random value, and the value that a reader returns for it.
func drawn(t *rapid.T, depth int) (value, want any) {
	kinds := 9
	if depth == 0 {
		kinds = 6
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return nil, nil
	case 1:
		b := rapid.Bool().Draw(t, "bool")
		return b, b
	case 2:
		i := rapid.Int64().Draw(t, "int") >> rapid.IntRange(0, 63).Draw(t, "shift")
		return i, big.NewInt(i)
	case 3:
		u := rapid.Uint64().Draw(t, "uint")
		return u, new(big.Int).SetUint64(u)
	case 4:
		f := rapid.Float64().Draw(t, "float")
		return f, f
	case 5:
		s := rapid.String().Draw(t, "text")
		return s, s
	case 6:
		dict, read := pickle.Dict{}, map[string]any{}
		for range rapid.IntRange(0, 4).Draw(t, "keys") {
			key := rapid.String().Draw(t, "key")
			v, w := drawn(t, depth-1)
			dict, read[key] = append(dict, pickle.Item{Key: key, Value: v}), w
		}
		return dict, read
	}
	var values []any
	read := []any{}
	for range rapid.IntRange(0, 5).Draw(t, "values") {
		v, w := drawn(t, depth-1)
		values, read = append(values, v), append(read, w)
	}
	if rapid.Bool().Draw(t, "tuple") {
		return pickle.Tuple(values), read
	}
	return &pickle.Shared{Value: pickle.Values(values...)}, &read
}

func property(t *rapid.T) {
	value, want := drawn(t, 4)
	got, err := decode(encoded(t, value))
	require.NoError(t, err)
	if want == nil {
		assert.Nil(t, got)
		return
	}
	require.Equal(t, want, got)
}

// TestWhatIsWrittenIsRead reads random values that were written.
func TestWhatIsWrittenIsRead(t *testing.T) { rapid.Check(t, property) }

// FuzzEncode looks for values that are not read as they were written.
func FuzzEncode(f *testing.F) { f.Fuzz(rapid.MakeFuzz(property)) }

// Python's own reader returns the same value.
func TestPythonReadsIt(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here: its own reader of the format is not tried") //nolint:forbidigo // a program of others
	}
	stack := &pickle.Shared{Value: pickle.Values(pickle.Dict{{"filename", "ü.go"}, {"line", 70000}})}
	value := pickle.Dict{
		{"none", nil},
		{"flags", pickle.Values(true, false)},
		{"numbers", pickle.Values(0, 255, 256, 65535, 65536, -1, math.MinInt32, math.MaxInt32, int64(1)<<31, int64(1)<<47, int64(math.MinInt64), uint64(math.MaxUint64))},
		{"floats", pickle.Values(0.0, -1.25, 1e300)},
		{"stacks", pickle.Values(stack, stack)},
		{"pair", pickle.Tuple{1, "two"}},
		{"five", pickle.Tuple{1, 2, 3, 4, 5}},
		{"empty", pickle.Dict{{"list", pickle.Values()}, {"dict", pickle.Dict{}}, {"tuple", pickle.Tuple{}}}},
	}
	file := filepath.Join(t.TempDir(), "value.pickle")
	require.NoError(t, os.WriteFile(file, encoded(t, value), 0o600))
	const script = `import json, pickle, sys
with open(sys.argv[1], 'rb') as f:
    v = pickle.load(f)
assert v['stacks'][0] is v['stacks'][1]
assert v['pair'] == (1, 'two') and v['empty']['tuple'] == ()
print(json.dumps(v))`
	out, err := exec.Command(python, "-c", script, file).Output()
	require.NoError(t, err)
	assert.JSONEq(t, `{"none": null, "flags": [true, false],
		"numbers": [0, 255, 256, 65535, 65536, -1, -2147483648, 2147483647, 2147483648, 140737488355328, -9223372036854775808, 18446744073709551615],
		"floats": [0.0, -1.25, 1e300], "stacks": [[{"filename": "ü.go", "line": 70000}], [{"filename": "ü.go", "line": 70000}]],
		"pair": [1, "two"], "five": [1, 2, 3, 4, 5], "empty": {"list": [], "dict": {}, "tuple": []}}`, string(out))
	require.True(t, json.Valid(out))
}
