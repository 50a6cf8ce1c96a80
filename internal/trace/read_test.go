package trace_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/trace"
)

const head = "t_us,op,id,size,stream\n"

func TestReadSmall(t *testing.T) {
	text := head + "0,a,0,100,0\n5,a,1,50,1\n5,f,0,100,1\n9,a,2,70,0\n11,f,2,70,0\n"
	got, err := trace.Read("dir/small.csv", strings.NewReader(text))
	require.NoError(t, err)
	assert.Equal(t, &trace.Trace{
		Name: "small",
		Events: []trace.Event{
			{Bytes: 100, ID: 0, Stream: 0, Op: trace.Alloc},
			{Bytes: 50, ID: 1, Stream: 1, Op: trace.Alloc},
			{Bytes: 100, ID: 0, Stream: 1, Op: trace.Free},
			{Bytes: 70, ID: 2, Stream: 0, Op: trace.Alloc},
			{Bytes: 70, ID: 2, Stream: 0, Op: trace.Free},
		},
		Micros: []int64{0, 5, 5, 9, 11},
		Info: trace.Info{
			EventCount: 5, AllocCount: 3, FreeCount: 2, StreamCount: 2, PeakLiveBytes: 150, LeftoverBytes: 50,
		},
	}, got)
	assert.Equal(t, []uint32{1}, got.Leftovers())
}

// Only the bytes held at once are bounded: a trace may allocate more than 2^63 bytes one after the other.
func TestReadTakesAnyBytesOneAfterTheOther(t *testing.T) {
	for _, bytes := range []int64{1, math.MaxInt64 - 1, math.MaxInt64} {
		text := fmt.Sprintf("%s0,a,0,%d,0\n1,f,0,%d,0\n2,a,1,%d,0\n", head, math.MaxInt64, math.MaxInt64, bytes)
		got, err := trace.Read("a.csv", strings.NewReader(text))
		require.NoError(t, err, "%d bytes", bytes)
		assert.EqualValues(t, math.MaxInt64, got.Info.PeakLiveBytes)
		assert.Equal(t, bytes, got.Info.LeftoverBytes)
	}
}

// A trace with the time of day is the same trace.
func TestReadTakesTimesSinceAnyMoment(t *testing.T) {
	want, err := trace.Read("a.csv", strings.NewReader(head+"0,a,0,100,0\n5,a,1,50,1\n9,f,0,100,1\n"))
	require.NoError(t, err)
	got, err := trace.Read("a.csv", strings.NewReader(head+"1795737600000000,a,0,100,0\n1795737600000005,a,1,50,1\n1795737600000009,f,0,100,1\n"))
	require.NoError(t, err)
	assert.Equal(t, want, got)

	// Times up to the last that there is, as long as they are less than 292 years after the first.
	const longest = math.MaxInt64 / 1000
	for _, begin := range []int64{0, 1, math.MaxInt64 - longest - 1, math.MaxInt64 - longest, math.MaxInt64 - 9} {
		for _, after := range []int64{0, 9, longest, longest + 1} {
			if after > math.MaxInt64-begin {
				continue
			}
			got, err := trace.Read("a.csv", strings.NewReader(fmt.Sprintf("%s%d,a,0,100,0\n%d,f,0,100,0\n", head, begin, begin+after)))
			if after > longest {
				require.ErrorContains(t, err, "want less than 292 years", "%d after %d", after, begin)
				continue
			}
			require.NoError(t, err, "%d after %d", after, begin)
			assert.Equal(t, []int64{0, after}, got.Micros)
		}
	}
}

// What editors and shells of other systems make of a trace is the same trace.
func TestReadTakesOtherLineEndsAndAByteOrderMark(t *testing.T) {
	text := head + "0,a,0,100,0\n5,a,1,50,1\n9,f,0,100,1\n"
	want, err := trace.Read("a.csv", strings.NewReader(text))
	require.NoError(t, err)
	crlf := strings.ReplaceAll(text, "\n", "\r\n")
	for name, other := range map[string]string{
		"CR LF": crlf, "CR LF without the last LF": strings.TrimSuffix(crlf, "\n"), "byte order mark": "\ufeff" + text, "both": "\ufeff" + crlf,
	} {
		got, err := trace.Read("a.csv", strings.NewReader(other))
		require.NoError(t, err, name)
		assert.Equal(t, want, got, name)
		got, err = trace.Read("a.csv", bytes.NewReader(zip(t, other)))
		require.NoError(t, err, name)
		assert.Equal(t, want, got, name)
	}
	for _, wrong := range []string{"\ufeff", "\ufeff\ufeff" + text, "\r" + text, strings.ReplaceAll(text, "\n", "\r\r\n"), text + "\ufeff"} {
		_, err := trace.Read("a.csv", strings.NewReader(wrong))
		var parse *trace.ParseError
		require.ErrorAs(t, err, &parse, "%q", wrong)
	}
}

func TestReadRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		line int
		what string
	}{
		"nothing":            {"", 1, "empty"},
		"wrong header":       {"time,op\n", 1, `header is "time,op"`},
		"no events":          {head, 1, "no events"},
		"too few fields":     {head + "0,a,0,4\n", 2, "has 4 fields, want 5"},
		"too many fields":    {head + "0,a,0,4,0,0\n", 2, "more than 5 fields"},
		"cut in a number":    {head + "0,a,0,4,0\n5,a,1,50,1", 3, `"5,a,1,50,1" is the last line and has no line end: the trace is cut off`},
		"cut in a line":      {head + "0,a,0,4,0\n5,a", 3, "the trace is cut off"},
		"cut in a zip":       {string(zip(t, head+"0,a,0,4,0\n5,a,1,50,1")), 3, "the trace is cut off"},
		"header alone":       {strings.TrimSuffix(head, "\n"), 1, "no events"},
		"empty line":         {head + "0,a,0,4,0\n\n", 3, "has 1 field,"},
		"unknown op":         {head + "0,x,0,4,0\n", 2, `op is "x", want a or f`},
		"negative size":      {head + "0,a,0,-4,0\n", 2, `size is "-4", want a whole number`},
		"no size":            {head + "0,a,0,,0\n", 2, `size is ""`},
		"fraction":           {head + "0.5,a,0,4,0\n", 2, `t_us is "0.5"`},
		"overflow":           {head + "0,a,0,9223372036854775808,0\n", 2, "size is"},
		"zero size":          {head + "0,a,0,0,0\n", 2, "size is 0"},
		"id gap":             {head + "0,a,0,4,0\n1,a,2,4,0\n", 3, "id 2 is allocated before id 1"},
		"allocated twice":    {head + "0,a,0,4,0\n1,a,0,4,0\n", 3, "id 0 is allocated a second time"},
		"reused after free":  {head + "0,a,0,4,0\n1,f,0,4,0\n2,a,0,4,0\n", 4, "id 0 is allocated a second time"},
		"free first":         {head + "0,f,0,4,0\n", 2, "id 0 is freed before it is allocated"},
		"freed twice":        {head + "0,a,0,4,0\n1,f,0,4,0\n1,f,0,4,0\n", 4, "id 0 is freed a second time"},
		"other size":         {head + "0,a,0,4,0\n1,f,0,5,0\n", 3, "size is 5, but id 0 was allocated with 4"},
		"too long":           {head + "7,a,0,4,0\n9223372036854783,f,0,4,0\n", 3, "t_us is 9223372036854783, and 7 in the first row: want less than 292 years"},
		"time back":          {head + "7,a,0,4,0\n6,f,0,4,0\n", 3, "t_us goes back from 7 to 6"},
		"stream too large":   {head + "0,a,0,4,65536\n", 2, "stream is 65536"},
		"streams not dense":  {head + "0,a,0,4,0\n0,a,1,4,2\n0,a,2,4,0\n", 3, "no row is on stream 1"},
		"more than 2^63":     {head + "0,a,0,9223372036854775807,0\n0,a,1,1,0\n", 3, "more than 2^63"},
		"endless line":       {head + strings.Repeat("1", 1<<20), 2, "line is longer"},
		"truncated gzip":     {string(zip(t, head+"0,a,0,4,0\n")[:20]), 1, "cannot read"},
		"streams above 0":    {head + "0,a,0,4,3\n0,a,1,4,2\n", 2, "no row is on stream 0"},
		"gzip alone":         {"\x1f\x8b", 1, "cannot read gzip"},
		"60 letters":         {head + "0,a,0,4," + strings.Repeat("y", 60) + "\n", 2, `stream is "` + strings.Repeat("y", 60) + `", want`},
		"damaged gzip":       {"\x1f\x8b\x00\x00", 1, "cannot read gzip"},
		"quotation is short": {head + strings.Repeat("y", 1000) + "\n", 2, "…"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := trace.Read("some/file.csv", strings.NewReader(c.text))
			assert.Nil(t, got)
			var parse *trace.ParseError
			require.ErrorAs(t, err, &parse)
			assert.Equal(t, "some/file.csv", parse.Name)
			assert.Equal(t, c.line, parse.Line, err.Error())
			assert.Contains(t, err.Error(), c.what)
			assert.NotContains(t, err.Error(), "\n", "one line")
			assert.Less(t, len(err.Error()), 200)
		})
	}
}

func TestReadNamesTheLineWhereReadingFails(t *testing.T) {
	broken := errors.New("cable pulled")
	in := io.MultiReader(strings.NewReader(head+"0,a,0,4,0\n"), iotest.ErrReader(broken))
	_, err := trace.Read("f", in)
	require.ErrorIs(t, err, broken)
	assert.EqualError(t, err, "f:3: cannot read: cable pulled")
}

func TestEmbedded(t *testing.T) {
	assert.Equal(t, []string{"gpt2_train", "pipeline_1f1b", "resnet_train"}, trace.Embedded())
	want := map[string]trace.Info{
		"gpt2_train":    {EventCount: 18087, StreamCount: 1, PeakLiveBytes: 13_594_206_920},
		"pipeline_1f1b": {EventCount: 41932, StreamCount: 5, PeakLiveBytes: 10_403_303_976},
		"resnet_train":  {EventCount: 9194, StreamCount: 1, PeakLiveBytes: 5_762_142_352},
	}
	for _, name := range trace.Embedded() {
		got, err := trace.Open(name)
		require.NoError(t, err)
		assert.Equal(t, name, got.Name)
		assert.Equal(t, want[name].EventCount, got.Info.EventCount)
		assert.Equal(t, want[name].StreamCount, got.Info.StreamCount)
		assert.Equal(t, want[name].PeakLiveBytes, got.Info.PeakLiveBytes)
		assert.Equal(t, got.Info.EventCount, got.Info.AllocCount+got.Info.FreeCount)
		assert.Len(t, got.Leftovers(), got.Info.AllocCount-got.Info.FreeCount)
		var leftBytes int64
		sizes := make([]int64, 0, got.Info.AllocCount)
		for _, e := range got.Events {
			if e.Op == trace.Alloc {
				sizes = append(sizes, e.Bytes)
			}
		}
		for _, id := range got.Leftovers() {
			leftBytes += sizes[id]
		}
		assert.Equal(t, got.Info.LeftoverBytes, leftBytes)
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	text := head + "0,a,0,4,0\n"
	plain := filepath.Join(dir, "one.csv")
	zipped := filepath.Join(dir, "two.csv.gz")
	require.NoError(t, os.WriteFile(plain, []byte(text), 0o600))
	require.NoError(t, os.WriteFile(zipped, zip(t, text), 0o600))
	for file, name := range map[string]string{plain: "one", zipped: "two"} {
		got, err := trace.Open(file)
		require.NoError(t, err)
		assert.Equal(t, name, got.Name)
		assert.Equal(t, 1, got.Info.EventCount)
	}

	t.Run("a file goes before an embedded trace", func(t *testing.T) {
		t.Chdir(dir)
		require.NoError(t, os.WriteFile("gpt2_train", []byte(text), 0o600))
		got, err := trace.Open("gpt2_train")
		require.NoError(t, err)
		assert.Equal(t, 1, got.Info.EventCount)
	})
	t.Run("neither", func(t *testing.T) {
		_, err := trace.Open(filepath.Join(dir, "missing"))
		require.ErrorIs(t, err, trace.ErrUnknown)
		assert.Contains(t, err.Error(), "pipeline_1f1b")
	})
	t.Run("a directory", func(t *testing.T) {
		_, err := trace.Open(dir)
		require.Error(t, err)
		assert.Contains(t, err.Error(), dir)
	})
}

func zip(tb testing.TB, text string) []byte {
	tb.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write([]byte(text))
	require.NoError(tb, err)
	require.NoError(tb, w.Close())
	return out.Bytes()
}
