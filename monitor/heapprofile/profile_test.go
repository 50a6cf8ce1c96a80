package heapprofile_test

import (
	"bytes"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/monitor/heapprofile"
)

func open(t *testing.T, rate int64) (*vram.Device, *vram.Stream) {
	t.Helper()
	d, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{}), SampleBytes: rate})
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() }) // with live buffers
	s, err := d.NewStream()
	require.NoError(t, err)
	return d, s
}

// weights and activations are places that profiles name.
//
//go:noinline
func weights(t *testing.T, s *vram.Stream, bytes int64) vram.Buffer {
	t.Helper()
	b, err := s.AllocFor(t.Context(), vram.Request{Bytes: bytes, Tag: "weights"})
	require.NoError(t, err)
	return b
}

//go:noinline
func activations(t *testing.T, s *vram.Stream, bytes int64) vram.Buffer {
	t.Helper()
	b, err := s.Alloc(bytes)
	require.NoError(t, err)
	return b
}

// top runs go tool pprof -top and returns the bytes that it names for a function.
func top(t *testing.T, file, index, function string) float64 {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "tool", "pprof", "-top", "-nodefraction=0", "-unit=B", "-sample_index="+index, file)
	cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	row := regexp.MustCompile(`(?m)^\s*(\d+)B?\s.*` + regexp.QuoteMeta(function) + `$`).FindSubmatch(text)
	require.NotNil(t, row, "%s in\n%s", function, text)
	bytes, err := strconv.ParseFloat(string(row[1]), 64)
	require.NoError(t, err)
	return bytes
}

// pprof names the places with the bytes that they allocated and hold: exactly where each buffer is sampled, and within five
// standard deviations at the default rate.
func TestPprofNamesThePlaces(t *testing.T) {
	if testing.Short() {
		return // It runs go tool pprof.
	}
	const count, keep, small = 20_000, 4000, 64 << 10
	for _, rate := range []int64{1, vram.DefaultSampleBytes} {
		d, s := open(t, rate)
		for i := range 3 {
			_ = weights(t, s, int64(i+1)<<20)
		}
		large := weights(t, s, 100<<20)
		for i := range count {
			b := activations(t, s, small)
			if i >= keep {
				require.NoError(t, b.Free())
			}
		}
		require.NoError(t, large.Free())
		file := filepath.Join(t.TempDir(), "heap")
		f, err := os.Create(file)
		require.NoError(t, err)
		require.NoError(t, heapprofile.Write(f, d))
		require.NoError(t, f.Close())
		const place = "github.com/go-vram/vram/monitor/heapprofile_test."
		allocated, inUse := top(t, file, "alloc_space", place+"activations"), top(t, file, "inuse_space", place+"activations")
		sigma := func(n int) float64 { return 5 * small * math.Sqrt(float64(n)*(vram.DefaultSampleBytes/small)) }
		if rate == 1 {
			assert.InDelta(t, count*small, allocated, 0)
			assert.InDelta(t, keep*small, inUse, 0)
			assert.InDelta(t, 106<<20, top(t, file, "alloc_space", place+"weights"), 0)
			assert.InDelta(t, 6<<20, top(t, file, "inuse_space", place+"weights"), 0)
			assert.InDelta(t, 3, top(t, file, "inuse_objects", place+"weights"), 0)
		} else {
			assert.InDelta(t, count*small, allocated, sigma(count))
			assert.InDelta(t, keep*small, inUse, sigma(keep))
			assert.GreaterOrEqual(t, top(t, file, "alloc_space", place+"weights"), float64(100<<20))
		}
	}
}

// A profile is well formed, has the sample types of Go's heap profile and the labels of the request, and its stacks begin
// with the program.
func TestProfileHasLabels(t *testing.T) {
	d, s := open(t, 1)
	tenant, err := d.Tenant("gold", vram.Quota{})
	require.NoError(t, err)
	_, err = s.AllocFor(t.Context(), vram.Request{Bytes: 5000, Tag: "keys", Tenant: tenant})
	require.NoError(t, err)
	other, _ := open(t, 4096)
	p := heapprofile.Of(d, other)
	require.NoError(t, p.CheckValid())
	var types []string
	for _, x := range p.SampleType {
		types = append(types, x.Type+" "+x.Unit)
	}
	assert.Equal(t, []string{"alloc_objects count", "alloc_space bytes", "inuse_objects count", "inuse_space bytes"}, types)
	assert.Equal(t, "inuse_space", p.DefaultSampleType)
	assert.EqualValues(t, 4096, p.Period)
	require.Len(t, p.Sample, 1)
	x := p.Sample[0]
	assert.Equal(t, []int64{1, 5000, 1, 5000}, x.Value)
	device := []string{"0 (" + d.Info().Name + ")"}
	assert.Equal(t, map[string][]string{"device": device, "stream": {"1"}, "tag": {"keys"}, "tenant": {"gold"}}, x.Label)
	assert.Equal(t, "github.com/go-vram/vram/monitor/heapprofile_test.TestProfileHasLabels", x.Location[0].Line[0].Function.Name)
	assert.Equal(t, []string{"device " + device[0] + ": SampleBytes 1"}, p.Comments)

	var file bytes.Buffer
	require.NoError(t, heapprofile.Write(&file, d))
	read, err := profile.Parse(&file)
	require.NoError(t, err)
	assert.Equal(t, x.Value, read.Sample[0].Value)
}

// A profile says which program it is of, and that its places are complete: pprof looks for no binary.
func TestTheMappingOfAProfile(t *testing.T) {
	d, s := open(t, 1)
	_ = weights(t, s, 5000)
	p := heapprofile.Of(d)
	require.NoError(t, p.CheckValid())
	assert.Equal(t, []*profile.Mapping{{
		ID: 1, File: filepath.Base(os.Args[0]), HasFunctions: true, HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true,
	}}, p.Mapping)
	for _, l := range p.Location {
		assert.Same(t, p.Mapping[0], l.Mapping)
	}
}

// Collectors refuse a profile with a text that is no UTF-8.
func TestTextsOfAProfileAreUTF8(t *testing.T) {
	d, s := open(t, 1)
	tenant, err := d.Tenant("g\xf6ld", vram.Quota{})
	require.NoError(t, err)
	_, err = s.AllocFor(t.Context(), vram.Request{Bytes: 5000, Tag: "\xff keys", Tenant: tenant})
	require.NoError(t, err)
	x := heapprofile.Of(d).Sample[0]
	assert.Equal(t, []string{"\ufffd keys"}, x.Label["tag"])
	assert.Equal(t, []string{"g\ufffdld"}, x.Label["tenant"])
}

// Places beyond those that a device keeps are one place, which says so.
func TestOtherPlaces(t *testing.T) {
	d, s := open(t, 1)
	const count = 5000
	for i := range count { // they live: places of freed buffers make room
		_, err := s.AllocFor(t.Context(), vram.Request{Bytes: 100, Tag: strconv.Itoa(i)})
		require.NoError(t, err)
	}
	p := heapprofile.Of(d)
	require.NoError(t, p.CheckValid())
	last := p.Sample[len(p.Sample)-1]
	assert.Equal(t, "vram: other places", last.Location[0].Line[0].Function.Name)
	assert.EqualValues(t, count-4096, last.Value[0])
	var text bytes.Buffer
	require.NoError(t, heapprofile.WriteText(&text, d))
	assert.True(t, strings.Contains(text.String(), "\n    vram: other places\n"), "the text names them")
}

func TestText(t *testing.T) {
	d, s := open(t, 1)
	idle, _ := open(t, 0)
	b := weights(t, s, 1<<20)
	require.NoError(t, b.Free())
	_ = activations(t, s, 3000)
	var text bytes.Buffer
	require.NoError(t, heapprofile.WriteText(&text, d, idle))
	assert.Regexp(t, `^device 0 \(.*\): one sample for 1 B

in use 2.9 KiB in 1 buffer \(1 sampled\), allocated 2.9 KiB in 1 buffer \(1 sampled\), stream 1
    heapprofile_test.activations \(profile_test.go:\d+\)
    heapprofile_test.TestText \(profile_test.go:\d+\)
(    .*\n)*
in use 0 B in 0 buffers \(0 sampled\), allocated 1 MiB in 1 buffer \(1 sampled\), stream 1, tag "weights"
    heapprofile_test.weights \(profile_test.go:\d+\)
(    .*\n)*
no samples; SampleBytes is 0
$`, text.String())
	require.ErrorIs(t, heapprofile.WriteText(broken{}, d), errBroken)
	require.ErrorIs(t, heapprofile.Write(broken{}, d), errBroken)
}

// Places are in the order of the bytes in use, then of the bytes allocated, then of the streams.
func TestTheOrderOfPlaces(t *testing.T) {
	d, first := open(t, 1)
	second, err := d.NewStream()
	require.NoError(t, err)
	for _, x := range []struct {
		of    *vram.Stream
		bytes int64
		free  bool
		make  func(t *testing.T, s *vram.Stream, bytes int64) vram.Buffer
	}{
		{second, 2048, true, activations},
		{first, 2048, true, weights},
		{second, 4096, true, weights},
		{first, 1024, false, activations},
	} {
		if b := x.make(t, x.of, x.bytes); x.free {
			require.NoError(t, b.Free())
		}
	}
	var text bytes.Buffer
	require.NoError(t, heapprofile.WriteText(&text, d))
	var places []string
	for line := range strings.Lines(text.String()) {
		if allocated, found := strings.CutPrefix(line, "in use "); found {
			_, allocated, _ = strings.Cut(allocated, "allocated ")
			places = append(places, strings.TrimSpace(allocated))
		}
	}
	assert.Equal(t, []string{
		"1 KiB in 1 buffer (1 sampled), stream 1",
		`4 KiB in 1 buffer (1 sampled), stream 2, tag "weights"`,
		`2 KiB in 1 buffer (1 sampled), stream 1, tag "weights"`,
		"2 KiB in 1 buffer (1 sampled), stream 2",
	}, places)
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

// The period of a profile of several devices is the longest of theirs, in whatever order they are given.
func TestThePeriodIsTheLongestOfAllDevices(t *testing.T) {
	fine, s := open(t, 512)
	coarse, o := open(t, 1<<20)
	_, _ = weights(t, s, 4<<20), weights(t, o, 4<<20)
	for _, devices := range [][]*vram.Device{{fine, coarse}, {coarse, fine}, {fine, coarse, fine}} {
		var out bytes.Buffer
		require.NoError(t, heapprofile.Write(&out, devices...))
		p, err := profile.Parse(&out)
		require.NoError(t, err)
		assert.EqualValues(t, 1<<20, p.Period)
	}
}

// Each value of a place is of its own type, and each line of a function is a place.
func TestValuesOfAPlace(t *testing.T) {
	d, s := open(t, 1)
	for i := range 3 {
		_ = weights(t, s, int64(i+1)<<20)
	}
	require.NoError(t, weights(t, s, 100<<20).Free())
	other, _ := open(t, 1<<20)
	p := heapprofile.Of(other, d)
	assert.EqualValues(t, 1<<20, p.Period, "of the device that samples least")
	var sum [4]int64
	callers := map[int64]bool{}
	for _, one := range p.Sample {
		require.Len(t, one.Value, 4)
		for i, v := range one.Value {
			sum[i] += v
		}
		callers[one.Location[1].Line[0].Line] = true
	}
	assert.Equal(t, [4]int64{4, 106 << 20, 3, 6 << 20}, sum)
	assert.Len(t, callers, 2, "the two lines above")
}
