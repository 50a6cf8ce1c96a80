package kernelbench

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda/cublaslt"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fakecublaslt"
	"github.com/go-vram/vram/internal/fakecuda"
	"github.com/go-vram/vram/internal/recoveredtest"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

// A library that this machine has cannot multiply on the simulated device: its row has no figure, and all others have one.
func TestALibraryNeedsAGPU(t *testing.T) {
	driver, err := fakecuda.Build(t.TempDir())
	if errors.Is(err, fakecuda.ErrNoCompiler) {
		t.Skip(err) //nolint:forbidigo // the fakes are C
	}
	require.NoError(t, err)
	path, err := fakecublaslt.Build(t.TempDir(), driver)
	require.NoError(t, err)
	t.Setenv(cublaslt.Variable, path)
	rows, err := Run(t.Context(), Options{NewDriver: SimulatedDriver, Rows: []string{"matmul/n=512/fp32"}})
	require.NoError(t, err)
	missing := 0
	for _, r := range rows {
		if r.Missing == "" {
			assert.Positive(t, r.Micros, r.Path)
			continue
		}
		missing++
		assert.Equal(t, "library "+PathLaunched, r.Path)
		assert.Contains(t, r.Missing, "no such interface")
	}
	assert.Equal(t, 1, missing)
	assert.Greater(t, len(rows), 1)
}

// Every row is measured on the simulated device, by all paths that it has, and its results are right.
func TestEveryRow(t *testing.T) {
	t.Setenv("VRAM_CUBLASLT", "off")
	rows, err := Run(t.Context(), Options{NewDriver: SimulatedDriver})
	require.NoError(t, err)
	paths := map[string][]string{}
	for _, r := range rows {
		paths[r.Row] = append(paths[r.Row], r.Path)
		assert.True(t, r.Simulated)
		assert.Empty(t, r.Verdict)
		if r.Path == "library "+PathLaunched {
			assert.Contains(t, r.Missing, "VRAM_CUBLASLT is off")
			continue
		}
		assert.Empty(t, r.Missing, r.Row)
		assert.Positive(t, r.Micros, r.Row)
		assert.LessOrEqual(t, r.P10, r.Micros, r.Row)
		assert.GreaterOrEqual(t, r.P90, r.Micros, r.Row)
	}
	l, err := readList()
	require.NoError(t, err)
	for _, w := range l.Rows {
		want := []string{PathLaunched, PathGraph}
		switch w.Op {
		case opLaunch:
			want = []string{PathRaw, PathLaunched}
		case opStart:
			want = []string{PathLaunched}
		case opMatmul, opLinear, opLinearGelu, opLinearInputs, opLinearWeights, opLinearBlock:
			want = []string{"library " + PathLaunched, "own " + PathLaunched, "own " + PathGraph}
		}
		assert.Equal(t, want, paths[w.Row], w.Row)
		delete(paths, w.Row)
	}
	assert.Empty(t, paths)
}

// The list is one that both sides can measure: names are unique, and each small shape is of the kind of the large one.
func TestTheList(t *testing.T) {
	l, err := readList()
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, w := range l.Rows {
		assert.False(t, seen[w.Row], w.Row)
		seen[w.Row] = true
		assert.True(t, strings.HasPrefix(w.Row, w.Op), "%s begins with its operation", w.Row)
		assert.Len(t, w.Small, len(w.Shape), w.Row)
		assert.Contains(t, []string{clockWall, clockEvent}, w.Clock, w.Row)
		assert.Equal(t, w.Op == opMatmul, w.Precision != "", w.Row)
		for path := range w.Targets {
			assert.Contains(t, []string{PathLaunched, PathGraph}, path, w.Row)
		}
		if w.Source != "" {
			assert.Contains(t, l.Sources, w.Source, w.Row)
		}
		if w.Peer != "" && w.Peer != "none" {
			assert.True(t, slices.ContainsFunc(l.Rows, func(o workload) bool { return o.Row == w.Peer }), w.Row)
		}
	}
	for name := range l.Sources {
		assert.True(t, slices.ContainsFunc(l.Rows, func(w workload) bool { return w.Source == name }), name)
	}
}

func TestRowsAreChosenByTheBeginOfTheirNames(t *testing.T) {
	all := []workload{{Row: "add/n=1"}, {Row: "sum/n=1"}, {Row: "add/n=2"}}
	some, err := chosen(all, []string{"add"})
	require.NoError(t, err)
	assert.Equal(t, []workload{{Row: "add/n=1"}, {Row: "add/n=2"}}, some)
	some, err = chosen(all, nil)
	require.NoError(t, err)
	assert.Equal(t, all, some)
	_, err = chosen(all, []string{"add", "divide"})
	require.ErrorContains(t, err, `"divide"`)
	assert.Error(t, (&Options{Rows: []string{"divide"}}).Check())
}

func TestFiguresAndVerdicts(t *testing.T) {
	w := workload{Row: "add/n=1000", Op: opAdd, Clock: clockWall, Targets: map[string]float64{PathLaunched: 3}}
	var samples []sample
	for i := range 11 {
		samples = append(samples, sample{wallMicros: float64(i), eventMicros: 2 * float64(i), allocs: 0.5})
	}
	r := w.figure(PathLaunched, []int{1000}, samples)
	assert.Equal(t, Row{
		Row: "add/n=1000", Path: PathLaunched, Shape: []int{1000}, Clock: clockWall, Micros: 5, P10: 1, P90: 9, Wall: 5, Event: 10,
		AllocsPerOp: 0.5, GBPerSecond: 12000. / 5 / 1e3, TargetMicros: 3,
	}, r)
	assert.Equal(t, Short, w.judged(r, false).Verdict)
	assert.Empty(t, w.judged(r, true).Verdict, "the simulated device has no verdict")
	r.Micros = 3
	assert.Equal(t, Pass, w.judged(r, false).Verdict)
	w.Ratio = 1.1
	assert.Equal(t, Short, w.judged(r, false).Verdict, "a launch allocates nothing")
	r.AllocsPerOp = 0
	assert.Equal(t, Pass, w.judged(r, false).Verdict)
	r.Missing = "no library"
	assert.Empty(t, w.judged(r, false).Verdict)
	w.Clock = clockEvent
	assert.InDelta(t, 10, w.figure(PathGraph, []int{1000}, samples).Micros, 0)
	assert.Zero(t, w.figure(PathGraph, []int{1000}, samples).TargetMicros)

	product := workload{Op: opMatmul, Targets: map[string]float64{PathLaunched: 3}}
	r = product.figure("library "+PathLaunched, []int{100, 100, 100}, []sample{{wallMicros: 2}})
	assert.InDelta(t, 1, r.TFlops, 1e-9)
	assert.InDelta(t, 3, r.TargetMicros, 0)
}

// A result that is wrong ends the run: a figure of it would be none.
func TestAWrongResultIsAnError(t *testing.T) {
	b, err := newRig(t.Context(), Options{NewDriver: SimulatedDriver, Config: configOf(SimulatedDriver())})
	require.NoError(t, err)
	defer func() { require.NoError(t, b.close()) }()
	x, err := tensor.From(b.c, []float32{1, 2, float32(math.NaN())})
	require.NoError(t, err)
	defer func() { require.NoError(t, x.Free()) }()
	expect := func(all ...float64) error {
		return compare(x, 0.1, func(i int) (want, scale float64) { return all[i], 1 })
	}
	require.ErrorContains(t, expect(1, 2.5, 3), "element 1 is 2, and should be 2.5")
	require.ErrorContains(t, expect(1.05, 2, 3), "element 2 is NaN, and should be 3")
}

func TestACancelledRunEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	_, err := Run(ctx, Options{NewDriver: SimulatedDriver, Rows: []string{"add"}})
	require.ErrorIs(t, err, why)
}

// configOf is the configuration of a device of a driver.
func configOf(driver cudadrv.Driver) vram.Config { return vram.Config{Driver: driver} }

// A start that does not take its kernels from the store is found.
func TestAStartThatTakesNothingFromTheStoreIsAnError(t *testing.T) {
	calls := 0
	start := func(context.Context, StartOptions) (Start, error) {
		calls++
		return Start{KernelsMicros: 1, Compiled: 3}, nil
	}
	_, err := Run(t.Context(), Options{NewDriver: SimulatedDriver, Rows: []string{"start/kernels=50/stored"}, Start: start})
	require.ErrorContains(t, err, "took 0 from the store: want 3 of 3")
	assert.Equal(t, 2, calls)
	_, err = StartHere(t.Context(), configOf(nil), SimulatedDriver(), StartOptions{Kernels: 0, Threads: 1})
	require.Error(t, err)
}
