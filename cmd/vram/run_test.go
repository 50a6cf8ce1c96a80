package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/lab/bench"
	"github.com/go-vram/vram/lab/replay"
)

// asProgram is the variable that makes the binary of the tests run the program, to test a program that starts itself.
const asProgram = "TEST_AS_PROGRAM"

// TestMain empties the variables that the tests were started with.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "VRAM_") {
			_ = os.Unsetenv(name)
		}
	}
	recoveredtest.Main(m)
}

// vramCommand runs the program with the arguments of a line.
func vramCommand(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// file writes a file for a test and returns its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestMistakesAreOneLineAndExitTwo(t *testing.T) {
	broken := file(t, "broken.csv", "t_us,op,id,size,stream\n0,a,0,4096,0\n1,f,0,4095,0\n")
	for name, c := range map[string]struct {
		args string
		want string
	}{
		"no command":          {"", "a command is missing (vram help lists them)"},
		"unknown command":     {"frobnicate", "there is no command frobnicate (vram help lists them)"},
		"flags alone":         {"-rounds 5", "unknown flag --rounds"},
		"unknown flag":        {"replay -bogus resnet_train", "unknown flag --bogus"},
		"no trace":            {"replay", "<trace>"},
		"rounds":              {"replay -rounds 0 resnet_train", "--rounds 0: want at least 1"},
		"rounds without any":  {"replay resnet_train -rounds", "--rounds: a value is missing"},
		"rounds not a number": {"replay -rounds many resnet_train", "--rounds"},
		"footprint":           {"replay -footprint fat resnet_train", `--footprint: "fat": want balanced, lean or fast`},
		"driver":              {"replay -driver cuda resnet_train", `--driver: "cuda": want auto, dynamic, gorgonia, sim, cpu or gpu-or-cpu`},
		"limit":               {"replay -limit 1.02y resnet_train", `limit "1.02y"`},
		"limit unit":          {"replay -limit 5q resnet_train", `--limit: limit "5q": want a number with an optional unit, as "2GB", "512MiB" or "4096", or a multiple of the peak, as 1.02x`},
		"limit below a page":  {"replay -driver sim -limit 1MB resnet_train", "LimitBytes is 1000000, want at least 2097152"},
		"limit factor":        {"replay -limit 0x resnet_train", `limit "0x"`},
		"lag":                 {"replay -lag soon resnet_train", "--lag"},
		"negative lag":        {"replay -lag=-5ms resnet_train", "--lag -5ms: want 0 or more"},
		"negative gap":        {"replay -gap=-5us resnet_train", "--gap -5µs: want 0 or more"},
		"gap in parallel":     {"replay -gap 5us -parallel resnet_train", "--gap 5µs: not with --parallel"},
		"no such trace":       {"replay resnet_train no/such/trace.csv", "no/such/trace.csv: no such file"},
		"malformed trace":     {"replay resnet_train " + broken, broken + ":3: size is 4095, but id 0 was allocated with 4096"},
		"scenario":            {"bench -scenario pair,nonsense", `unknown scenario "nonsense": want all or some of pair`},
		"kernels and others":  {"bench -scenario kernels,pair", "the scenario kernels is measured by itself"},
		"kernels of none":     {"bench -scenario kernels -rows divide", `no row of the kernels begins with "divide"`},
		"rows of others":      {"bench -rows add", "--rows add: only with --scenario kernels"},
		"implementation":      {"bench -impl other", `unknown implementation "other"`},
		"repetitions":         {"bench -repetitions 0", "--repetitions 0"},
		"samples":             {"bench -samples 0", "--samples 0"},
		"time":                {"bench -time 0s", "--time 0s"},
		"profile":             {"bench -driver sim -scenario pair -cpuprofile " + filepath.Join(t.TempDir(), "no", "dir"), "no such file or directory"},
		"seeds":               {"sim -seeds 0", "--seeds 0: want at least 1"},
		"steps":               {"sim -steps 0", "--steps 0: want at least 1"},
		"negative rest":       {"replay -rest=-1s resnet_train", "--rest -1s: want 0 or more"},
		"copies":              {"replay -copies 65 resnet_train", "--copies 65: want 1 to 64"},
		"waits":               {"replay -waits often resnet_train", `--waits: "often": want never, avoid-growth or always`},
		"huge limit":          {"replay -limit 9999999TB resnet_train", "at most 4611686018427387903 bytes"},
		"two snapshots":       {"replay -snapshot x.pickle resnet_train gpt2_train", "--snapshot: want one trace"},
		"snapshot in parts":   {"replay -parallel -snapshot x.pickle resnet_train", "--snapshot: want one trace"},
		"snapshot nowhere":    {"replay -driver sim -snapshot " + filepath.Join(t.TempDir(), "no", "dir") + " resnet_train", "no such file or directory"},
		"drawing of two":      {"analyze -svg x.svg resnet_train gpt2_train", "--svg: want one trace"},
		"drawing nowhere":     {"analyze -svg " + filepath.Join(t.TempDir(), "no", "dir") + " resnet_train", "no such file or directory"},
		"analysis of nothing": {"analyze no/such/trace.csv", "no/such/trace.csv: no such file"},
		"compare with itself": {"compare -driver sim resnet_train", "-a and -b are the same"},
		"compare by colour":   {"compare -driver sim -a colour=red resnet_train", "-a: colour=red: there is no such name: want one of footprint, limit"},
		"compare by nothing":  {"compare -a x=1 resnet_train", "-a: x=1: there is no such name: want one of footprint, limit"},
		"compare below":       {"compare -driver sim -b limit=1MB resnet_train", "LimitBytes is 1000000, want at least 2097152"},
		"compare units":       {"compare -a limit=5q resnet_train", `-a: limit=5q: limit "5q": want a number with an optional unit`},
		"compare release":     {"compare -b release=soon resnet_train", "-b: release=soon: want a duration, as 2s, or never"},
		"compare waits":       {"compare -wait -a footprint=lean resnet_train", "--wait: want --parallel"},
		"compare gaps":        {"compare -gap 5us -parallel -a footprint=lean resnet_train", "--gap 5µs: not with --parallel"},
		"compare rest":        {"compare -rest=-1s -a footprint=lean resnet_train", "--rest -1s: want 0 or more"},
		"compare rounds":      {"compare -rounds 1 -a footprint=lean resnet_train", "--rounds 1: want at least 2"},
		"compare never":       {"compare -repetitions 0 -a footprint=lean resnet_train", "--repetitions 0: want at least 1"},
		"compare of nothing":  {"compare -a footprint=lean no/such/trace.csv", "no/such/trace.csv: no such file"},
		"help of nothing":     {"help frobnicate", "there is no command frobnicate"},
		"empty driver":        {"info -driver=", `--driver: "": want auto`},
		"extra argument":      {"version now", "unexpected argument now"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := vramCommand(t, strings.Fields(c.args)...)
			assert.Equal(t, exitUsage, code)
			assert.Empty(t, stdout)
			assert.Contains(t, stderr, c.want)
			assert.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %q", stderr)
			assert.Equal(t, 1, strings.Count(stderr, "vram: "), "%q", stderr)
		})
	}
}

func TestHelp(t *testing.T) {
	for args, want := range map[string][]string{
		"-h":          {"replay", "bench", "sim", "info", "version"},
		"--help":      {"replay"},
		"-help":       {"replay"},
		"replay -h":   {"--driver", "--rounds", "--footprint", "--limit", "--min-capacity", "--parallel", "--lag", "--gap", "--hazards", "--json"},
		"bench -h":    {"--scenario", "--samples", "--json", "--cpuprofile", "--mutexprofile", "--blockprofile"},
		"analyze -h":  {"--svg", "--quick", "--json"},
		"compare -h":  {"--repetitions", "--json", "footprint, limit, segments"},
		"info -h":     {"--driver"},
		"sim -h":      {"--seed", "--seeds", "--steps"},
		"version -h":  {"Show the version"},
		"replay x -h": {"--rounds"},
		"help":        {"replay", "bench", "sim", "info", "version", "help"},
		"help replay": {"--rounds"},
		"help help":   {"Show help for a command"},
	} {
		code, stdout, stderr := vramCommand(t, strings.Fields(args)...)
		assert.Equal(t, exitOK, code, args)
		assert.Empty(t, stderr, args)
		for _, w := range want {
			assert.Contains(t, stdout, w, args)
		}
	}
	_, help, _ := vramCommand(t, "bench", "-h")
	for _, name := range bench.ScenarioNames() {
		assert.Contains(t, help, name, "every scenario is named in the help")
	}
}

func TestSimSaysWhatItPlayed(t *testing.T) {
	code, stdout, stderr := vramCommand(t, "sim", "-seed", "7", "-seeds", "3", "-steps", "200")
	assert.Equal(t, exitOK, code)
	assert.Regexp(t, `^600 steps of 3 seeds from 7 on in .*: no promise broken\nactions: run \d+, alloc \d+`, stdout)
	assert.Regexp(t, `^sim: 1 of 3 seeds, 200 steps, \d+ steps/s\n`, stderr)
}

func TestDoubleDashes(t *testing.T) {
	for in, want := range map[string]string{
		"replay -rounds 5 -json x":     "replay --rounds 5 --json x",
		"replay --rounds 5 --json x":   "replay --rounds 5 --json x",
		"replay -limit=1.02x -h":       "replay --limit=1.02x -h",
		"replay -lag -5ms - -- -rough": "replay --lag -5ms - -- -rough",
		"-min-capacity":                "--min-capacity",
		"":                             "",
	} {
		assert.Equal(t, strings.Fields(want), doubleDashes(strings.Fields(in)), in)
	}
}

func TestReplayJSON(t *testing.T) {
	path := file(t, "small.csv", "t_us,op,id,size,stream\n0,a,0,4096,0\n1,a,1,8192,1\n2,f,0,4096,0\n3,a,2,4096,0\n")
	for _, flags := range []string{"-json -rounds 3", "--json --rounds=3", "-json -rounds=3 -parallel", "-json -rounds 3 -lag 5ms"} {
		args := append([]string{"replay", "-driver", "sim"}, strings.Fields(flags)...)
		code, stdout, stderr := vramCommand(t, append(args, path, "resnet_train")...)
		require.Equal(t, exitOK, code, stderr)
		var got []map[string]any
		require.NoError(t, json.Unmarshal([]byte(stdout), &got))
		require.Len(t, got, 2)
		assert.ElementsMatch(t, []string{
			"trace", "driver", "events", "streams", "peak_live_bytes", "peak_reserved_bytes", "reserved_over_live",
			"rounds", "settled_over_live", "warm_ns_per_op", "allocs_per_op",
		}, keys(got[0]))
		assert.Equal(t, "small", got[0]["trace"])
		assert.Equal(t, "sim", got[0]["driver"])
		assert.InDelta(t, 4, got[0]["events"], 0)
		assert.InDelta(t, 2, got[0]["streams"], 0)
		assert.InDelta(t, 12288, got[0]["peak_live_bytes"], 0)
		assert.Equal(t, "resnet_train", got[1]["trace"])
		rounds, ok := got[0]["rounds"].([]any)
		require.True(t, ok)
		require.Len(t, rounds, 3)
		for _, r := range rounds {
			assert.ElementsMatch(t, []string{
				"ns_per_op", "driver_ns_per_op", "driver_calls", "hit_rate", "cached_bytes", "peak_reserved_bytes", "failed", "hits", "fragmentation",
			}, keys(r.(map[string]any)))
		}
	}
}

// short is a trace of a few steps.
func short(t *testing.T) string {
	t.Helper()
	var rows strings.Builder
	rows.WriteString("t_us,op,id,size,stream\n")
	for step := range 12 {
		for i := range 10 {
			fmt.Fprintf(&rows, "%d,a,%d,%d,0\n", 1000*step, 10*step+i, (i+1)<<20)
		}
		for i := range 10 {
			fmt.Fprintf(&rows, "%d,f,%d,%d,0\n", 1000*step+500, 10*step+i, (i+1)<<20)
		}
	}
	return file(t, "short.csv", rows.String())
}

// The analysis describes the trace, its cost in each mode, and recommendations; it draws the trace, and prints JSON.
func TestAnalyze(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "short.svg")
	code, stdout, stderr := vramCommand(t, "analyze", "-svg", svg, short(t))
	require.Equal(t, exitOK, code, stderr)
	for _, want := range []string{"short: 240 events", "Sizes:", "Lifetimes:", "Steps: 11 of 10 allocations", "Streams:", "Peak:", "Allocator:", "  plain  ", "  by size  ", "Recommendations", "footprint: "} {
		assert.Contains(t, stdout, want)
	}
	drawing, err := os.ReadFile(svg)
	require.NoError(t, err)
	assert.True(t, bytes.HasPrefix(drawing, []byte("<svg xmlns=")))

	code, stdout, _ = vramCommand(t, "analyze", "-json", short(t))
	require.Equal(t, exitOK, code)
	var reports []struct {
		Pattern struct {
			Steps struct{ Allocations int }
		}
		Modes           []struct{ Name string }
		Recommendations []struct{ Topic, Advice string }
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &reports))
	require.Len(t, reports, 1)
	assert.Equal(t, 10, reports[0].Pattern.Steps.Allocations)
	assert.Len(t, reports[0].Modes, 3)
	assert.GreaterOrEqual(t, len(reports[0].Recommendations), 5)

	code, stdout, _ = vramCommand(t, "analyze", "-quick", short(t), "gpt2_train")
	require.Equal(t, exitOK, code)
	assert.Contains(t, stdout, "\n\ngpt2_train: 18087 events")
	assert.NotContains(t, stdout, "Allocator:")
	code, stdout, _ = vramCommand(t, "analyze", "-quick", "-json", "gpt2_train")
	require.Equal(t, exitOK, code)
	assert.Contains(t, stdout, `"peak_live_bytes": 13594206920`)
}

// A comparison has both sides' figures and their ratios.
func TestCompare(t *testing.T) {
	code, stdout, stderr := vramCommand(t, "compare", "-driver", "sim", "-repetitions", "2", "-rounds", "2", "-a", "limit=32MiB", "-b", "footprint=fast", short(t))
	require.Equal(t, exitOK, code, stderr)
	for _, want := range []string{"b / a", "warm ns an event", "driver calls, first round", "peak reserved", "efficiency", "from magazines", "waits", "out of memory", "a: limit=32MiB; b: footprint=fast.", "without vram", "│ plain ", "│ by size "} {
		assert.Contains(t, stdout, want)
	}
	code, stdout, _ = vramCommand(t, "compare", "-driver", "sim", "-json", "-repetitions", "1", "-a", "limit=32MiB", short(t))
	require.Equal(t, exitOK, code)
	var results []struct {
		Baselines []struct {
			Way    string
			Rounds []struct{ Hits, Misses int }
		}
		A, B struct {
			Setup  string
			Failed int
		}
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &results))
	assert.Equal(t, "limit=32MiB", results[0].A.Setup)
	assert.Positive(t, results[0].A.Failed)
	assert.Zero(t, results[0].B.Failed)
	require.Len(t, results[0].Baselines, 2)
	assert.Equal(t, "by size", results[0].Baselines[1].Way)
	assert.Zero(t, results[0].Baselines[1].Rounds[1].Misses)
	code, _, stderr = vramCommand(t, "compare", "-driver", "sim", "-repetitions", "1", "-a", "waits=never", "-b", "waits=always", short(t))
	require.Equal(t, exitOK, code)
	assert.Contains(t, stderr, "have identical results")
	assert.Contains(t, stderr, "--lag")
	code, stdout, stderr = vramCommand(t, "compare", "-driver", "sim", "-repetitions", "1", "-gap", "1us", "-lag", "1ms", "-a", "limit=32MiB", short(t))
	require.Equal(t, exitOK, code)
	assert.NotContains(t, stderr, "identical")
	assert.Contains(t, stdout, "p99.9 ns of an event")
	t.Setenv("VRAM_STATS", "off")
	code, _, stderr = vramCommand(t, "compare", "-driver", "sim", "-a", "limit=32MiB", short(t))
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "VRAM_STATS is off")
}

// A replay writes a snapshot in addition to the figures, with the buffers that the trace did not free.
func TestReplayWritesASnapshot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gpt2.pickle")
	code, stdout, stderr := vramCommand(t, "replay", "-driver", "sim", "-rounds", "1", "-snapshot", path, "gpt2_train")
	require.Equal(t, exitOK, code, stderr)
	assert.Contains(t, stdout, "gpt2_train")
	written, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "\x80\x02", string(written[:2]))
	assert.True(t, bytes.Contains(written, []byte("active_allocated")), "a live block")
	assert.True(t, bytes.Contains(written, []byte("gpt2_train.csv")), "a line of the trace")
}

func TestReplayMinCapacity(t *testing.T) {
	path := file(t, "small.csv", "t_us,op,id,size,stream\n0,a,0,67108864,0\n1,a,1,67108864,0\n")
	code, stdout, stderr := vramCommand(t, "replay", "-driver", "sim", "-min-capacity", "-rounds", "2", "-json", path)
	require.Equal(t, exitOK, code, stderr)
	var got []map[string]any
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	assert.GreaterOrEqual(t, got[0]["min_capacity_bytes"], 134217728.0)
	assert.GreaterOrEqual(t, got[0]["min_capacity_over_live"], 1.0)

	code, stdout, stderr = vramCommand(t, "replay", "-driver", "sim", "-min-capacity", "-rounds", "2", path)
	require.Equal(t, exitOK, code, stderr)
	assert.Contains(t, stdout, "least limit")
}

func TestReplayWithAGapBetweenEvents(t *testing.T) {
	path := file(t, "small.csv", "t_us,op,id,size,stream\n0,a,0,4096,0\n1,a,1,8192,1\n2,f,0,4096,0\n")
	code, stdout, stderr := vramCommand(t, "replay", "-driver", "sim", "-json", "-rounds", "2", "-gap", "1us", path)
	require.Equal(t, exitOK, code, stderr)
	var got []map[string]any
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	assert.InDelta(t, 1000, got[0]["gap_ns"], 0)
	assert.LessOrEqual(t, got[0]["p50_ns"], got[0]["p99_ns"])
	assert.LessOrEqual(t, got[0]["p99_ns"], got[0]["p999_ns"])

	code, stdout, stderr = vramCommand(t, "replay", "-driver", "sim", "-json", "-rounds", "2", path)
	require.Equal(t, exitOK, code, stderr)
	assert.NotContains(t, stdout, "p50_ns", "nothing was timed by itself")

	code, stdout, stderr = vramCommand(t, "replay", "-driver", "sim", "-rounds", "2", "-work", "1us", path) // the name that it had first
	require.Equal(t, exitOK, code, stderr)
	assert.Contains(t, stdout, "p99.9 ns")
}

func TestReplayTable(t *testing.T) {
	code, stdout, stderr := vramCommand(t, "replay", "-driver", "sim", "-rounds", "2", "resnet_train", "gpt2_train")
	require.Equal(t, exitOK, code, stderr)
	assert.Empty(t, stderr)
	for _, want := range []string{"resnet_train", "gpt2_train", "warm ns/op", "Driver sim, footprint balanced, 2 rounds"} {
		assert.Contains(t, stdout, want)
	}
	code, stdout, stderr = vramCommand(t, "replay", "-rounds", "1", "-driver", "sim", "resnet_train")
	require.Equal(t, exitOK, code, stderr)
	assert.Empty(t, stderr)
	assert.NotContains(t, stdout, "→")
}

func TestReplayWithoutMemoryExitsOneAndShowsTheFigures(t *testing.T) {
	code, stdout, stderr := vramCommand(t, "replay", "-json", "-rounds", "2", "-limit", "64MiB", "-driver", "sim", "resnet_train")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, stderr, "allocations found no memory")
	assert.Equal(t, 1, strings.Count(stderr, "\n"))
	var got []any
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	assert.Len(t, got, 1)
}

func TestReplayInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	assert.Equal(t, exitFailed, run(ctx, []string{"replay", "-driver", "sim", "resnet_train"}, &stdout, &stderr))
	assert.Contains(t, stderr.String(), "context canceled")
}

func TestBench(t *testing.T) {
	dir := t.TempDir()
	cpu, mutex, block := filepath.Join(dir, "cpu"), filepath.Join(dir, "mutex"), filepath.Join(dir, "block")
	code, stdout, stderr := vramCommand(t, "bench", "-driver", "sim", "-json", "-scenario", "pair,lifo", "-repetitions", "1", "-time", "50us", "-samples", "100",
		"-cpuprofile", cpu, "-mutexprofile", mutex, "-blockprofile", block)
	require.Equal(t, exitOK, code, stderr)
	var rows []bench.Row
	require.NoError(t, json.Unmarshal([]byte(stdout), &rows))
	assert.Equal(t, "calibration", rows[0].Scenario)
	assert.Len(t, rows, 1+2*7+2)
	for _, path := range []string{cpu, mutex, block} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Positive(t, info.Size(), path)
	}

	code, stdout, stderr = vramCommand(t, "bench", "-driver", "sim", "-scenario", "lifo", "-repetitions", "1", "-time", "50us", "-impl", "mutex")
	require.Equal(t, exitOK, code, stderr)
	assert.Contains(t, stdout, "× calibration")
	assert.NotContains(t, stdout, " vram ")
}

func TestInfo(t *testing.T) {
	code, stdout, stderr := vramCommand(t, "info", "-driver", "sim", "-json")
	require.Equal(t, exitOK, code, stderr)
	var got report
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	assert.Equal(t, "sim", got.Driver)
	assert.Positive(t, got.TotalBytes)
	assert.Equal(t, "balanced", got.Footprint)
	assert.Positive(t, got.LimitBytes)
	assert.Equal(t, trace.Embedded(), got.EmbeddedTraces)
	assert.Equal(t, "no bound", bound(0, 0))
	assert.Equal(t, "2.0 MiB, 7 blocks", bound(2<<20, 7))

	code, stdout, stderr = vramCommand(t, "info", "-driver", "sim")
	require.Equal(t, exitOK, code, stderr)
	for _, want := range []string{"sim", "granularity", "pipeline_1f1b"} {
		assert.Contains(t, stdout, want)
	}
}

// The command chooses the driver that auto chooses, and prints it, on machines with and without a GPU.
func TestAutoSaysWhatItGot(t *testing.T) {
	want, err := vram.DriverNamed("auto")
	for _, args := range [][]string{{"info", "-json"}, {"info", "-json", "-driver", "auto"}} {
		code, stdout, stderr := vramCommand(t, args...)
		if err != nil { // a driver that is there and does not work
			assert.Equal(t, exitFailed, code)
			assert.Contains(t, stderr, oneLine(err))
			continue
		}
		require.Equal(t, exitOK, code, stderr)
		assert.Equal(t, "driver: "+want.Name()+" (auto)\n", stderr)
		var got report
		require.NoError(t, json.Unmarshal([]byte(stdout), &got))
		assert.Equal(t, want.Name(), got.Driver)
	}
}

func TestVersion(t *testing.T) {
	code, stdout, _ := vramCommand(t, "version")
	assert.Equal(t, exitOK, code)
	assert.True(t, strings.HasPrefix(stdout, "vram "), stdout)
	for _, flag := range []string{"--version", "-version", "-V"} {
		code, same, stderr := vramCommand(t, flag)
		assert.Equal(t, exitOK, code)
		assert.Empty(t, stderr)
		assert.Equal(t, stdout, same)
	}

	assert.Equal(t, "(devel)", version(nil, false))
	assert.Equal(t, "v1.2.3", version(&debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, true))
	assert.Equal(t, "(devel) abc+modified", version(&debug.BuildInfo{Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"},
	}}, true))
}

func TestFailingOutputExitsOne(t *testing.T) {
	for _, args := range []string{"version", "--version", "help", "info -h", "info -driver sim", "info -driver sim -json", "replay -driver sim -rounds 1 resnet_train"} {
		var stderr bytes.Buffer
		code := run(t.Context(), strings.Fields(args), fullDisk{}, &stderr)
		assert.Equal(t, exitFailed, code, args)
		assert.Contains(t, stderr.String(), "disk full")
	}
}

// fullDisk fails every write.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestOneLine(t *testing.T) {
	assert.Equal(t, "a; b; c", oneLine(errors.Join(errors.New("a"), errors.New("b\nc"))))
}

func keys(m map[string]any) []string {
	var names []string
	for k := range m {
		names = append(names, k)
	}
	return names
}

// The page of the command names every scenario, in the order of the results.
func TestTheScenariosAreNamed(t *testing.T) {
	names := append([]string{"all"}, bench.ScenarioNames()...)
	page, err := os.ReadFile("../../docs/command.md")
	require.NoError(t, err)
	assert.Contains(t, string(page), "[-scenario "+strings.Join(names, "|")+"]")
}

// Every trace plays under the checker without a hazard, in modes that move memory between streams and unmap it.
func TestReplayUnderTheHazardChecker(t *testing.T) {
	all := map[string][]string{"balanced": trace.Embedded(), "lean": {"pipeline_1f1b"}}
	if testing.Short() {
		all = map[string][]string{"balanced": {"resnet_train"}}
	}
	for footprint, names := range all {
		code, stdout, stderr := vramCommand(t, append([]string{
			"replay", "-driver", "sim", "-lag", "1ms", "-hazards", "-rounds", "1", "-json", "-footprint", footprint,
		}, names...)...)
		assert.Zero(t, code, stderr)
		var results []replay.Result
		require.NoError(t, json.Unmarshal([]byte(stdout), &results))
		require.Len(t, results, len(names))
		for _, r := range results {
			require.NotNil(t, r.Hazards, r.Trace)
			assert.Zero(t, r.Hazards.Count, "%s: %v", r.Trace, r.Hazards.Reports)
			assert.Equal(t, []string{}, r.Hazards.Reports)
		}
	}
	code, stdout, _ := vramCommand(t, "replay", "-driver", "sim", "-hazards", "-rounds", "1", "resnet_train")
	assert.Zero(t, code)
	assert.Contains(t, stdout, " hazards │")
}

// A hazard is printed in full, and fails the command.
func TestReplayTellsOfHazards(t *testing.T) {
	var out bytes.Buffer
	results := []replay.Result{{Trace: "x", Rounds: make([]replay.Round, 1), Hazards: &replay.Hazards{Count: 2, Reports: []string{"race: a\n  now: b"}}}}
	require.NoError(t, (&replayCmd{Hazards: true}).print(&program{stdout: &out}, vram.Balanced, results))
	assert.Contains(t, out.String(), "\nx\nrace: a\n  now: b\n")
	require.EqualError(t, failures(results), "x: 2 hazards")
}
