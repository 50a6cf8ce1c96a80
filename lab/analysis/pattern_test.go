package analysis_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/lab/analysis"
)

// checkSums holds a pattern against the trace: every class of every view has each allocation once.
func checkSums(t require.TestingT, tr *trace.Trace, p *analysis.Pattern) {
	count, bytes := 0, int64(0)
	for _, b := range p.Sizes.Buckets {
		require.Positive(t, b.Count)
		count, bytes = count+b.Count, bytes+b.Bytes
	}
	require.Equal(t, p.AllocCount, count)
	require.Equal(t, p.AllocatedBytes, bytes)

	l := &p.Lifetimes
	require.Equal(t, p.AllocCount, l.Short.Count+l.Step.Count+l.Long.Count+l.Held.Count)
	require.Equal(t, p.AllocatedBytes, l.Short.Bytes+l.Step.Bytes+l.Long.Bytes+l.Held.Bytes)
	require.Equal(t, p.LeftoverBytes, l.Held.Bytes)
	require.Equal(t, p.LeftoverCount, l.Held.Count)
	require.InDelta(t, 1, l.Short.OfCount+l.Step.OfCount+l.Long.OfCount+l.Held.OfCount, 1e-9)

	count, bytes = 0, 0
	for _, s := range p.Streams {
		require.LessOrEqual(t, s.PeakLiveBytes, p.PeakLiveBytes)
		count, bytes = count+s.Count, bytes+s.Bytes
	}
	require.Equal(t, p.AllocCount, count)
	require.Equal(t, p.AllocatedBytes, bytes)
	require.GreaterOrEqual(t, p.OwnPeaksOverPeak, 1-1e-9)

	count, bytes = 0, 0
	for _, s := range p.Peak.Sizes {
		count, bytes = count+s.Count, bytes+s.Bytes
	}
	require.Equal(t, p.PeakLiveBytes, bytes)
	require.Equal(t, p.Peak.Count, count)
	require.Equal(t, bytes, p.Peak.Short.Bytes+p.Peak.Step.Bytes+p.Peak.Long.Bytes+p.Peak.Held.Bytes)
	bytes = 0
	for _, b := range p.Peak.StreamBytes {
		bytes += b
	}
	require.Equal(t, p.PeakLiveBytes, bytes)

	live := analysis.Live(tr)
	require.Equal(t, p.PeakLiveBytes, live[p.Peak.Event])
	require.Equal(t, p.LeftoverBytes, live[len(live)-1])
	require.GreaterOrEqual(t, p.Churn, 1-1e-9)
	if p.Steps != nil {
		require.GreaterOrEqual(t, p.Steps.Count, 2)
		require.LessOrEqual(t, p.Steps.SameShare, 1.0)
		require.LessOrEqual(t, p.Steps.Count*p.Steps.AllocCount/2, p.AllocCount)
	}
}

// A loop that repeats to the byte is found with its length, and nothing in it grows.
func TestAPerfectLoop(t *testing.T) {
	tr := loop(t, 30, 0)
	p := analysis.Of(tr)
	checkSums(t, tr, p)
	require.NotNil(t, p.Steps)
	assert.Equal(t, 10, p.Steps.AllocCount)
	assert.Equal(t, 20, p.Steps.EventCount)
	assert.Equal(t, int64(200), p.Steps.Micros)
	assert.InDelta(t, 1, p.Steps.SameShare, 0)
	assert.True(t, p.Steps.Exact)
	assert.GreaterOrEqual(t, p.Steps.Count, 28, "all but the one at the end")
	assert.Nil(t, p.Growth)
	assert.Equal(t, int64(3*64*mib+3+55*mib), p.PeakLiveBytes)
	assert.Equal(t, 3, p.Lifetimes.Held.Count)
	assert.Equal(t, int64(64*mib+2), p.Peak.Sizes[0].EachBytes)
	assert.Equal(t, int64(55*mib), p.Peak.Step.Bytes+p.Peak.Short.Bytes)
	assert.Equal(t, 10, p.Runs.LongestLength-3, "the weights and the first step")
}

// A loop of which each step keeps a buffer grows by that buffer.
func TestALeak(t *testing.T) {
	tr := loop(t, 30, 1)
	p := analysis.Of(tr)
	checkSums(t, tr, p)
	require.NotNil(t, p.Steps)
	assert.Equal(t, 10, p.Steps.AllocCount)
	require.NotNil(t, p.Growth)
	assert.True(t, p.Growth.Steps)
	assert.Equal(t, int64(mib), p.Growth.PartBytes)
	assert.Equal(t, int64(mib), p.Growth.Sizes[0].EachBytes, "the first buffer of a step is the one that stays")
	assert.GreaterOrEqual(t, p.Growth.Sizes[0].Count, 27)
}

// Where buffers of one size alone stay, those that were gained are the difference of the two floors, whichever event a floor is at.
func TestGainsAreTheDifferenceOfTheFloors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m made
		m.alloc(rapid.Int64Range(1, 9).Draw(t, "at first"), 0)
		for range rapid.IntRange(20, 60).Draw(t, "rounds") {
			ids := []int{m.alloc(kib, 0)}
			for range rapid.IntRange(0, 3).Draw(t, "more") {
				ids = append(ids, m.alloc(kib, 0))
			}
			for range rapid.IntRange(0, 2).Draw(t, "others") {
				m.free(m.alloc(mib, 0), 0)
			}
			for _, id := range ids[1:] {
				m.free(id, 0)
			}
		}
		g := analysis.Of(m.trace(t, "leak")).Growth
		if g == nil {
			return
		}
		require.Len(t, g.Sizes, 1)
		require.EqualValues(t, kib, g.Sizes[0].EachBytes)
		require.Equal(t, g.LastBytes-g.FirstBytes, int64(g.Sizes[0].Count)*kib)
	})
}

// Neither a program's loading before its loop nor a loop that returns to its floor is growth.
func TestLoadingIsNoLeak(t *testing.T) {
	var m made
	for i := range 100 {
		m.alloc(int64(i+1)*mib, 0)
	}
	for range 300 {
		m.free(m.alloc(4*kib, 0), 0)
	}
	assert.Nil(t, analysis.Of(m.trace(t, "load")).Growth)
}

// A trace without steps may grow, too: its parts are tenths then.
func TestALeakWithoutSteps(t *testing.T) {
	var m made
	for i := range 200 {
		m.alloc(int64(i*i+1)*kib, 0)
		m.free(m.alloc(int64(i*i+2)*kib, 0), 0)
	}
	p := analysis.Of(m.trace(t, "leak"))
	assert.Nil(t, p.Steps)
	require.NotNil(t, p.Growth)
	assert.False(t, p.Growth.Steps)
	assert.Equal(t, 10, p.Growth.PartCount)
}

// One buffer may be all that there is.
func TestOneGiantBuffer(t *testing.T) {
	var m made
	m.alloc(40<<30, 0)
	tr := m.trace(t, "giant")
	p := analysis.Of(tr)
	checkSums(t, tr, p)
	assert.Nil(t, p.Steps)
	assert.Nil(t, p.Growth)
	assert.InDelta(t, 1, p.Churn, 0)
	assert.Equal(t, []analysis.Bucket{{FromBytes: 32 << 30, Share: p.Sizes.Buckets[0].Share}}, p.Sizes.Buckets)
	assert.InDelta(t, 1, p.Peak.Held.OfBytes, 0)
	assert.Zero(t, p.Lifetimes.MedianEvents)
}

// Streams have their own peaks, and buffers that other streams free are counted with their owner.
func TestManyStreams(t *testing.T) {
	var m made
	const streams = 16
	for round := range 4 {
		for s := range streams {
			id := m.alloc(mib, s)
			m.free(id, (s+round%2)%streams) // in every other round the neighbour frees it
		}
	}
	tr := m.trace(t, "streams")
	p := analysis.Of(tr)
	checkSums(t, tr, p)
	require.Len(t, p.Streams, streams)
	assert.InDelta(t, streams, p.OwnPeaksOverPeak, 1e-9, "one buffer lives at a time, and each stream has had one")
	for _, s := range p.Streams {
		assert.Equal(t, 4, s.Count)
		assert.Equal(t, 2, s.ForeignFrees)
		assert.Equal(t, int64(2*mib), s.ForeignBytes)
		assert.Equal(t, int64(mib), s.PeakLiveBytes)
	}
	assert.Equal(t, 64, p.Lifetimes.NextCount)
}

// The recorded traces have the steps that were recorded.
func TestRecordedTraces(t *testing.T) {
	for name, allocs := range map[string]int{"gpt2_train": 1433, "resnet_train": 686, "pipeline_1f1b": 2539} {
		t.Run(name, func(t *testing.T) {
			tr, err := trace.Open(name)
			require.NoError(t, err)
			p := analysis.Of(tr)
			checkSums(t, tr, p)
			require.NotNil(t, p.Steps)
			assert.Equal(t, allocs, p.Steps.AllocCount)
			assert.InDelta(t, 6, p.Steps.Count, 1, "six steps, or seven where one warms up")
			assert.Greater(t, p.Steps.SameShare, 0.9)
			assert.Nil(t, p.Growth)
		})
	}
}

// random plays a random program, whose sizes often come again.
func random(t *rapid.T) *trace.Trace {
	var m made
	streams := rapid.IntRange(1, 4).Draw(t, "streams")
	for s := range streams { // dense
		m.alloc(1, s)
	}
	var live []int
	sizes := rapid.SliceOfN(rapid.Int64Range(1, 1<<rapid.IntRange(1, 40).Draw(t, "bits")), 1, 5).Draw(t, "sizes")
	for range rapid.IntRange(0, 200).Draw(t, "events") {
		stream := rapid.IntRange(0, streams-1).Draw(t, "stream")
		if len(live) > 0 && rapid.Bool().Draw(t, "free") {
			i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
			m.free(live[i], stream)
			live = append(live[:i], live[i+1:]...)
			continue
		}
		live = append(live, m.alloc(rapid.SampledFrom(sizes).Draw(t, "size"), stream))
	}
	return m.trace(t, "random")
}

func property(t *rapid.T) {
	tr := random(t)
	checkSums(t, tr, analysis.Of(tr))
}

// The sums hold for any program.
func TestSumsHold(t *testing.T) { rapid.Check(t, property) }

// FuzzOf looks for traces over which the analysis stumbles.
func FuzzOf(f *testing.F) { f.Fuzz(rapid.MakeFuzz(property)) }

// update rewrites the texts that the tests compare.
var update = flag.Bool("update", false, "rewrite testdata")

// The text of a recorded trace, as a whole: go test ./lab/analysis -run TestText -update rewrites it.
func TestText(t *testing.T) {
	tr, err := trace.Open("pipeline_1f1b")
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, analysis.Of(tr).Write(&out))
	golden := filepath.Join("testdata", "pipeline_1f1b.txt")
	if *update {
		require.NoError(t, os.WriteFile(golden, out.Bytes(), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), out.String())
	for line := range strings.Lines(out.String()) {
		assert.LessOrEqual(t, len(line), 140)
	}
}

// The text of a trace that grows says so, and one without steps has none.
func TestTextOfGrowth(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, analysis.Of(loop(t, 30, 1)).Write(&out))
	assert.Contains(t, out.String(), "GROWS: live memory rises by 1 MiB in each step")
	assert.Contains(t, out.String(), "every step asks for the same sizes in the same order")
	out.Reset()
	var m made
	m.alloc(40<<30, 0)
	require.NoError(t, analysis.Of(m.trace(t, "giant")).Write(&out))
	assert.Contains(t, out.String(), "Steps: none that repeat")
	assert.Contains(t, out.String(), "up to a tenth")
}
