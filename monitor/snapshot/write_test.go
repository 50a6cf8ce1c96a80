package snapshot_test

import (
	"bytes"
	"encoding"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/monitor/snapshot"
)

const mib = 1 << 20

// small is a snapshot with one of everything.
func small() *snapshot.Snapshot {
	load := snapshot.Stack{{File: "/src/load.go", Line: 12, Function: "main.load"}, {File: "/src/main.go", Line: 40, Function: "main.main"}}
	step := snapshot.Stack{{File: "/src/train.go", Line: 70000, Function: "main.step"}}
	const base = 0x7f00_0000_0000
	return &snapshot.Snapshot{
		Segments: []snapshot.Segment{
			{Address: base, Bytes: 8 * mib, Expandable: true, Stack: load, Blocks: []snapshot.Block{
				{Address: base, Bytes: 4 * mib, RequestedBytes: 4*mib - 100, State: snapshot.Live, Stack: load},
				{Address: base + 4*mib, Bytes: mib, RequestedBytes: mib, State: snapshot.Pending, Stack: step},
				{Address: base + 5*mib, Bytes: 3 * mib},
			}},
			{Device: 1, Address: base, Bytes: 2 * mib, Stream: 0x5581_0000_1000, Small: true, Blocks: []snapshot.Block{
				{Address: base, Bytes: 2 * mib},
			}},
		},
		Traces: []snapshot.Trace{{
			{Action: snapshot.Map, Address: base, Bytes: 8 * mib, Micros: 1_700_000_000_000_000, Stack: load},
			{Action: snapshot.Alloc, Address: base, Bytes: 4*mib - 100, Micros: 1_700_000_000_000_001, Stack: load},
			{Action: snapshot.Alloc, Address: base + 4*mib, Bytes: mib, Stack: step},
			{Action: snapshot.Alloc, Address: base + 5*mib, Bytes: mib, Stack: step},
			{Action: snapshot.FreeRequested, Address: base + 5*mib, Bytes: mib, Stack: step},
			{Action: snapshot.FreeCompleted, Address: base + 5*mib, Bytes: mib, Stack: step},
			{Action: snapshot.FreeRequested, Address: base + 4*mib, Bytes: mib},
			{Action: snapshot.OutOfMemory, Bytes: 1 << 40, DeviceFreeBytes: 7},
			{Action: snapshot.Mark},
		}},
		Settings: []snapshot.Setting{{"allocator", "vram"}, {"limit_bytes", int64(8 * mib)}, {"expandable_segments", true}, {"seed", nil}},
	}
}

// Python reads the names and texts of PyTorch's snapshots.
func TestPythonReadsASnapshot(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here: its own reader of the format is not tried") //nolint:forbidigo // a program of others
	}
	require.NoError(t, snapshot.Check(small()))
	file := filepath.Join(t.TempDir(), "snapshot.pickle")
	var out bytes.Buffer
	require.NoError(t, snapshot.Write(&out, small()))
	require.NoError(t, os.WriteFile(file, out.Bytes(), 0o600))
	const script = `import json, pickle, sys
with open(sys.argv[1], 'rb') as f:
    v = pickle.load(f)
assert v['segments'][0]['segment_pool_id'] == (0, 0)
assert v['segments'][0]['frames'] is v['device_traces'][0][1]['frames'], 'a stack is written once'
print(json.dumps(v))`
	read, err := exec.Command(python, "-c", script, file).Output()
	require.NoError(t, err)
	want, err := os.ReadFile(filepath.Join("testdata", "small.json"))
	require.NoError(t, err)
	assert.JSONEq(t, string(want), string(read))
}

// A snapshot with numbers that mean nothing is refused.
func TestWriteRefuses(t *testing.T) {
	for name, change := range map[string]func(*snapshot.Snapshot){
		"a state":         func(s *snapshot.Snapshot) { s.Segments[0].Blocks[0].State = 9 },
		"the next state":  func(s *snapshot.Snapshot) { s.Segments[0].Blocks[0].State = snapshot.Pending + 1 },
		"an action":       func(s *snapshot.Snapshot) { s.Traces[0][0].Action = 99 },
		"the next action": func(s *snapshot.Snapshot) { s.Traces[0][0].Action = snapshot.Mark + 1 },
		"a setting":       func(s *snapshot.Snapshot) { s.Settings[0].Value = []int{1} },
		"a device":        func(s *snapshot.Snapshot) { s.Segments[0].Device = 1 << 60 },
		"the next":        func(s *snapshot.Snapshot) { s.Segments[0].Device = 1 << 10 },
	} {
		t.Run(name, func(t *testing.T) {
			s := small()
			change(s)
			require.ErrorIs(t, snapshot.Write(&bytes.Buffer{}, s), snapshot.ErrBadSnapshot)
		})
	}
	require.ErrorIs(t, snapshot.Write(full{}, small()), errFull)
	require.ErrorIs(t, snapshot.Write(&bytes.Buffer{}, nil), snapshot.ErrBadSnapshot)
}

type full struct{}

var errFull = errors.New("full")

func (full) Write([]byte) (int, error) { return 0, errFull }

// States and actions are written as the words of the format, and read again; a number without a word is written as it is.
func TestWords(t *testing.T) {
	t.Parallel()
	for s := snapshot.Free; s <= snapshot.Pending; s++ {
		var read snapshot.State
		reads(t, s, &read, read.UnmarshalText)
	}
	for a := snapshot.Alloc; a <= snapshot.Mark; a++ {
		var read snapshot.Action
		reads(t, a, &read, read.UnmarshalText)
	}
	assert.Equal(t, "active_pending_free", snapshot.Pending.String())
	assert.Equal(t, "segment_unmap", snapshot.Unmap.String())
	assert.Equal(t, "State(3)", (snapshot.Pending + 1).String())
	assert.Equal(t, "Action(9)", (snapshot.Mark + 1).String())
	for _, to := range []encoding.TextUnmarshaler{new(snapshot.State), new(snapshot.Action)} {
		require.ErrorContains(t, to.UnmarshalText([]byte("lost")), `"lost" is none of`)
	}
}

// reads writes a word, and reads it again.
func reads[T interface {
	encoding.TextMarshaler
	String() string
}](t *testing.T, value T, to *T, read func([]byte) error,
) {
	t.Helper()
	text, err := value.MarshalText()
	require.NoError(t, err)
	assert.Equal(t, value.String(), string(text))
	require.NoError(t, read(text))
	assert.Equal(t, value, *to)
}

// The empty snapshot is one.
func TestNothingIsASnapshot(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, snapshot.Write(&out, &snapshot.Snapshot{}))
	require.NoError(t, snapshot.Check(&snapshot.Snapshot{}))
	assert.Equal(t, byte('.'), out.Bytes()[out.Len()-1])
}

// Two call stacks of one list of frames are two where their lengths differ.
func TestStacksOfOneListAreTold(t *testing.T) {
	frames := snapshot.Stack{{File: "a.go", Line: 1, Function: "innermost"}, {File: "b.go", Line: 2, Function: "outermost"}}
	var out bytes.Buffer
	require.NoError(t, snapshot.Write(&out, &snapshot.Snapshot{Traces: []snapshot.Trace{{{Stack: frames[:1]}, {Stack: frames}, {Stack: frames}}}}))
	assert.Equal(t, 1, bytes.Count(out.Bytes(), []byte("outermost")), "of the longer one, which is written once")
}
