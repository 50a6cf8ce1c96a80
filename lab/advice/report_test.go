package advice_test

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/lab/advice"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

func report(t *testing.T, tr *trace.Trace) *advice.Report {
	t.Helper()
	r, err := advice.Of(t.Context(), tr)
	require.NoError(t, err)
	return r
}

// checkClaims compares the recommendations with the figures: each change has a gain and a setting to paste, and all changes
// are in the trial of the whole.
func checkClaims(t *testing.T, r *advice.Report) {
	t.Helper()
	topics := map[string]bool{}
	for _, rec := range r.Recommendations {
		topics[rec.Topic] = true
		assert.NotEmpty(t, rec.Advice, rec.Topic)
		if rec.Change {
			assert.NotEmpty(t, rec.Gain, rec.Topic)
		}
		assert.Equal(t, rec.Change, rec.Paste != "", rec.Topic)
		if rec.Change {
			assert.NotEmpty(t, rec.Because, rec.Topic)
		}
	}
	for _, topic := range []string{"footprint", "warm-up", "limit", "stream cache", "waits", "release", "pool cache", "batches"} {
		assert.True(t, topics[topic], topic)
	}
	assert.Equal(t, len(r.Settings) > 0, r.Together != nil)
	if r.Together != nil {
		assert.Zero(t, r.Together.FailedCount)
	}
	for _, m := range r.Modes {
		assert.Zero(t, m.FailedCount, m.Name)
		assert.GreaterOrEqual(t, m.PeakReservedBytes, r.Pattern.PeakLiveBytes, m.Name)
	}
	require.Len(t, r.Baselines, 2)
	plain, bySize := r.Baselines[0], r.Baselines[1]
	assert.Equal(t, plain.FirstCalls, plain.LastCalls)
	assert.Zero(t, plain.HitRate)
	assert.GreaterOrEqual(t, plain.PeakReservedBytes, r.Pattern.PeakLiveBytes)
	assert.GreaterOrEqual(t, bySize.PeakReservedBytes, plain.PeakReservedBytes)
	assert.InDelta(t, 1, bySize.HitRate, 0)
	assert.Zero(t, bySize.LastCalls)
}

// A recorded trace gets all its advice, and its drawing has the curve of reserved bytes, which is never below the live ones.
func TestARecordedTrace(t *testing.T) {
	tr := head(t, "resnet_train")
	r := report(t, tr)
	checkClaims(t, r)
	require.Len(t, r.Reserved, len(tr.Events))
	for i := range r.Reserved {
		require.GreaterOrEqual(t, r.Reserved[i], r.Live[i])
	}
	var text, svg bytes.Buffer
	require.NoError(t, r.Write(&text))
	for _, want := range []string{"resnet_train: " + strconv.Itoa(len(tr.Events)) + " events", "Allocator:", "balanced", "  plain  ", "  by size  ", "Recommendations", "warm-up: ", "since ", "Together: ", "1 % of the time counts as 10 % of the memory"} {
		assert.Contains(t, text.String(), want)
	}
	require.NoError(t, r.Chart().Write(&svg))
	assert.Contains(t, svg.String(), "reserved")
	assert.Less(t, svg.Len(), 64<<10)
}

// head is the beginning of a recorded trace.
func head(t *testing.T, name string) *trace.Trace {
	t.Helper()
	whole, err := trace.Open(name)
	require.NoError(t, err)
	var rows strings.Builder
	rows.WriteString("t_us,op,id,size,stream\n")
	for i, e := range whole.Events[:min(playedEvents, len(whole.Events))] {
		fmt.Fprintf(&rows, "%d,%v,%d,%d,%d\n", whole.Micros[i], e.Op, e.ID, e.Bytes, e.Stream)
	}
	tr, err := trace.Read(name, strings.NewReader(rows.String()))
	require.NoError(t, err)
	return tr
}

// A trace of one small buffer, and one that keeps a buffer in each step, get advice, too.
func TestMadeTraces(t *testing.T) {
	read := func(rows string) *trace.Trace {
		tr, err := trace.Read("made", strings.NewReader("t_us,op,id,size,stream\n"+rows))
		require.NoError(t, err)
		return tr
	}
	r := report(t, read("0,a,0,100,0\n"))
	checkClaims(t, r)
	assert.Zero(t, r.Modes[0].LeastLimitBytes)

	var rows strings.Builder
	for i := range 20 {
		for j := range 8 {
			row(&rows, "a", 8*i+j, int64(j+1)<<20)
		}
		for j := 1; j < 8; j++ {
			row(&rows, "f", 8*i+j, int64(j+1)<<20)
		}
	}
	r = report(t, read(rows.String()))
	last := r.Recommendations[len(r.Recommendations)-1]
	assert.Equal(t, "growth", last.Topic)
	assert.False(t, last.Change)
	assert.Contains(t, last.Because[0], "1 MiB in each step")
}

// A recording that holds little after a spike gets the advice to release the rest, and its cost.
func TestASpike(t *testing.T) {
	var rows strings.Builder
	rows.WriteString("t_us,op,id,size,stream\n")
	for i := range 8 {
		fmt.Fprintf(&rows, "%d,a,%d,%d,0\n", i, i, 64<<20)
	}
	for i := range 8 {
		fmt.Fprintf(&rows, "%d,f,%d,%d,0\n", 8+i, i, 64<<20)
	}
	for i := range 200 {
		fmt.Fprintf(&rows, "%d,a,%d,%d,0\n%d,f,%d,%d,0\n", 1000*(i+1), 8+i, 1<<20, 1000*(i+1)+500, 8+i, 1<<20)
	}
	tr, err := trace.Read("spike", strings.NewReader(rows.String()))
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) { checkSpike(t, report(t, tr)) })
}

func checkSpike(t *testing.T, r *advice.Report) {
	t.Helper()
	checkClaims(t, r)
	assert.Contains(t, r.Settings, "ReleaseAfter 1s")
	for _, rec := range r.Recommendations {
		if rec.Topic == "release" {
			assert.True(t, rec.Change)
			assert.Contains(t, rec.Gain, "instead of 512 MiB")
			assert.Equal(t, "ReleaseAfter: 1 * time.Second,", rec.Paste)
		}
	}
}

func row(b *strings.Builder, op string, id int, bytes int64) {
	b.WriteString("0," + op + "," + strconv.Itoa(id) + "," + strconv.FormatInt(bytes, 10) + ",0\n")
}

// A context that has ended ends the replays.
func TestACancelledReport(t *testing.T) {
	tr, err := trace.Open("resnet_train")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = advice.Of(ctx, tr)
	require.ErrorIs(t, err, context.Canceled)
}
