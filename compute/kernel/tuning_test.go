package kernel_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/kernel/tune"
	"github.com/go-vram/vram/compute/kernel/tune/tables"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
)

// times maps names of schedules to times; others take a microsecond.
type times map[string]time.Duration

func (t times) of(s plan.Schedule) time.Duration {
	if d, ok := t[s.String()]; ok {
		return d
	}
	return time.Microsecond
}

const (
	rule    = "block=256 vector=4"          // of 4000 float32 that are neighbours
	fast    = "block=128 vector=4 repeat=2" // one that the rule does not take
	faster  = "block=128 vector=8"
	entries = 4000
)

// small takes little of the simulated device.
func small(t kernel.Tuning) kernel.Tuning {
	t.RotateBytes = 1 << 16
	if t.Limit == 0 {
		t.Limit = time.Hour // the interpreter is slow
	}
	return t
}

// logged is a log that a test reads.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) Warn(msg string, about ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, msg+fmt.Sprint(about...))
}

func (l *logged) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// negation is a kernel with tensors, and the check of its result.
type negation struct {
	*rig

	k    *kernel.Kernel
	x, y *tensor.Tensor
}

func newNegation(tb testing.TB, with ...kernel.Option) *negation {
	tb.Helper()
	r := newRig(tb, with...)
	return r.negation()
}

func (r *rig) negation() *negation {
	r.Helper()
	k, err := r.kernels.Elementwise(expr.Input(0, tensor.Float32).Neg())
	require.NoError(r, err)
	return &negation{r, k, r.normal(1, entries), r.made(tensor.Float32, entries)}
}

// runs runs the kernel, and looks at the result and the number of threads of a block.
func (n *negation) runs(blockThreads uint32) {
	n.Helper()
	profile, err := n.c.StartProfile()
	require.NoError(n, err)
	require.NoError(n, n.k.Run(n.c, outs(n.y), n.x))
	launched, err := profile.Stop()
	require.NoError(n, err)
	require.NotEmpty(n, launched) // a measurement may be before it
	assert.Equal(n, blockThreads, launched[len(launched)-1].Geometry.Block.X)
	n.right()
}

func (n *negation) right() {
	n.Helper()
	got, err := tensor.Read[float32](n.y)
	require.NoError(n, err)
	for i, v := range normal(1, entries) {
		require.Equal(n, -v, got[i])
	}
}

// tunes measures the variants, in any mode.
func (n *negation) tunes() []tune.Row {
	n.Helper()
	rows, err := n.k.Tune(context.Background(), outs(n.y), n.x)
	require.NoError(n, err)
	return rows
}

func find(tb testing.TB, rows []tune.Row, variant string) tune.Row {
	tb.Helper()
	for _, r := range rows {
		if r.Variant == variant {
			return r
		}
	}
	require.Fail(tb, "no such variant", "%s of %v", variant, rows)
	return tune.Row{}
}

func TestTheFastestVariantIsTaken(t *testing.T) {
	n := newNegation(t, kernel.WithTuning(small(kernel.Tuning{})), kernel.WithClock(times{fast: 900, faster: 800}.of))
	n.runs(256)
	rows := n.tunes()
	assert.Equal(t, time.Duration(800), find(t, rows, faster).Median)
	assert.True(t, find(t, rows, rule).Reference)
	n.runs(128)
	text, err := n.k.Text(n.x.Layout(), n.y.Layout())
	require.NoError(t, err)
	assert.Contains(t, text, ".maxntid 128")
	stats := n.kernels.Stats()
	assert.Equal(t, [3]int64{1, 0, 0}, [3]int64{stats.Tuned, stats.Disqualified, stats.TuningFailed})
	assert.Positive(t, stats.TuningTime)

	// Another size of the class takes it, too, and another class does not.
	x, y := n.normal(1, 2052), n.made(tensor.Float32, 2052)
	text, err = n.k.Text(x.Layout(), y.Layout())
	require.NoError(t, err)
	assert.Contains(t, text, ".maxntid 128")
	require.NoError(t, n.k.Run(n.c, outs(y), x))
	text, err = n.k.Text(n.normal(1, 1024).Layout(), n.made(tensor.Float32, 1024).Layout())
	require.NoError(t, err)
	assert.Contains(t, text, ".maxntid 256")
}

func TestATieKeepsTheRule(t *testing.T) {
	n := newNegation(t, kernel.WithTuning(small(kernel.Tuning{})), kernel.WithClock(times{fast: 990}.of))
	n.tunes()
	n.runs(256)
}

// lied is a store that has other code for some texts.
type lied func(text string) (other string, ok bool)

func (l lied) Get(text string) ([]byte, bool) {
	other, ok := l(text)
	return []byte(other), ok
}

func (l lied) Put(string, []byte) {}

// plantedIn is a store whose code of the variants with so many threads of a block is wrong.
func plantedIn(blockThreads int, old, other string) lied {
	return func(text string) (string, bool) {
		if strings.Contains(text, fmt.Sprintf(".maxntid %d,", blockThreads)) {
			return strings.ReplaceAll(text, old, other), true
		}
		return "", false
	}
}

// A variant that computes something else is never taken, however fast it is, and everybody is told.
func TestAWrongVariantIsDisqualified(t *testing.T) {
	log := &logged{}
	n := newNegation(t, kernel.WithStore(plantedIn(128, "neg.f32", "abs.f32")), kernel.WithLog(log),
		kernel.WithTuning(small(kernel.Tuning{})), kernel.WithClock(times{fast: 100, faster: 100, "block=512 vector=4": 500}.of))
	rows, err := n.k.Tune(t.Context(), outs(n.y), n.x)
	var wrong *kernel.DisqualifiedError
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, tune.Wrong, find(t, wrong.Rows, faster).State)
	assert.Contains(t, err.Error(), faster+" is wrong: output 0 differs at byte")
	assert.Equal(t, tune.Verified, find(t, rows, rule).State)
	for _, r := range wrong.Rows {
		assert.Contains(t, r.Variant, "block=128")
		assert.Contains(t, log.all(), r.Variant)
	}
	assert.Equal(t, int64(len(wrong.Rows)), n.kernels.Stats().Disqualified)
	assert.Greater(t, len(wrong.Rows), 3)
	n.runs(512)
	assert.Contains(t, n.kernels.Tuned().String(), `state=wrong variant="block=128 vector=8" why="output 0 differs`)
}

// A variant that is wrong about any of its inputs, with any of the values that the first and the second set have, is found: each input has
// values in each.
func TestAVariantThatIsWrongAboutOneInput(t *testing.T) {
	const length = 1024
	for number := range 3 {
		for name, old := range map[string][2]string{"negative numbers": {"neg.f32", "abs.f32"}, "fractions": {"cvt.rmi.f32.f32", "mov.b32"}} {
			r := newRig(t, kernel.WithStore(plantedIn(128, old[0], old[1])), kernel.WithTuning(small(kernel.Tuning{})), kernel.WithClock(times{}.of))
			sum := expr.Input(number, tensor.Float32)
			if sum = sum.Neg(); name == "fractions" {
				sum = expr.Input(number, tensor.Float32).Floor()
			}
			var in []*tensor.Tensor
			for other := range 3 {
				if in = append(in, r.normal(1, length)); other != number {
					sum = sum.Add(expr.Input(other, tensor.Float32))
				}
			}
			k, err := r.kernels.Elementwise(sum)
			require.NoError(t, err)
			_, err = k.Tune(t.Context(), outs(r.made(tensor.Float32, length)), in...)
			var wrong *kernel.DisqualifiedError
			require.ErrorAs(t, err, &wrong, "%s of input %d", name, number)
		}
	}
}

// Sums that are added in another order differ, and are no mistake; a part that is left out is one.
func TestAWrongSumIsDisqualified(t *testing.T) {
	for name, c := range map[string]struct {
		store kernel.Option
		wrong bool
	}{
		"right":             {kernel.WithStore(lied(func(string) (string, bool) { return "", false })), false},
		"no sum of threads": {kernel.WithStore(plantedIn(512, "shfl.sync.bfly.b32", "shfl.sync.idx.b32")), true},
	} {
		r := newRig(t, c.store, kernel.WithTuning(small(kernel.Tuning{})), kernel.WithClock(times{}.of))
		k, err := r.kernels.Reduction([]int{-1}, expr.Input(0, tensor.Float32).Mul(expr.Number(0.7)).Sum())
		require.NoError(t, err)
		rows, err := k.Tune(t.Context(), outs(r.made(tensor.Float32, 3, 1)), r.normal(1, 3, 520))
		assert.Greater(t, len(rows), 10)
		assert.Equal(t, c.wrong, err != nil, "%s: %v", name, err)
	}
}

// A variant that writes no results is found: it does not pass with the results of the variant before it.
func TestAVariantThatWritesNothingIsDisqualified(t *testing.T) {
	stores := regexp.MustCompile(`(?m)^.*st\.global.*$`)
	n := newNegation(t, kernel.WithTuning(small(kernel.Tuning{})), kernel.WithClock(times{faster: 100}.of),
		kernel.WithStore(lied(func(text string) (string, bool) {
			return stores.ReplaceAllString(text, ""), strings.Contains(text, ".maxntid 128,")
		})))
	rows, err := n.k.Tune(t.Context(), outs(n.y), n.x)
	var wrong *kernel.DisqualifiedError
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, tune.Wrong, find(t, rows, faster).State)
	n.runs(256)
}

// Operands that begin at any place of a vector, have one byte, or have none, are measured: all variants are right.
func TestSmallAndShiftedOperandsAreMeasured(t *testing.T) {
	r := newRig(t, kernel.WithTuning(small(kernel.Tuning{})), kernel.WithClock(times{}.of))
	tunes := func(k *kernel.Kernel, outputs []*tensor.Tensor, in *tensor.Tensor) {
		t.Helper()
		rows, err := k.Tune(t.Context(), outputs, in)
		require.NoError(t, err)
		assert.Greater(t, len(rows), 1)
	}
	x := expr.Input(0, tensor.Float32)
	for shift := range 4 {
		for shiftOut := range 4 {
			sum, err := r.kernels.Reduction([]int{-1}, x.Mul(expr.Number(0.7)).Sum()) // its last bits depend on the order
			require.NoError(t, err)
			in, err := r.normal(1, 3*520+4).Narrow(0, shift, 3*520)
			require.NoError(t, err)
			in, err = in.Reshape(3, 520)
			require.NoError(t, err)
			out, err := r.made(tensor.Float32, 8).Narrow(0, shiftOut, 3)
			require.NoError(t, err)
			tunes(sum, outs(out), in)
		}
	}
	oneByte, err := r.kernels.Elementwise(expr.Input(0, tensor.Uint8).Add(expr.Number(1)))
	require.NoError(t, err)
	tunes(oneByte, outs(r.made(tensor.Uint8, 1)), r.made(tensor.Uint8, 1))
	both, err := r.kernels.Reduction([]int{-1}, x.Sum(), x.Sub(x.Sum()))
	require.NoError(t, err)
	tunes(both, outs(r.made(tensor.Float32, 3), r.made(tensor.Float32, 3, 0)), r.made(tensor.Float32, 3, 0))
}

func TestResultsAreCompared(t *testing.T) {
	floats := func(all ...float32) (b []byte) {
		for _, x := range all {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		return b
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	want := floats(7, 1000, -1, nan, inf, 9)
	for _, c := range []struct {
		name  string
		got   []byte
		exact bool
		same  bool
	}{
		{"equal", floats(7, 1000, -1, nan, inf, 9), true, true},
		{"another last bit", floats(7, 1000.0001, -1, nan, inf, 9), true, false},
		{"a rounded sum", floats(7, 1000.0001, -1.05, nan, inf, 9), false, true},
		{"beyond the bound", floats(7, 1000, -1.07, nan, inf, 9), false, false},
		{"a number for NaN", floats(7, 1000, -1, 0, inf, 9), false, false},
		{"NaN for a number", floats(7, nan, -1, nan, inf, 9), false, false},
		{"another infinity", floats(7, 1000, -1, nan, -inf, 9), false, false},
		{"the bytes before", floats(7.0001, 1000, -1, nan, inf, 9), false, false},
		{"the bytes behind", floats(7, 1000, -1, nan, inf, 9.0001), false, false},
	} {
		err := kernel.Same(tensor.Float32, want, c.got, 4, 20, c.exact)
		assert.Equal(t, c.same, err == nil, "%s: %v", c.name, err)
	}
	whole := []byte{100, 0, 0, 0, 0xa5, 0xa5, 0xa5, 0xa5}
	require.NoError(t, kernel.Same(tensor.Int32, whole, []byte{101, 0, 0, 0, 0xa5, 0xa5, 0xa5, 0xa5}, 0, 8, false))
	require.Error(t, kernel.Same(tensor.Int32, whole, []byte{102, 0, 0, 0, 0xa5, 0xa5, 0xa5, 0xa5}, 0, 8, false))
	bf := func(x float32) []byte { return binary.LittleEndian.AppendUint32(nil, math.Float32bits(x))[2:] }
	require.NoError(t, kernel.Same(tensor.BFloat16, bf(1), bf(1.0078125), 0, 2, false))
	require.Error(t, kernel.Same(tensor.BFloat16, bf(1), bf(1.015625), 0, 2, false))
}

func TestTheFirstRunMeasures(t *testing.T) {
	var asked atomic.Int64
	clock := func(s plan.Schedule) time.Duration {
		asked.Add(1)
		return times{faster: 100}.of(s)
	}
	n := newNegation(t, kernel.WithTuning(small(kernel.Tuning{Mode: kernel.TuneNow})), kernel.WithClock(clock))
	n.runs(128)
	assert.Equal(t, int64(1), n.kernels.Stats().Tuned)
	first := asked.Load()
	n.runs(128)
	assert.Equal(t, first, asked.Load())
}

// A Run in a capture takes the rule and measures nothing; the next one outside does.
func TestNothingIsMeasuredInACapture(t *testing.T) {
	n := newNegation(t, kernel.WithTuning(small(kernel.Tuning{Mode: kernel.TuneNow})), kernel.WithClock(times{faster: 100}.of))
	_, err := n.k.Prepare(outs(n.y), n.x).Await(t.Context())
	require.NoError(t, err)
	require.NoError(t, n.y.Allocate())
	var refused error
	g, err := n.c.Capture(func() error {
		_, refused = n.k.Tune(t.Context(), outs(n.y), n.x)
		return n.k.Run(n.c, outs(n.y), n.x)
	})
	require.NoError(t, err)
	require.ErrorIs(t, refused, cuda.ErrCapturing)
	stats := n.kernels.Stats()
	assert.Equal(t, [3]int64{0, 1, 1}, [3]int64{stats.Tuned, stats.TuningFailed, stats.TuningDeferred})
	assert.Equal(t, uint32(256), g.Kernels()[0].Geometry.Block.X)
	require.NoError(t, g.Launch(n.c))
	n.right()
	require.NoError(t, g.Close())
	n.runs(128)
	assert.Equal(t, int64(1), n.kernels.Stats().Tuned)
}

// During a measurement runs take the rule; a later one takes the winner.
func TestMeasurementsAside(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	clock := func(s plan.Schedule) time.Duration {
		once.Do(func() { close(begun); <-goOn })
		return times{faster: 100}.of(s)
	}
	r := newRig(t)
	aside := r.context()
	kernels, err := kernel.NewCompiler(r.c, kernel.WithTuning(small(kernel.Tuning{Mode: kernel.TuneAside, On: aside})), kernel.WithClock(clock))
	require.NoError(t, err)
	defer func() {
		require.NoError(t, r.c.Synchronize(t.Context()))
		require.NoError(t, kernels.Close())
	}()
	r.kernels, kernels = kernels, r.kernels
	n := r.negation()
	r.kernels, kernels = kernels, r.kernels
	n.runs(256)
	<-begun
	n.runs(256)
	assert.Equal(t, int64(0), kernels.Stats().Tuned)
	close(goOn)
	kernels.AwaitTuning()
	assert.Equal(t, int64(1), kernels.Stats().Tuned)
	n.runs(128)
}

// Runs of many goroutines are right while measurements end.
func TestRunsWhileVariantsChange(t *testing.T) {
	r := newRig(t)
	kernels, err := kernel.NewCompiler(r.c, kernel.WithTuning(small(kernel.Tuning{Mode: kernel.TuneAside, On: r.context()})), kernel.WithClock(times{faster: 100}.of))
	require.NoError(t, err)
	k, err := kernels.Elementwise(expr.Input(0, tensor.Float32).Neg())
	require.NoError(t, err)
	var wg sync.WaitGroup
	for g := range 3 {
		c := r.context()
		wg.Go(func() {
			for i := range 12 {
				entries := 1024 + 256*((g+i)%4)
				values := normal(uint64(i), entries)
				x, err := tensor.From(c, values, entries)
				assert.NoError(t, err)
				y, err := tensor.New(c, tensor.Float32, entries)
				assert.NoError(t, err)
				assert.NoError(t, k.Run(c, outs(y), x))
				got, err := tensor.Read[float32](y)
				assert.NoError(t, err)
				for j := range got {
					if got[j] != -values[j] {
						assert.Equal(t, -values[j], got[j])
						break
					}
				}
				assert.NoError(t, x.Free())
				assert.NoError(t, y.Free())
			}
		})
	}
	wg.Wait()
	kernels.AwaitTuning()
	assert.Equal(t, int64(1), kernels.Stats().Tuned)
	require.NoError(t, r.c.Synchronize(t.Context()))
	require.NoError(t, kernels.Close())
}

func TestAMeasurementIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var asked atomic.Int64
	n := newNegation(t, kernel.WithTuning(small(kernel.Tuning{})), kernel.WithClock(func(plan.Schedule) time.Duration {
		if asked.Add(1) == 7 {
			cancel()
		}
		return 1
	}))
	_, err := n.k.Tune(ctx, outs(n.y), n.x)
	require.ErrorIs(t, err, context.Canceled)
	n.kernels.AwaitTuning()
	assert.Equal(t, int64(7), asked.Load())
	n.runs(256)
	stats := n.kernels.Stats()
	assert.Equal(t, [2]int64{0, 1}, [2]int64{stats.Tuned, stats.TuningFailed})
	_, err = n.k.Tune(nil, outs(n.y), n.x) //nolint:staticcheck // the test is about this
	require.ErrorIs(t, err, cuda.ErrNilContext)
}

// A measurement that ends its goroutine, as a logger may, is an error, and the next one is made.
func TestAMeasurementThatEndsItsGoroutine(t *testing.T) {
	var asked atomic.Int64
	n := newNegation(t, kernel.WithTuning(small(kernel.Tuning{})), kernel.WithClock(func(s plan.Schedule) time.Duration {
		if asked.Add(1) == 3 {
			runtime.Goexit()
		}
		return times{faster: 100}.of(s)
	}))
	_, err := n.k.Tune(t.Context(), outs(n.y), n.x)
	require.EqualError(t, err, "kernel: the work ended its goroutine")
	n.kernels.AwaitTuning()
	_, err = n.k.Tune(t.Context(), outs(n.y), n.x)
	require.NoError(t, err)
	n.runs(128)
	assert.Equal(t, int64(1), n.kernels.Stats().Tuned)
}

// Close ends the running measurement and the queued ones.
func TestCloseEndsMeasurements(t *testing.T) {
	r := newRig(t)
	begun := make(chan struct{})
	var once sync.Once
	var kernels *kernel.Compiler
	kernels, err := kernel.NewCompiler(r.c, kernel.WithTuning(small(kernel.Tuning{On: r.context()})), kernel.WithClock(func(plan.Schedule) time.Duration {
		once.Do(func() { close(begun); kernels.AwaitClosing() })
		return 1
	}))
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 2 {
		k, err := kernels.Elementwise(expr.Input(0, tensor.Float32).Neg())
		require.NoError(t, err)
		x, y := r.normal(1, entries), r.made(tensor.Float32, entries)
		wg.Go(func() {
			_, err := k.Tune(context.WithoutCancel(t.Context()), outs(y), x)
			assert.Error(t, err)
		})
	}
	<-begun
	require.NoError(t, kernels.Close())
	wg.Wait()
	assert.Equal(t, int64(0), kernels.Stats().Tuned)
}

// Measured rows are kept as text, and chooses in a later process, on the same kind of device alone.
func TestTablesChoose(t *testing.T) {
	n := newNegation(t, kernel.WithTuning(small(kernel.Tuning{})), kernel.WithClock(times{faster: 100}.of))
	n.tunes()
	text := n.kernels.Tuned().String()
	read := func(old, other string) *tune.Table {
		require.Contains(t, text, old)
		table, err := tune.Parse(strings.Replace(text, old, other, 1))
		require.NoError(t, err)
		return table
	}
	never := kernel.WithClock(func(plan.Schedule) time.Duration { t.Error("something is measured"); return 1 })
	for _, c := range []struct {
		name         string
		table        *tune.Table
		blockThreads uint32
		tabled       int64
		stale        int64
	}{
		{"the same", read("device", "device"), 128, 1, 0},
		{"another device", read(`device compute=9.0 name="`, `device compute=9.0 name="another `), 256, 0, 0},
		{"another capability", read("device compute=9.0", "device compute=8.6"), 256, 0, 0},
		{"another kernel", read("neg(float32[0])", "abs(float32[0])"), 256, 0, 0},
		{"another class", read("cols=12", "cols=13"), 256, 0, 0},
		{"other code", read(codeOf(t, text, faster), "0123456789ab"), 256, 0, 1},
		{"no table", nil, 256, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNegation(t, kernel.WithTables(nil, c.table), never)
			n.runs(c.blockThreads)
			stats := n.kernels.Stats()
			assert.Equal(t, [2]int64{c.tabled, c.stale}, [2]int64{stats.Tabled, stats.StaleRows})
		})
	}
	t.Run("a table is preferred to a measurement", func(t *testing.T) {
		n := newNegation(t, kernel.WithTables(read("device", "device")), never, kernel.WithTuning(kernel.Tuning{Mode: kernel.TuneNow}))
		n.runs(128)
	})
	t.Run("rows of other code are measured anew", func(t *testing.T) {
		n := newNegation(t, kernel.WithTables(read(codeOf(t, text, faster), "0123456789ab")), kernel.WithTuning(small(kernel.Tuning{Mode: kernel.TuneNow})),
			kernel.WithClock(times{"block=512 vector=4": 100}.of))
		n.runs(512)
	})
}

// codeOf is the hash in a variant's row.
func codeOf(t *testing.T, text, variant string) string {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.Contains(line, `"`+variant+`"`) {
			_, rest, _ := strings.Cut(line, "code=")
			code, _, _ := strings.Cut(rest, " ")
			return code
		}
	}
	require.Fail(t, "no row")
	return ""
}

// The device's own clock is used where a test gives none.
func TestMeasurementsOnTheDevice(t *testing.T) {
	n := newNegation(t, kernel.WithTuning(small(kernel.Tuning{Rounds: 1})))
	for _, r := range n.tunes() {
		assert.Equal(t, tune.Verified, r.State)
		assert.Positive(t, r.Rounds)
		assert.Positive(t, r.Median)
	}
}

// Rows that are split are measured with scratch memory of their own.
func TestSplitRowsAreMeasured(t *testing.T) {
	const entries = 8192
	r := newRig(t, kernel.WithTuning(small(kernel.Tuning{})), kernel.WithClock(times{"lanes=256 block=256 vector=8 split=264": 100}.of))
	total, err := r.kernels.Reduction(plan.All, expr.Input(0, tensor.Float32).Sum())
	require.NoError(t, err)
	s, x := r.made(tensor.Float32), r.normal(3, entries)
	rows, err := total.Tune(t.Context(), outs(s), x)
	require.NoError(t, err)
	assert.Greater(t, len(rows), 10)
	text, err := total.Text(x.Layout(), s.Layout())
	require.NoError(t, err)
	assert.Contains(t, text, "pass0")
	require.NoError(t, total.Run(r.c, outs(s), x))
	got, err := tensor.Item[float32](s)
	require.NoError(t, err)
	want := 0.0
	for _, v := range normal(3, entries) {
		want += float64(v)
	}
	assert.InDelta(t, want, got, 1e-2)
}

func TestBoundsOfMeasurements(t *testing.T) {
	log := &logged{}
	for want, with := range map[error]kernel.Tuning{
		kernel.ErrTuningTime:   {Limit: 1},
		kernel.ErrTuningMemory: {MemoryBytes: 4 * entries},
	} {
		with.Mode = kernel.TuneNow
		n := newNegation(t, kernel.WithTuning(small(with)), kernel.WithLog(log), kernel.WithClock(times{faster: 100}.of))
		n.runs(256)
		n.runs(256)
		assert.Equal(t, int64(1), n.kernels.Stats().TuningFailed, "Run does not repeat it")
		_, err := n.k.Tune(t.Context(), outs(n.y), n.x)
		require.ErrorIs(t, err, want)
		assert.Contains(t, log.all(), want.Error())
	}
}

func TestTuningIsRefused(t *testing.T) {
	r := newRig(t)
	_, err := kernel.NewCompiler(r.c, kernel.WithTuning(kernel.Tuning{Mode: kernel.TuneAside}))
	require.ErrorIs(t, err, kernel.ErrTuningStream)
	_, err = kernel.NewCompiler(r.c, kernel.WithTuning(kernel.Tuning{Mode: kernel.TuneAside, On: r.c}))
	require.ErrorIs(t, err, kernel.ErrTuningStream)
	_, err = kernel.NewCompiler(r.c, kernel.WithTuning(kernel.Tuning{On: &cuda.Context{}}))
	require.ErrorIs(t, err, kernel.ErrNotOpen)
	var none *kernel.Kernel
	_, err = none.Tune(t.Context(), nil)
	require.ErrorIs(t, err, kernel.ErrNotOpen)

	n := newNegation(t, kernel.Prepared(), kernel.WithTuning(kernel.Tuning{Mode: kernel.TuneNow}), kernel.WithClock(times{}.of))
	require.ErrorIs(t, n.k.Run(n.c, outs(n.y), n.x), kernel.ErrNotPrepared)
	assert.Equal(t, int64(0), n.kernels.Stats().Tuned)
	_, err = n.k.Tune(t.Context(), outs(n.y), n.made(tensor.Float64, entries))
	var types *tensor.TypeError
	require.ErrorAs(t, err, &types)
	rows, err := n.k.Tune(t.Context(), outs(n.made(tensor.Float32, 0)), n.made(tensor.Float32, 0))
	require.NoError(t, err)
	assert.Empty(t, rows, "there is nothing to compute")
}

// Layouts beyond those whose geometry is kept take the winner, too, and allocate nothing.
func TestManyLayoutsTakeTheWinner(t *testing.T) {
	r := newRigOn(t, launching(t), kernel.WithTables(), kernel.WithTuning(small(kernel.Tuning{})))
	k, err := r.kernels.Elementwise(expr.Input(0, tensor.Float32).Neg())
	require.NoError(t, err)
	var all []layout.Layout
	for i := range 12 {
		x, y := r.normal(1, 2048+8*i), r.made(tensor.Float32, 2048+8*i)
		all = append(all, x.Layout())
		require.NoError(t, k.Run(r.c, outs(y), x))
		if i == 11 {
			base := testing.AllocsPerRun(100, func() { _ = cuda.Part })
			assert.LessOrEqual(t, testing.AllocsPerRun(100, func() {
				if err := k.Run(r.c, []*tensor.Tensor{y}, x); err != nil {
					t.Error(err)
				}
			}), base+runAllocs)
		}
	}
	assert.Len(t, all, 12)
}

// The table of a device has rows of the kernels as they are: their hashes leave out the names that profiles show.
func TestTheTableHasTheCodeThatThereIs(t *testing.T) {
	r := newRigOn(t, launching(t))
	info := r.c.Info()
	device := regexp.MustCompile(`(?m)^device .*$`)
	here, err := tune.Parse(device.ReplaceAllString(tables.Default().String(),
		fmt.Sprintf("device compute=%d.%d name=%q", info.Compute.Major, info.Compute.Minor, info.Name)))
	require.NoError(t, err)
	kernels, err := kernel.NewCompiler(r.c, kernel.WithTables(here))
	require.NoError(t, err)
	x, y := expr.Input(0, tensor.Float32), expr.Input(1, tensor.Float32)
	add, err := kernels.Elementwise(x.Add(y))
	require.NoError(t, err)
	softmax, err := kernels.Reduction([]int{-1}, x.Softmax())
	require.NoError(t, err)
	sum, err := kernels.Reduction([]int{-1}, x.Sum())
	require.NoError(t, err)
	flat, square, rows := r.made(tensor.Float32, 1_000_000), r.made(tensor.Float32, 1024, 1024), r.made(tensor.Float32, 1024)
	require.NoError(t, add.Run(r.c, outs(flat), flat, r.made(tensor.Float32, 1_000_000)))
	require.NoError(t, softmax.Run(r.c, outs(r.made(tensor.Float32, 1024, 1024)), square))
	require.NoError(t, sum.Run(r.c, outs(rows), square))
	stats := kernels.Stats()
	assert.Positive(t, stats.Tabled, "of others the rule's variant is the best one")
	assert.Zero(t, stats.StaleRows)
	require.NoError(t, r.c.Synchronize(t.Context()))
	require.NoError(t, kernels.Close())
}
