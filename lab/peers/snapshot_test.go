package peers

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/lab/replay"
	"github.com/go-vram/vram/lab/replay/recorder"
	"github.com/go-vram/vram/monitor/snapshot"
)

// The check of snapshots reads the output of a replay, and refuses snapshots that the viewer cannot read.
func TestTheCheckOfSnapshots(t *testing.T) {
	needs(t, "python3")
	standIn := []string{"PYTHONPATH=testdata/standin-viz"}
	tr, err := trace.Open("gpt2_train")
	require.NoError(t, err)
	options := replay.Options{NewDriver: func() cudadrv.Driver { return sim.New(sim.Config{}) }, Rounds: 1}
	r, err := recorder.Attach(tr, &options)
	require.NoError(t, err)
	_, err = replay.Run(t.Context(), tr, options)
	require.NoError(t, err)
	s := r.Snapshot()
	good := written(t, s)
	said := output(t, standIn, "python3", "snapshot_check.py", good)
	assert.Contains(t, said, "torch stand-in reads")

	lost := written(t, s)
	data, err := os.ReadFile(lost)
	require.NoError(t, err)
	data = append(bytes.Replace(data, []byte("\x80\x02"), []byte("\x80\x02\x88Q0"), 1), '.') // a persistent id
	require.NoError(t, os.WriteFile(lost, data, 0o600))
	refused(t, standIn, lost, "the viewer does not know BINPERSID")

	s.Traces[0] = append(s.Traces[0], snapshot.Event{Action: snapshot.FreeCompleted, Address: 1})
	refused(t, standIn, written(t, s), "it lies in no segment")
	s.Segments[0].Blocks[0].Bytes++
	refused(t, standIn, written(t, s), "a block is at")

	_, stderr, code := result(t, standIn, "python3", "snapshot_check.py")
	assert.NotZero(t, code)
	assert.Contains(t, stderr, "snapshot_check.py SNAPSHOT.pickle...")
}

func written(t *testing.T, s *snapshot.Snapshot) (path string) {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, snapshot.Write(&out, s))
	path = filepath.Join(t.TempDir(), "snapshot.pickle")
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
	return path
}

func refused(t *testing.T, env []string, path, why string) {
	t.Helper()
	_, stderr, code := result(t, env, "python3", "snapshot_check.py", path)
	assert.NotZero(t, code)
	assert.Contains(t, stderr, why)
}
