package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/tensor/safetensors"
)

// fileOf returns the bytes of a file with a header and data.
func fileOf(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func open(b []byte) (*safetensors.File, error) {
	return safetensors.Open(bytes.NewReader(b), int64(len(b)))
}

// source returns a tensor with random bytes, and the bytes.
func source(r *rand.Rand, name string, t safetensors.Type, shape ...int64) (safetensors.Source, []byte) {
	size := t.Size()
	for _, n := range shape {
		size *= n
	}
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return safetensors.Source{Name: name, Type: t, Shape: shape, Data: bytes.NewReader(data)}, data
}

// Open reads the files of Write: all types, scalars, tensors without elements, names that JSON escapes.
func TestFilesAreReadAsWritten(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		want := map[string][]byte{}
		var all []safetensors.Source
		for kind := safetensors.Bool; kind.Valid(); kind++ {
			shape := make([]int64, r.IntN(4))
			for i := range shape {
				shape[i] = r.Int64N(5)
			}
			s, data := source(r, fmt.Sprintf("layer.%d/\"<é>\u2028%v", r.IntN(3), kind), kind, shape...)
			all, want[s.Name] = append(all, s), data
		}
		metadata := map[string]string{"format": "pt", "": "\x00\"", "step": "7"}
		var b bytes.Buffer
		require.NoError(t, safetensors.Write(&b, metadata, all))
		assert.Zero(t, (binary.LittleEndian.Uint64(b.Bytes())+8)%8, "the data can be mapped")

		f, err := open(b.Bytes())
		require.NoError(t, err)
		assert.Equal(t, metadata, f.Metadata())
		entries := f.Entries()
		require.Len(t, entries, len(all))
		for _, s := range all {
			e, err := f.Entry(s.Name)
			require.NoError(t, err)
			assert.Equal(t, s.Type, e.Type)
			assert.Equal(t, append([]int64{}, s.Shape...), e.Shape)
			assert.Equal(t, int64(len(want[s.Name])), e.Bytes())
			assert.Equal(t, e.Bytes(), e.Elements()*e.Type.Size())
			got := make([]byte, e.Bytes())
			require.NoError(t, f.ReadInto(got, s.Name))
			assert.Equal(t, want[s.Name], got)
			reader, err := f.Reader(s.Name)
			require.NoError(t, err)
			got, err = io.ReadAll(reader)
			require.NoError(t, err)
			assert.Equal(t, want[s.Name], got)
		}
		require.NoError(t, f.Close())
	}
}

// A number that is no type has no size.
func TestNumbersThatAreNoTypes(t *testing.T) {
	for n := range 256 {
		kind := safetensors.Type(n) //nolint:gosec // below 256
		assert.Equal(t, kind.Valid(), kind.Size() > 0, "%d", n)
		assert.Equal(t, kind.Valid(), !strings.HasPrefix(kind.String(), "type "), "%d", n)
	}
}

// A type's name says how many bits an element has, and is read as that type. Other names are refused.
func TestTypes(t *testing.T) {
	digits := regexp.MustCompile(`^[A-Z]+(\d+)`)
	for kind := safetensors.Bool; kind.Valid(); kind++ {
		want := int64(1)
		if found := digits.FindStringSubmatch(kind.String()); found != nil {
			bits, err := strconv.ParseInt(found[1], 10, 64)
			require.NoError(t, err)
			want = bits / 8
		}
		assert.Equal(t, want, kind.Size(), kind)
		name, err := kind.MarshalText()
		require.NoError(t, err)
		var read safetensors.Type
		require.NoError(t, read.UnmarshalText(name))
		assert.Equal(t, kind, read)
		var refused *safetensors.FormatError
		require.ErrorAs(t, read.UnmarshalText(append(name, '_')), &refused)
	}
	var syntax *json.SyntaxError
	_, err := open(append(binary.LittleEndian.AppendUint64(nil, 8), "{\"a\": x}"...))
	require.ErrorAs(t, err, &syntax, "the decoder's error is told")
	_, err = safetensors.OpenFile(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// A file of the format's own library, byte by byte.
func TestAFileOfTheFormatsLibrary(t *testing.T) {
	header := `{"__metadata__":{"framework":"pt"},"weight":{"dtype":"F32","shape":[1,2],"data_offsets":[2,10]},"bias":{"dtype":"BF16","shape":[],"data_offsets":[0,2]}}   `
	b := append(fileOf(header, 0), 0x80, 0x3f, 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40)
	f, err := open(b)
	require.NoError(t, err)
	entries := f.Entries()
	require.Len(t, entries, 2)
	assert.Equal(t, "bias", entries[0].Name, "in the order of their bytes")
	assert.Equal(t, safetensors.BFloat16, entries[0].Type)
	assert.Empty(t, entries[0].Shape)
	assert.EqualValues(t, 1, entries[0].Elements())
	values := make([]byte, 8)
	require.NoError(t, f.ReadInto(values, "weight"))
	assert.Equal(t, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}, values)

	// The caller may change the results.
	entries[1].Shape[0] = 99
	metadata := f.Metadata()
	metadata["framework"] = "x"
	e, err := f.Entry("weight")
	require.NoError(t, err)
	e.Shape[1] = 99
	e, err = f.Entry("weight")
	require.NoError(t, err)
	assert.Equal(t, []int64{1, 2}, e.Shape)
	assert.Equal(t, map[string]string{"framework": "pt"}, f.Metadata())
}

func TestHeadersThatLieAreRefused(t *testing.T) {
	one := func(dtype, shape, offsets string) string {
		return fmt.Sprintf(`{"a":{"dtype":%s,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
	}
	two := func(a, b string) string {
		return fmt.Sprintf(`{"a":{"dtype":"U8","shape":[4],"data_offsets":%s},"b":{"dtype":"U8","shape":[4],"data_offsets":%s}}`, a, b)
	}
	long := binary.LittleEndian.AppendUint64(nil, safetensors.MaxHeaderBytes+1)
	for _, x := range []struct {
		name, want string
		file       []byte
	}{
		{"no bytes", "too short", nil},
		{"seven bytes", "too short", make([]byte, 7)},
		{"length of the limit", "longer than 100000000", long},
		{"length of 2^63", "longer than", binary.LittleEndian.AppendUint64(nil, 1<<63)},
		{"length of 2^64-1", "longer than", binary.LittleEndian.AppendUint64(nil, 1<<64-1)},
		{"longer than the file", "longer than the file", fileOf("{}", 0)[:9]},
		{"empty header", "does not begin", fileOf("", 0)},
		{"list", "does not begin", fileOf("[]", 0)},
		{"space first", "does not begin", fileOf(" {}", 0)},
		{"cut off", "not valid JSON", fileOf(`{"a":`, 0)},
		{"not closed", "not valid JSON", fileOf(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`, 0)},
		{"two objects", "text follows", fileOf(`{}{}`, 0)},
		{"not UTF-8", "not UTF-8", fileOf("{\"\xff\":{}}", 0)},
		{"null", "not an object", fileOf(`{"a":null}`, 0)},
		{"number", "not an object", fileOf(`{"a":7}`, 0)},
		{"empty entry", "missing", fileOf(`{"a":{}}`, 0)},
		{"no type", "missing", fileOf(one(`null`, `[4]`, `[0,4]`), 4)},
		{"no shape", "missing", fileOf(one(`"U8"`, `null`, `[0,4]`), 4)},
		{"a null in the shape", "not as the format has it", fileOf(one(`"U8"`, `[null]`, `[0,0]`), 0)},
		{"offsets that are null", "not as the format has it", fileOf(one(`"U8"`, `[0]`, `[null,null]`), 0)},
		{"one offset", "missing", fileOf(one(`"U8"`, `[4]`, `[4]`), 4)},
		{"three offsets", "missing", fileOf(one(`"U8"`, `[4]`, `[0,4,4]`), 4)},
		{"unknown type", "not a type", fileOf(one(`"F31"`, `[4]`, `[0,4]`), 4)},
		{"type in lower case", "not a type", fileOf(one(`"u8"`, `[4]`, `[0,4]`), 4)},
		{"unknown key", "not a key", fileOf(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],"x":1}}`, 4)},
		{"key in upper case", "not a key", fileOf(`{"a":{"DTYPE":"U8","shape":[4],"data_offsets":[0,4]}}`, 4)},
		{"key twice", "twice", fileOf(`{"a":{"dtype":"U8","dtype":"I8","shape":[4],"data_offsets":[0,4]}}`, 4)},
		{"name twice", "twice", fileOf(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}`, 8)},
		{"name twice, escaped", "twice", fileOf(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"\u0061":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 0)},
		{"negative length", "dimension 0", fileOf(one(`"U8"`, `[-4]`, `[0,4]`), 4)},
		{"two negative lengths", "dimension 0", fileOf(one(`"U8"`, `[-2,-2]`, `[0,4]`), 4)},
		{"fraction", "not as the format", fileOf(one(`"U8"`, `[4.5]`, `[0,4]`), 4)},
		{"2^63", "not as the format", fileOf(one(`"U8"`, `[9223372036854775808]`, `[0,4]`), 4)},
		{"size of 2^63", "overflows", fileOf(one(`"U8"`, `[4611686018427387904,2]`, `[0,4]`), 4)},
		{"size of 2^64+4", "overflows", fileOf(one(`"U8"`, `[4294967296,4294967296,4]`, `[0,4]`), 4)},
		{"size of 2^66 of eight bytes", "overflows", fileOf(one(`"F64"`, `[9223372036854775807]`, `[0,8]`), 8)},
		{"range too short", "4 bytes", fileOf(one(`"U8"`, `[4]`, `[0,3]`), 3)},
		{"range turned round", "4 bytes", fileOf(one(`"U8"`, `[4]`, `[4,0]`), 4)},
		{"range before the data", "4 bytes", fileOf(one(`"U8"`, `[4]`, `[-4,0]`), 4)},
		{"range that overflows", "4 bytes", fileOf(one(`"U8"`, `[4]`, `[-9223372036854775807,9223372036854775807]`), 4)},
		{"past the end", "4 bytes, and the file has 3", fileOf(one(`"U8"`, `[4]`, `[0,4]`), 3)},
		{"bytes of none", "and the file has 5", fileOf(one(`"U8"`, `[4]`, `[0,4]`), 5)},
		{"gap at the beginning", "begins at 1", fileOf(one(`"U8"`, `[4]`, `[1,5]`), 5)},
		{"gap", "begins at 5", fileOf(two(`[0,4]`, `[5,9]`), 9)},
		{"overlap", "begins at 3", fileOf(two(`[0,4]`, `[3,7]`), 7)},
		{"the same bytes", "begins at 0", fileOf(two(`[0,4]`, `[0,4]`), 4)},
		{"metadata that is a list", "not an object", fileOf(`{"__metadata__":[]}`, 0)},
		{"metadata that is null", "not an object", fileOf(`{"__metadata__":null}`, 0)},
		{"metadata with a number", "not a text", fileOf(`{"__metadata__":{"a":1}}`, 0)},
		{"metadata with null", "not a text", fileOf(`{"__metadata__":{"a":null}}`, 0)},
		{"metadata twice", "twice", fileOf(`{"__metadata__":{},"__metadata__":{}}`, 0)},
		{"metadata with a key twice", "twice", fileOf(`{"__metadata__":{"a":"","a":""}}`, 0)},
		{"deep", "not valid JSON", fileOf(`{"a":`+strings.Repeat("[", 20_000), 0)},
	} {
		t.Run(x.name, func(t *testing.T) {
			f, err := open(x.file)
			var format *safetensors.FormatError
			require.ErrorAs(t, err, &format)
			assert.Nil(t, f)
			assert.ErrorContains(t, err, x.want)
		})
	}
}

// A file that claims tensors of 2^62 bytes costs no more than its header.
func TestSizesThatAreClaimedAreNotAllocated(t *testing.T) {
	header := `{"a":{"dtype":"U8","shape":[4611686018427387904],"data_offsets":[0,4611686018427387904]}}`
	b := fileOf(header, 0)
	f, err := safetensors.Open(bytes.NewReader(b), int64(len(b))+1<<62)
	require.NoError(t, err)
	assert.EqualValues(t, 1<<62, f.Entries()[0].Elements())

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = open(binary.LittleEndian.AppendUint64(nil, safetensors.MaxHeaderBytes))
	runtime.ReadMemStats(&after)
	require.ErrorContains(t, err, "longer than the file")
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(safetensors.MaxHeaderBytes/2), "the header that is claimed, too")
}

func TestTensorsThatAFileCannotHave(t *testing.T) {
	data := strings.NewReader("0123")
	for name, sources := range map[string][]safetensors.Source{
		"no type":         {{Name: "a", Shape: []int64{4}, Data: data}},
		"unknown type":    {{Name: "a", Type: 200, Shape: []int64{4}, Data: data}},
		"negative length": {{Name: "a", Type: safetensors.Int8, Shape: []int64{-4}, Data: data}},
		"overflow":        {{Name: "a", Type: safetensors.Int64, Shape: []int64{1 << 60}, Data: data}},
		"sum overflows": {
			{Name: "a", Type: safetensors.Int8, Shape: []int64{1<<63 - 1}, Data: data},
			{Name: "b", Type: safetensors.Int8, Shape: []int64{1}, Data: data},
		},
		"name twice":   {{Name: "a", Type: safetensors.Int8, Data: data}, {Name: "a", Type: safetensors.Int8, Data: data}},
		"metadata":     {{Name: "__metadata__", Type: safetensors.Int8, Data: data}},
		"not UTF-8":    {{Name: "\xff", Type: safetensors.Int8, Data: data}},
		"without data": {{Name: "a", Type: safetensors.Int8}},
	} {
		var b bytes.Buffer
		var format *safetensors.FormatError
		require.ErrorAs(t, safetensors.Write(&b, nil, sources), &format, name)
		assert.Zero(t, b.Len(), name)
	}
	var format *safetensors.FormatError
	require.ErrorAs(t, safetensors.Write(io.Discard, map[string]string{"a": "\xff"}, nil), &format)
	require.NoError(t, safetensors.Write(io.Discard, nil, []safetensors.Source{{Name: "a", Type: safetensors.Int8, Shape: []int64{3, 0}}}), "no data of none")

	require.ErrorAs(t, safetensors.Write(nil, nil, nil), &format)
	_, err := safetensors.Open(nil, 100)
	require.ErrorAs(t, err, &format)

	err = safetensors.Write(io.Discard, nil, []safetensors.Source{{Name: "a", Type: safetensors.Int8, Shape: []int64{5}, Data: data}})
	var length *safetensors.LengthError
	require.ErrorAs(t, err, &length)
	assert.Equal(t, &safetensors.LengthError{Tensor: "a", Bytes: 5, Given: 4}, length)
}

func TestFailuresOfReadersAndWriters(t *testing.T) {
	failure := errors.New("the disk failed")
	s := safetensors.Source{Name: "a", Type: safetensors.Int8, Shape: []int64{4}, Data: iotest.ErrReader(failure)}
	require.ErrorIs(t, safetensors.Write(io.Discard, nil, []safetensors.Source{s}), failure)

	whole, _ := source(rand.New(rand.NewPCG(1, 1)), "a", safetensors.Int8, 4)
	var b bytes.Buffer
	require.NoError(t, safetensors.Write(&b, nil, []safetensors.Source{whole}))
	for n := range b.Len() {
		_, err := open(b.Bytes()[:n])
		var format *safetensors.FormatError
		require.ErrorAs(t, err, &format, "cut off after %d bytes", n)
		// The reader has fewer bytes than its size was said to have.
		f, err := safetensors.Open(bytes.NewReader(b.Bytes()[:n]), int64(b.Len()))
		if err == nil {
			err = f.ReadInto(make([]byte, 4), "a")
		}
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, n)
	}

	f, err := open(b.Bytes())
	require.NoError(t, err)
	var length *safetensors.LengthError
	require.ErrorAs(t, f.ReadInto(make([]byte, 3), "a"), &length)
	assert.Equal(t, &safetensors.LengthError{Tensor: "a", Bytes: 4, Given: 3}, length)
	var missing *safetensors.NotFoundError
	require.ErrorAs(t, f.ReadInto(nil, "b"), &missing)
	_, err = f.Entry("b")
	require.ErrorAs(t, err, &missing)
	_, err = f.Reader("b")
	require.ErrorAs(t, err, &missing)
	assert.Equal(t, "b", missing.Tensor)
}

// A file at a path is whole or as it was, and a failure leaves nothing.
func TestFilesAreReplacedAsAWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	first, data := source(rand.New(rand.NewPCG(3, 1)), "a", safetensors.Float32, 2, 3)
	metadata := map[string]string{"step": "1"}
	require.NoError(t, safetensors.WriteFile(path, metadata, []safetensors.Source{first}))

	bad := safetensors.Source{Name: "a", Type: safetensors.Float32, Shape: []int64{7}, Data: strings.NewReader("cut")}
	var length *safetensors.LengthError
	require.ErrorAs(t, safetensors.WriteFile(path, nil, []safetensors.Source{bad}), &length)
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1, "no other file is left")

	// A process was killed while it wrote.
	require.NoError(t, os.WriteFile(path+".tmp", []byte("half of a file that is longer than the next one"+strings.Repeat(".", 1000)), 0o600))
	f, err := safetensors.OpenFile(path)
	require.NoError(t, err)
	got := make([]byte, len(data))
	require.NoError(t, f.ReadInto(got, "a"))
	assert.Equal(t, data, got)
	require.NoError(t, f.Close())

	second, data := source(rand.New(rand.NewPCG(3, 2)), "a", safetensors.Float32, 2, 3)
	require.NoError(t, safetensors.WriteFile(path, maps.Clone(metadata), []safetensors.Source{second}))
	f, err = safetensors.OpenFile(path)
	require.NoError(t, err)
	require.NoError(t, f.ReadInto(got, "a"))
	assert.Equal(t, data, got)
	require.NoError(t, f.Close())
	left, err = os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1)

	_, err = safetensors.OpenFile(path + ".missing")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte("short"), 0o600))
	_, err = safetensors.OpenFile(path)
	var format *safetensors.FormatError
	require.ErrorAs(t, err, &format)
	var place *os.PathError
	require.ErrorAs(t, safetensors.WriteFile(filepath.Join(path, "x"), nil, nil), &place, "a file is no folder")
}

// A file that Open accepts can be written again, and is the same then.
func FuzzOpen(f *testing.F) {
	f.Add(fileOf(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, 4))
	f.Add(fileOf(`{"__metadata__":{"a":"b"},"a":{"dtype":"F64","shape":[],"data_offsets":[0,8]},"b":{"dtype":"F64","shape":[3,0],"data_offsets":[8,8]}}`, 8))
	f.Add(fileOf(`{"a":{"dtype":"U8","shape":[4611686018427387904],"data_offsets":[0,4611686018427387904]}}`, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := open(b)
		if err != nil {
			var format *safetensors.FormatError
			require.ErrorAs(t, err, &format)
			return
		}
		var all []safetensors.Source
		var bytesOfAll int64
		for _, e := range file.Entries() {
			r, err := file.Reader(e.Name)
			require.NoError(t, err)
			all = append(all, safetensors.Source{Name: e.Name, Type: e.Type, Shape: e.Shape, Data: r})
			bytesOfAll += e.Bytes()
		}
		require.LessOrEqual(t, bytesOfAll, int64(len(b)))
		var again bytes.Buffer
		require.NoError(t, safetensors.Write(&again, file.Metadata(), all))
		second, err := open(again.Bytes())
		require.NoError(t, err)
		assert.Equal(t, file.Metadata(), second.Metadata())
		for _, e := range file.Entries() {
			x, err := second.Entry(e.Name)
			require.NoError(t, err)
			assert.Equal(t, e.Type, x.Type)
			assert.Equal(t, e.Bytes(), x.Bytes())
			left, right := make([]byte, e.Bytes()), make([]byte, e.Bytes())
			require.NoError(t, file.ReadInto(left, e.Name))
			require.NoError(t, second.ReadInto(right, e.Name))
			assert.Equal(t, left, right)
		}
	})
}
