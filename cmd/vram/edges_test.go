package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/lab/bench"
	"github.com/go-vram/vram/lab/replay"
)

// Every command that opens a device refuses an invalid variable, and names it.
func TestWrongVariablesAreNamed(t *testing.T) {
	for _, args := range []string{
		"info -driver sim", "replay -driver sim -rounds 1 resnet_train", "bench -driver sim -scenario pair -repetitions 1 -time 50us -samples 10",
	} {
		for name, value := range map[string]string{"VRAM_MEMORY_LIMIT": "12XB", "VRAM_DRIVER": "tpu", "VRAM_FOOTPRINT": "fat", "VRAM_RELEASE_AFTER": "30", "VRAM_DEVICE": "first"} {
			t.Run(args+" "+name, func(t *testing.T) {
				t.Setenv(name, value)
				code, stdout, stderr := vramCommand(t, strings.Fields(args)...)
				assert.Equal(t, exitUsage, code)
				assert.Empty(t, stdout)
				assert.Contains(t, stderr, name+` is "`+value+`", want `)
				assert.Equal(t, 1, strings.Count(stderr, "\n"))
				assert.NotContains(t, stderr, "vram: vram: ")
			})
		}
		t.Run(args+" without such a device", func(t *testing.T) {
			t.Setenv("VRAM_DEVICE", "7")
			code, _, stderr := vramCommand(t, strings.Fields(args)...)
			assert.Equal(t, exitFailed, code)
			assert.Contains(t, stderr, "Ordinal is 7, the driver has 1 device: ")
			assert.NotContains(t, stderr, "vram: vram: ")
		})
		t.Run(args+" with a limit below a page", func(t *testing.T) {
			t.Setenv("VRAM_MEMORY_LIMIT", "12")
			code, _, stderr := vramCommand(t, strings.Fields(args)...)
			assert.Equal(t, exitUsage, code)
			assert.Contains(t, stderr, "LimitBytes is 12, want at least 2097152")
		})
	}
	for _, args := range []string{"version", "help", "-h", "sim -seeds 1 -steps 10"} { // these open none
		t.Setenv("VRAM_MEMORY_LIMIT", "12XB")
		code, _, stderr := vramCommand(t, strings.Fields(args)...)
		assert.Equal(t, exitOK, code, stderr)
	}
}

// Info shows the configuration of the environment, and a flag overrides a variable.
func TestInfoShowsTheEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"VRAM_DRIVER": "sim", "VRAM_MEMORY_LIMIT": "12GiB", "VRAM_FOOTPRINT": "lean", "VRAM_CACHE_SIZE": "2MiB", "VRAM_CACHE_BLOCKS": "1",
		"VRAM_WAITS": "always", "VRAM_STATS": "exact", "VRAM_DEBUG": "1", "VRAM_SEGMENT_SIZE": "4MiB", "VRAM_WARMUP": "1GiB:1",
		"VRAM_RELEASE_AFTER": "90s",
	} {
		t.Setenv(name, value)
	}
	code, stdout, stderr := vramCommand(t, "info", "-json")
	require.Equal(t, exitOK, code, stderr)
	assert.Empty(t, stderr, "the driver was named")
	var got report
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	assert.Equal(t, "sim", got.Driver)
	assert.Equal(t, int64(12<<30), got.LimitBytes)
	assert.Equal(t, []any{"lean", int64(2 << 20), 1, "1m30s", "always", "exact", true, int64(4 << 20)},
		[]any{got.Footprint, got.StreamCacheBytes, got.StreamCacheBlocks, got.ReleaseAfter, got.Waits, got.Stats, got.Debug, got.SegmentBytes})
	assert.Equal(t, got.TotalBytes, got.FreeBytes, "a look maps nothing")
	code, stdout, stderr = vramCommand(t, "info")
	require.Equal(t, exitOK, code, stderr)
	for _, want := range []string{"12 GiB", "lean", "2.0 MiB, 1 block", "1m30s", "always", "exact", "true", "4.0 MiB"} {
		assert.Contains(t, stdout, want)
	}
	t.Setenv("VRAM_DRIVER", "auto")
	_, _, stderr = vramCommand(t, "info")
	assert.Contains(t, stderr, "(auto)")
}

// docs/kubernetes.md has the limit as info prints it.
func TestInfoNamesTheSourceOfALimit(t *testing.T) {
	page, err := os.ReadFile("../../docs/kubernetes.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```\n([A-Z_]+)=([^ ]*) vram (info --driver sim)\n```\n\n```text\n(.*?)\n```").FindStringSubmatch(string(page))
	require.NotNil(t, block)
	t.Setenv(block[1], block[2])
	code, stdout, stderr := vramCommand(t, strings.Fields(block[3])...)
	require.Equal(t, exitOK, code, stderr)
	assert.Equal(t, "8.0 GiB, by CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", block[4])
	assert.Contains(t, stdout, block[4])
}

// The device that computes without a GPU is one of the drivers, by the flag and by the environment.
func TestTheProcessorIsADriver(t *testing.T) {
	var got report
	code, stdout, stderr := vramCommand(t, "info", "-driver", "cpu", "-json")
	require.Equal(t, exitOK, code, stderr)
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	assert.Equal(t, "cpu", got.Driver)
	_, _, stderr = vramCommand(t, "info", "-driver", "gpu-or-cpu")
	assert.Contains(t, stderr, "(gpu-or-cpu)", "the choice is told")
	t.Setenv("VRAM_DRIVER", "cpu")
	code, stdout, stderr = vramCommand(t, "replay", "-rounds", "1", "resnet_train")
	require.Equal(t, exitOK, code, stderr)
	assert.Contains(t, stdout, "1 round.")
}

// A trace that is larger than the device cannot be analyzed with replays: the error says how large it is.
func TestATraceThatTheDeviceCannotHold(t *testing.T) {
	large := file(t, "large.csv", "t_us,op,id,size,stream\n0,a,0,200000000000,0\n")
	code, _, stderr := vramCommand(t, "analyze", large)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, stderr, "no limit up to 64 times the peak of 186.3 GiB live is enough: the device may have less")
}

// A replay takes the mode of the environment, and a flag overrides it.
func TestReplayTakesTheEnvironment(t *testing.T) {
	t.Setenv("VRAM_DRIVER", "sim")
	t.Setenv("VRAM_FOOTPRINT", "lean")
	t.Setenv("VRAM_MEMORY_LIMIT", "64MiB")
	code, stdout, stderr := vramCommand(t, "replay", "-rounds", "1", "resnet_train")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, stderr, "found no memory")
	assert.Contains(t, stdout, "footprint lean, 1 round.")
	code, stdout, stderr = vramCommand(t, "replay", "-rounds", "1", "-footprint", "fast", "-limit", "1.1x", "resnet_train")
	assert.Equal(t, exitOK, code, stderr)
	assert.Contains(t, stdout, "footprint fast")
	t.Setenv("VRAM_STATS", "off")
	code, _, stderr = vramCommand(t, "replay", "resnet_train")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "VRAM_STATS")
}

// No line of a table is wider than a terminal, with any content, and each piece of a table has its names.
func TestTablesFit(t *testing.T) {
	long := file(t, strings.Repeat("a_trace_with_a_long_name_", 8)+".csv", "t_us,op,id,size,stream\n0,a,0,67108864,0\n")
	for _, args := range []string{
		"info -driver sim", "sim -seeds 1 -steps 10",
		"replay -driver sim -rounds 2 -hazards -parallel -wait -min-capacity " + long, "replay -driver sim -rounds 2 -gap 1us resnet_train " + long,
		"bench -driver sim -scenario pair -repetitions 1 -time 50us -samples 10",
	} {
		code, stdout, stderr := vramCommand(t, strings.Fields(args)...)
		require.Equal(t, exitOK, code, stderr)
		requireFits(t, stdout)
	}
	n := 1234567.891
	var out bytes.Buffer
	p := &program{stdout: &out, stderr: &out}
	require.NoError(t, printRows(p, []bench.Row{
		{Scenario: "calibration", Impl: "atomics", Count: 1, Goroutines: 1, NsPerOp: 1},
		{
			Scenario: "own-streams", Impl: "mutex", SizeBytes: 1 << 60, Count: 1 << 30, Goroutines: 1 << 20, NsPerOp: n, AllocsPerOp: n,
			P50Nanos: n, P99Nanos: n, P999Nanos: n, NodeVisitsPerOp: &n, DriverNsPerOp: &n, DriverCallsPerOp: &n,
		},
	}, true))
	requireFits(t, out.String())
	assert.Greater(t, strings.Count(out.String(), "own-streams"), 1, "a wide table is cut in pieces, with the names in each")
	out.Reset()
	wide := replay.Result{Trace: strings.Repeat("é", 200), Driver: strings.Repeat("driver ", 30), Rounds: make([]replay.Round, 2), PeakLiveBytes: 1}
	require.NoError(t, (&replayCmd{Rounds: 2}).print(p, 0, []replay.Result{wide}))
	requireFits(t, out.String())
	out.Reset()
	words := newTable(1, "what", "value")
	words.add(table.Row{"device", strings.Repeat("W", 300)})
	require.NoError(t, words.print(&out))
	requireFits(t, out.String())
	assert.Equal(t, 300, strings.Count(out.String(), "W"), "nothing is lost")
}

func requireFits(t *testing.T, out string) {
	t.Helper()
	for line := range strings.Lines(out) {
		assert.Equal(t, strings.TrimRight(line, " \n"), strings.TrimSuffix(line, "\n"), "nothing but spaces at the end")
		require.LessOrEqual(t, text.StringWidthWithoutEscSequences(strings.TrimSuffix(line, "\n")), mostColumns, line)
	}
}

func TestOneLineNamesTheModuleNowhere(t *testing.T) {
	assert.Equal(t, "a: b; c", oneLine(errors.New("vram: a: vram: b\nvram: c")))
}
