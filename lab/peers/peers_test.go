// Package peers compares vram with other allocators on a GPU: README.md says how. It has no Go code of
// its own; its tests build and run all of it against stand-ins where there is neither GPU nor CUDA.
package peers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/trace"
)

// needs reports the test as skipped where a program is missing that it runs.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed: what it compiles or runs is not tested here", p) //nolint:forbidigo // programs of others: without them nothing of the project is untested
		}
	}
}

// output runs a command that must succeed, with more in its environment.
func output(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	stdout, stderr, code := result(t, env, name, args...)
	require.Zero(t, code, "%s %v: %s%s", name, args, stdout, stderr)
	return stdout
}

func result(t *testing.T, env []string, name string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	err := command.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return out.String(), errs.String(), exit.ExitCode()
	}
	require.NoError(t, err)
	return out.String(), errs.String(), 0
}

// theCommand builds the command vram, once for all tests, and returns its path.
func theCommand(t *testing.T) string {
	t.Helper()
	folder, err := built()
	require.NoError(t, err)
	return filepath.Join(folder, "vram")
}

var built = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "peers")
	if err != nil {
		return "", err
	}
	builtIn = folder
	said, err := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", folder, "github.com/go-vram/vram/cmd/vram").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, said)
	}
	return folder, nil
})

// builtIn is the folder of the command, where it was built.
var builtIn string

func TestMain(m *testing.M) {
	code := m.Run()
	if builtIn != "" {
		_ = os.RemoveAll(builtIn)
	}
	os.Exit(code)
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	require.NoError(t, err)
	return abs
}

// small is a trace with two streams, whose peak is 12 MiB and which never frees one buffer.
const small = "t_us,op,id,size,stream\n0,a,0,4194304,0\n1,a,1,8388608,1\n2,f,0,4194304,0\n3,a,2,4194304,0\n4,f,1,8388608,1\n"

func TestAllOfItAgainstStandins(t *testing.T) {
	needs(t, "bash", "g++", "python3", "gzip", "timeout")
	standin := absolute(t, "testdata/standin")
	build, out, traces := t.TempDir(), t.TempDir(), t.TempDir()
	vram := theCommand(t)
	require.NoError(t, os.WriteFile(filepath.Join(traces, "small.csv"), []byte(small), 0o600))
	output(t, nil, "gzip", filepath.Join(traces, "small.csv"))

	tables := output(t, []string{
		"STANDIN=" + standin, "VRAM=" + vram, "DRIVER=sim", "OUT=" + out, "BUILD=" + build, "TRACES=" + traces, "BUDGET_S=300", "CXXFLAGS=-O0",
		"ROUNDS=1", "REPETITIONS=1", "TIME_MS=1", "SAMPLES=20", "WORK_US=1", "SCENARIOS=pair record paced",
		"PEERS=vram torch torch-expandable cudaMallocAsync cudaMalloc cupy vram-lean vram-fast",
	}, "./run.sh", "all")
	for _, want := range []string{
		"pair, 128 MiB", "record, 1 MiB", "paced, 4 KiB", "Traces, warm", "Traces, cold", "Memory held", "Under a limit",
		"torch-expandable", "cudaMallocAsync", "cudaMalloc ", "cupy", "vram-lean", "every trace, warm",
	} {
		assert.Contains(t, tables, want)
	}
	assert.NotContains(t, tables, "Runs that ended early")
	for _, name := range []string{"rows-scenarios.jsonl", "rows-traces.jsonl", "log-scenarios.txt", "log-traces.txt", "table.txt", "table.md"} {
		assert.FileExists(t, filepath.Join(out, name))
	}

	torch, cuda := filepath.Join(build, "peer-torch"), filepath.Join(build, "peer-cuda")
	expandable := []string{"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"}
	t.Run("scenarios", func(t *testing.T) {
		for _, args := range [][]string{
			{torch}, {cuda, "-kind", "async"}, {cuda, "-kind", "plain"}, {"python3", "cupy_peer.py"},
		} {
			testScenarios(t, args, []string{"PYTHONPATH=" + standin})
		}
	})
	t.Run("traces", func(t *testing.T) { testTraces(t, torch, cuda) })
	t.Run("sequence", func(t *testing.T) { testSequence(t, cuda) })
	t.Run("expandable segments are made sure of", func(t *testing.T) {
		for _, c := range []struct {
			env  []string
			impl string
			code int
		}{{nil, "torch", 0}, {expandable, "torch", 1}, {nil, "torch-expandable", 1}, {expandable, "torch-expandable", 0}} {
			_, stderr, code := result(t, c.env, torch, "-impl", c.impl, "-time-ms", "1", "-scenario", "pair", "bench")
			assert.Equal(t, c.code, code, stderr)
		}
	})
	t.Run("who cannot take part is left out", func(t *testing.T) {
		stdout, stderr, code := result(t, []string{
			"STANDIN=" + standin, "VRAM=" + vram, "DRIVER=sim", "OUT=" + t.TempDir(), "BUILD=" + t.TempDir(), "CXX=false", "ROUNDS=1",
			"REPETITIONS=1", "TIME_MS=1", "SAMPLES=20", "SCENARIOS=pair", "PEERS=vram torch cudaMalloc cupy other",
		}, "./run.sh", "scenarios")
		assert.Zero(t, code)
		for _, want := range []string{"src/torch.cpp does not compile here", "torch is left out", "cudaMalloc is left out", "other is left out"} {
			assert.Contains(t, stderr, want)
		}
		assert.Contains(t, stdout, "cupy")
	})
	t.Run("mistakes", func(t *testing.T) {
		broken := filepath.Join(t.TempDir(), "broken.csv")
		require.NoError(t, os.WriteFile(broken, []byte("t_us,op,id,size,stream\n0,a,0,4096,0\n1,f,0,4095,0\n"), 0o600))
		for _, c := range []struct {
			args string
			code int
			want string
		}{
			{"", 2, "want bench"},
			{"-scenario nonsense bench", 2, "no scenario nonsense"},
			{"replay", 2, "want bench"},
			{"replay /no/such.csv", 1, "cannot be opened"},
			{"replay " + broken, 1, broken + ":3: id or size does not fit"},
			{"-kind plain -limit 1.5 replay " + broken, 1, broken},
		} {
			_, stderr, code := result(t, nil, cuda, strings.Fields(c.args)...)
			assert.Equal(t, c.code, code, c.args)
			assert.Contains(t, stderr, c.want)
		}
	})
}

// testScenarios runs all of them and counts the rows, which have the fields of vram bench.
func testScenarios(t *testing.T, command, env []string) {
	t.Helper()
	flags := []string{"-time-ms", "1", "-samples", "20", "-repetitions", "1", "bench"}
	want := map[string]int{"pair": 7, "lifo": 1, "varied": 1, "own-streams": 5, "one-stream": 5, "batch": 4, "paced": 1, "warmup": 2}
	if strings.HasSuffix(command[0], "peer-torch") {
		want["record"] = 4
	}
	if command[0] == "python3" {
		flags = []string{"bench", "--time-ms", "1", "--samples", "20", "--repetitions", "1"}
		delete(want, "own-streams")
		delete(want, "one-stream")
	}
	seen := map[string]int{}
	for line := range strings.Lines(output(t, env, command[0], append(command[1:], flags...)...)) {
		var row struct {
			Scenario, Impl         string
			SizeBytes              *int64   `json:"size_bytes"`
			Count                  int      `json:"n"`
			Goroutines             int      `json:"goroutines"`
			NsPerOp                float64  `json:"ns_per_op"`
			P50Nanos               *float64 `json:"p50_ns"`
			P99Nanos, P999OrHigher *float64
		}
		require.NoError(t, json.Unmarshal([]byte(line), &row), line)
		seen[row.Scenario]++
		assert.Positive(t, row.NsPerOp, line)
		assert.Positive(t, row.Count, line)
		assert.Positive(t, row.Goroutines, line)
		assert.NotNil(t, row.SizeBytes, line)
		assert.NotNil(t, row.P50Nanos, line)
	}
	assert.Equal(t, want, seen, "%v", command)
}

type round struct {
	Failed, Events    int
	PeakReservedBytes int64 `json:"peak_reserved_bytes"`
}

type replayed struct {
	Trace           string
	Events, Streams int
	PeakLiveBytes   int64 `json:"peak_live_bytes"`
	Rounds          []round
	GapNanos        int64 `json:"gap_ns"`
	CutShort        bool  `json:"cut_short"`
}

// testTraces replays embedded traces and compares the figures with the Go reader's.
func testTraces(t *testing.T, torch, cuda string) {
	t.Helper()
	play := func(command ...string) (r replayed) {
		text := output(t, []string{"PYTHONPATH=" + absolute(t, "testdata/standin")}, command[0], command[1:]...)
		require.NoError(t, json.Unmarshal([]byte(text), &r), text)
		return r
	}
	dir := t.TempDir()
	for _, name := range trace.Embedded() {
		tr, err := trace.Open(name)
		require.NoError(t, err)
		path := filepath.Join(dir, name+".csv")
		text := output(t, nil, "gzip", "-dc", "../../internal/trace/data/"+name+".csv.gz")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		for _, command := range [][]string{
			{torch, "-rounds", "2", "-work-us", "0.1", "replay", path},
			{cuda, "-kind", "async", "-rounds", "2", "-work-us", "0.1", "replay", path},
			{"python3", "cupy_peer.py", "replay", "--rounds", "2", "--work-us", "0.1", path},
		} {
			got := play(command...)
			assert.Equal(t, name, got.Trace)
			assert.Equal(t, tr.Info.EventCount, got.Events)
			assert.Equal(t, tr.Info.StreamCount, got.Streams)
			assert.Equal(t, tr.Info.PeakLiveBytes, got.PeakLiveBytes)
			whole := round{Events: tr.Info.EventCount, PeakReservedBytes: tr.Info.PeakLiveBytes}
			assert.Equal(t, []round{whole, whole}, got.Rounds, "the stand-in holds what is live, and nothing is left over: %v", command)
			assert.EqualValues(t, 100, got.GapNanos)
			assert.False(t, got.CutShort)
		}
	}
	path := filepath.Join(dir, "small.csv")
	require.NoError(t, os.WriteFile(path, []byte(small), 0o600))
	for _, command := range [][]string{
		{torch, "-rounds", "2", "-limit", "0.7", "replay", path},
		{cuda, "-rounds", "2", "-limit", "0.7", "replay", path},
		{"python3", "cupy_peer.py", "replay", "--rounds", "2", "--limit", "0.7", path},
	} {
		short := round{Events: 5, Failed: 1, PeakReservedBytes: 4194304}
		assert.Equal(t, []round{short, short}, play(command...).Rounds, "the second buffer finds no memory: %v", command)
	}
	long := filepath.Join(dir, "gpt2_train.csv")
	for _, command := range [][]string{
		{torch, "-deadline-s", "0.000001", "replay", long},
		{"python3", "cupy_peer.py", "replay", "--deadline-s", "0.000001", long},
	} {
		got := play(command...)
		assert.True(t, got.CutShort)
		require.Len(t, got.Rounds, 1)
		assert.Less(t, got.Rounds[0].Events, got.Events)
	}
}

// testSequence draws the sizes of the scenario varied as lab/bench does.
func testSequence(t *testing.T, cuda string) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 500))
	low, high := math.Log(64<<10), math.Log(64<<20)
	for i, line := range strings.Split(strings.TrimSpace(output(t, nil, cuda, "sequence")), "\n") {
		var size, victim float64
		_, err := fmt.Sscan(line, &size, &victim)
		require.NoError(t, err)
		assert.InDelta(t, math.Exp(low+r.Float64()*(high-low)), size, 1.5, "step %d: of the last digit of an exponential", i)
		assert.InDelta(t, r.IntN(500), victim, 0, "step %d", i)
	}
}

// The sources are valid C++17 and compile without warnings.
func TestSourcesCompileWithoutWarnings(t *testing.T) {
	needs(t, "g++")
	for _, name := range []string{"torch", "cuda"} {
		output(t, nil, "g++", "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror", "-pthread",
			"-Itestdata/standin", "src/"+name+".cpp")
	}
}

// The flags name PyTorch's own headers, and the one runtime that its libraries load.
func TestFlagsAreFound(t *testing.T) {
	needs(t, "python3")
	root := t.TempDir()
	for _, name := range []string{
		"cuda/include/cuda_runtime_api.h", "cuda/include/crt/host_defines.h", "cuda/lib64/libcudart.so.13.0.48",
		"site/torch/__init__.py", "site/torch/include/c10/cuda/CUDACachingAllocator.h", "site/torch/lib/libc10_cuda.so",
		"site/nvidia/cu13/lib/libcudart.so.13", "site/nvidia/cuda_runtime/lib/libcudart.so.12",
	} {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	cuda, packages := "CUDA_HOME="+root+"/cuda", "PYTHONPATH="+root+"/site"
	flags := strings.Fields(output(t, []string{cuda, packages}, "python3", "machine.py", "flags", "torch"))
	assert.Equal(t, []string{
		"-isystem", root + "/site/torch/include", "-isystem", root + "/cuda/include",
		"-L" + root + "/site/torch/lib", "-Wl,--no-as-needed", "-lc10_cuda", "-lc10", "-Wl,-rpath," + root + "/site/torch/lib",
		root + "/site/nvidia/cu13/lib/libcudart.so.13", "-Wl,-rpath," + root + "/site/nvidia/cu13/lib",
	}, flags)
	flags = strings.Fields(output(t, []string{cuda, packages}, "python3", "machine.py", "flags", "cuda"))
	assert.Equal(t, []string{"-isystem", root + "/cuda/include"}, flags[:2])
	assert.Contains(t, output(t, nil, "python3", "machine.py", "about"), `"cores"`)
}

func TestTables(t *testing.T) {
	needs(t, "python3")
	for golden, args := range map[string][]string{
		"testdata/table.txt": {"table.py", "testdata/rows.jsonl"},
		"testdata/table.md":  {"table.py", "-markdown", "testdata/rows.jsonl"},
	} {
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		assert.Equal(t, string(want), output(t, nil, "python3", args...))
	}
	_, stderr, code := result(t, nil, "python3", "table.py")
	assert.NotZero(t, code)
	assert.Contains(t, stderr, "table.py [-markdown] ROWS.jsonl...")
	empty := filepath.Join(t.TempDir(), "rows.jsonl")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	_, stderr, code = result(t, nil, "python3", "table.py", empty)
	assert.NotZero(t, code)
	assert.Contains(t, stderr, "no figures")
}

func TestRunSaysWhatIsMissing(t *testing.T) {
	needs(t, "bash", "python3", "timeout")
	stdout, _, code := result(t, nil, "./run.sh")
	assert.Equal(t, 2, code)
	assert.Contains(t, stdout, "run.sh scenarios")
	_, stderr, code := result(t, []string{"VRAM=/no/such/vram"}, "./run.sh", "check")
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr, "missing: the command vram")
	assert.NotContains(t, stderr, "unbound variable")
}

// The processors that are named are allowed ones, as many as were asked for where there are so many.
func TestQuietProcessors(t *testing.T) {
	t.Parallel()
	needs(t, "python3")
	for count := 1; count <= 2; count++ {
		got := strings.Split(strings.TrimSpace(output(t, nil, "python3", "machine.py", "quiet", fmt.Sprint(count))), ",")
		assert.Len(t, got, min(count, runtime.NumCPU()))
		for _, cpu := range got {
			_, err := strconv.ParseUint(cpu, 10, 16)
			assert.NoError(t, err)
		}
	}
}
