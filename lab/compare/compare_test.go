package compare_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/lab/compare"
	"github.com/go-vram/vram/lab/replay"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

func simulated() cudadrv.Driver { return sim.New(sim.Config{}) }

// Each name sets its setting and leaves the others unchanged.
func TestSetups(t *testing.T) {
	base := vram.Config{Footprint: vram.Fast, ReleaseAfter: time.Second}
	s, err := compare.ParseSetup("limit=8GB, segments=plain,waits=always,cache=1MiB,pool-cache=2MiB,release=never,warm=4KiB:50+64KiB:20", base)
	require.NoError(t, err)
	assert.Equal(t, vram.Config{
		Footprint: vram.Fast, Segments: vram.SegmentsPlain, Waits: vram.WaitsAlways, StreamCacheBytes: 1 << 20, PoolCacheBytes: 2 << 20,
		ReleaseAfter: -1,
	}, s.Config)
	assert.Equal(t, replay.Limit{Bytes: 8e9}, s.Limit)
	assert.Equal(t, []vram.Demand{{Bytes: 4096, Count: 50}, {Bytes: 65536, Count: 20}}, s.Demands)
	s, err = compare.ParseSetup("footprint=lean,release=30s,limit=1.1x,warm=peak", base)
	require.NoError(t, err)
	assert.Equal(t, vram.Config{Footprint: vram.Lean, ReleaseAfter: 30 * time.Second}, s.Config)
	assert.True(t, s.Warm)
	s, err = compare.ParseSetup("", base)
	require.NoError(t, err)
	assert.Equal(t, base, s.Config)
}

// Invalid settings are refused with their name and the valid values.
func TestWrongSetups(t *testing.T) {
	for text, want := range map[string]string{
		"footprint":                     "want name=value",
		"footprint=":                    "want name=value",
		"colour=red":                    "want one of footprint, limit",
		"footprint=fat":                 "footprint=fat: want balanced, lean or fast",
		"limit=much":                    "limit=much",
		"cache=1mile":                   "cache=1mile",
		"release=soon":                  "release=soon",
		"warm=4KiB":                     "warm=4KiB",
		"waits=often":                   "waits=often",
		"segments=large":                "segments=large",
		"footprint=lean,footprint=fast": "footprint is set twice",
	} {
		_, err := compare.ParseSetup(text, vram.Config{})
		assert.ErrorContains(t, err, want, text)
	}
	for _, key := range compare.Keys() {
		_, err := compare.ParseSetup(key+"=~", vram.Config{})
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "no such name", key)
	}
}

// loop is a trace of steps that allocate more from step to step and free it all.
func loop(t *testing.T) *trace.Trace {
	t.Helper()
	var rows strings.Builder
	rows.WriteString("t_us,op,id,size,stream\n")
	for step := range 6 {
		for i := range 20 {
			rows.WriteString(row("a", 20*step+i, (step+1)<<20))
		}
		for i := range 20 {
			rows.WriteString(row("f", 20*step+i, (step+1)<<20))
		}
	}
	tr, err := trace.Read("loop", strings.NewReader(rows.String()))
	require.NoError(t, err)
	return tr
}

func row(op string, id, bytes int) string {
	return strings.Join([]string{"0", op, strconv.Itoa(id), strconv.Itoa(bytes), "0"}, ",") + "\n"
}

// Both sides are played, in turns, with their own setups.
func TestTwoSides(t *testing.T) {
	tr := loop(t)
	var order []string
	setup := func(name, text string) compare.Setup {
		s, err := compare.ParseSetup(text, vram.Config{})
		require.NoError(t, err)
		s.Config.OnOutOfMemory = func(*vram.OutOfMemoryError) bool {
			if len(order) == 0 || order[len(order)-1] != name {
				order = append(order, name)
			}
			return false
		}
		return s
	}
	a, b := setup("a", "limit=64MiB"), setup("b", "limit=32MiB,footprint=lean")
	r, err := compare.Run(t.Context(), tr, a, b, compare.Options{NewDriver: simulated, Repetitions: 3, Rounds: 2})
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b", "a", "b", "a", "b"}, order)
	assert.Equal(t, "limit=64MiB", r.A.Setup)
	assert.Equal(t, int64(120<<20), r.PeakLiveBytes)
	assert.LessOrEqual(t, r.A.PeakReservedBytes, int64(64<<20))
	assert.LessOrEqual(t, r.B.PeakReservedBytes, int64(32<<20))
	assert.Greater(t, r.B.FailedCount, r.A.FailedCount)
	assert.Positive(t, r.A.FailedCount)
	for _, s := range []*compare.Side{&r.A, &r.B} {
		served := s.Hits.Magazine + s.Hits.Stream + s.Hits.Pool + s.Hits.Driver
		assert.Equal(t, uint64(120-s.FailedCount/3/2), served, "of the last round")
		assert.LessOrEqual(t, s.WarmNs.Least, s.WarmNs.Median)
		assert.LessOrEqual(t, s.WarmNs.Median, s.WarmNs.Most)
		assert.Positive(t, s.ColdNs.Least)
	}
	require.Len(t, r.Baselines, 2)
	plain, bySize := r.Baselines[0], r.Baselines[1]
	assert.Equal(t, int64(120<<20), plain.PeakReservedBytes)
	assert.Equal(t, int64(20*(1+2+4+4+6+6)<<20), bySize.PeakReservedBytes, "in whole pages")
	assert.Equal(t, uint64(240), plain.Rounds[1].DriverCalls)
	assert.Equal(t, uint64(120), bySize.Rounds[0].DriverCalls)
	assert.Zero(t, bySize.Rounds[1].DriverCalls)
	assert.Equal(t, uint64(120), bySize.Rounds[1].Hits)
	assert.Equal(t, 6, bySize.SizeCount)
}

// Settings that need kernels before the frees or pauses between rounds have them, and show an effect.
func TestWhatNeedsKernelsOrPauses(t *testing.T) {
	tr, err := trace.Open("pipeline_1f1b")
	require.NoError(t, err)
	never, err := compare.ParseSetup("waits=never", vram.Config{})
	require.NoError(t, err)
	always, err := compare.ParseSetup("waits=always", vram.Config{})
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		o := compare.Options{NewDriver: simulated, Repetitions: 1, Rounds: 2, Lag: 5 * time.Millisecond}
		r, err := compare.Run(t.Context(), tr, never, always, o)
		require.NoError(t, err)
		assert.False(t, r.Identical)
		assert.NotEqual(t, r.A.FirstDriverCalls, r.B.FirstDriverCalls, "a request that waits for events takes less new memory")
	})

	synctest.Test(t, func(t *testing.T) {
		soon, err := compare.ParseSetup("release=200ms", vram.Config{})
		require.NoError(t, err)
		o := compare.Options{NewDriver: simulated, Repetitions: 1, Rounds: 2, Rest: 5 * time.Second}
		r, err := compare.Run(t.Context(), loop(t), compare.Setup{}, soon, o)
		require.NoError(t, err)
		assert.False(t, r.Identical)
		assert.Greater(t, r.B.LastDriverCalls, r.A.LastDriverCalls, "it has released and taken again")
	})
	r, err := compare.Run(t.Context(), loop(t), compare.Setup{}, always, compare.Options{NewDriver: simulated, Repetitions: 1, Rounds: 2, Gap: time.Nanosecond})
	require.NoError(t, err)
	assert.NotNil(t, r.A.Paced)
}

// Two configurations without a visible difference are reported as identical, with a hint how to show one.
func TestTheSameTwice(t *testing.T) {
	a, err := compare.ParseSetup("waits=never", vram.Config{})
	require.NoError(t, err)
	b, err := compare.ParseSetup("waits=always, release=1s,pool-cache=1MiB", vram.Config{})
	require.NoError(t, err)
	o := compare.Options{NewDriver: simulated, Repetitions: 1, Rounds: 2}
	synctest.Test(t, func(t *testing.T) { // no tick releases memory in one of them
		r, err := compare.Run(t.Context(), loop(t), a, a, o)
		require.NoError(t, err)
		assert.True(t, r.Identical)
	})
	hints := strings.Join(compare.Unseen(&a, &b, &o), "\n")
	for _, want := range []string{"--lag", "release needs", "pool-cache needs", "--rest"} {
		assert.Contains(t, hints, want)
	}
	o.Lag, o.Rest = time.Millisecond, time.Second
	assert.Empty(t, compare.Unseen(&a, &b, &o))
}

// A side that cannot be played is named, and so is a number of repetitions that is none.
func TestErrors(t *testing.T) {
	tr := loop(t)
	wrong, err := compare.ParseSetup("limit=1", vram.Config{})
	require.NoError(t, err)
	o := compare.Options{NewDriver: simulated, Repetitions: 1, Rounds: 2}
	_, err = compare.Run(t.Context(), tr, compare.Setup{}, wrong, o)
	require.ErrorContains(t, err, `"limit=1"`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = compare.Run(ctx, tr, compare.Setup{}, compare.Setup{}, o)
	require.ErrorIs(t, err, context.Canceled)
	_, err = compare.Run(t.Context(), tr, compare.Setup{}, compare.Setup{}, compare.Options{NewDriver: simulated, Rounds: 2})
	require.ErrorContains(t, err, "0 repetitions")
}
