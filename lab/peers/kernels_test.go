package peers

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// kernelRow is the output of both sides.
type kernelRow struct {
	Row, Path, Clock, Missing string
	Micros                    float64 `json:"us"`
	P10                       float64 `json:"p10_us"`
	P90                       float64 `json:"p90_us"`
	Simulated                 bool
}

// Both sides measure the rows of one list, under the same names and by the same clocks, and the table has all of them.
func TestKernelsAgainstAStandin(t *testing.T) {
	needs(t, "bash", "python3", "timeout")
	standin, build, out := absolute(t, "testdata/standin-torch"), t.TempDir(), t.TempDir()
	vram := theCommand(t)
	made := output(t, []string{
		"STANDIN=" + standin, "VRAM=" + vram, "DRIVER=sim", "OUT=" + out, "BUILD=" + build, "ROUNDS=1", "VRAM_CUBLASLT=off", "CORES=0",
	}, "./run.sh", "kernels")

	text, err := os.ReadFile(filepath.Join(out, "rows-kernels.jsonl"))
	require.NoError(t, err)
	ours, theirs := map[string]string{}, map[string]string{} // the clock by row
	paths := map[string]int{}
	for _, part := range strings.Split(string(text), `{"peer":`)[1:] {
		head, body, _ := strings.Cut(part, "\n")
		assert.Contains(t, head, `"code":0`)
		switch {
		case strings.HasPrefix(head, `"vram"`):
			var rows []kernelRow
			require.NoError(t, json.Unmarshal([]byte(body), &rows))
			for _, r := range rows {
				assert.True(t, r.Simulated)
				ours[r.Row] = r.Clock
			}
		case strings.HasPrefix(head, `"torch-kernels"`):
			for i, line := range strings.Split(strings.TrimSpace(body), "\n") {
				var r kernelRow
				require.NoError(t, json.Unmarshal([]byte(line), &r), line)
				if i == 0 { // about PyTorch
					continue
				}
				paths[r.Path]++
				if r.Missing != "" {
					assert.Equal(t, "softmax/", r.Row[:8], "the stand-in lacks that form alone")
					continue
				}
				theirs[r.Row] = r.Clock
				assert.Positive(t, r.Micros, line)
				assert.LessOrEqual(t, r.P10, r.Micros, line)
				assert.GreaterOrEqual(t, r.P90, r.Micros, line)
			}
		}
	}
	for _, path := range []string{"eager", "out", "graph", "compile"} {
		assert.Positive(t, paths[path], path)
	}
	for row, clock := range ours {
		operation, _, _ := strings.Cut(row, "/")
		switch {
		case operation == "launch" || operation == "start" || strings.HasSuffix(row, "/3xtf32"):
			assert.NotContains(t, theirs, row, "PyTorch has none of it")
		default:
			assert.Equal(t, clock, theirs[row], row)
		}
		assert.Contains(t, made, "| "+row)
		delete(theirs, row)
	}
	assert.Empty(t, theirs, "rows of theirs that we have not")
	assert.Contains(t, made, "their times are no claim")
	assert.FileExists(t, filepath.Join(out, "kernels.md"))
}

func TestTheTableOfKernels(t *testing.T) {
	needs(t, "python3")
	want, err := os.ReadFile("testdata/kernels.md")
	require.NoError(t, err)
	assert.Equal(t, string(want), output(t, nil, "python3", "kernels_table.py", "testdata/kernels.jsonl"))
	_, stderr, code := result(t, nil, "python3", "kernels_table.py")
	assert.NotZero(t, code)
	assert.Contains(t, stderr, "kernels_table.py ROWS.jsonl...")
	empty := filepath.Join(t.TempDir(), "rows.jsonl")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	_, stderr, code = result(t, nil, "python3", "kernels_table.py", empty)
	assert.NotZero(t, code)
	assert.Contains(t, stderr, "no figures")
}

func TestTorchKernelsRefuseAPathThatThereIsNot(t *testing.T) {
	needs(t, "python3")
	_, stderr, code := result(t, []string{"PYTHONPATH=testdata/standin-torch"}, "python3", "torch_kernels.py", "--paths", "eager,fast")
	assert.NotZero(t, code)
	assert.Contains(t, stderr, "no path fast")
}
