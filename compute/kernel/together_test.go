package kernel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/kernel/tune"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/together"
)

// compiling returns a compiler and its simulated device, whose kernels do nothing.
func compiling(t *testing.T, with ...Option) (*Compiler, *vram.Device) {
	t.Helper()
	dev, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{Bytes: true, TimedKernels: true})})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, dev.Close()) })
	s, err := dev.NewStream()
	require.NoError(t, err)
	on, err := cuda.NewContext(s)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, on.Close()) })
	c, err := NewCompiler(on, with...)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, on.Synchronize(context.Background()))
		assert.NoError(t, c.Close())
	})
	return c, dev
}

// torn is a store with the images of some texts, and others of which are no images.
type torn struct{}

func (torn) Get(text string) ([]byte, bool) {
	if strings.Contains(text, "// refused") {
		return []byte("torn"), true
	}
	return []byte(text), strings.Contains(text, "// stored")
}

func (torn) Put(string, []byte) {}

// Each text that goroutines request at the same time is counted once, by its result, with the time that it took.
func TestFiguresOfCodeAmongGoroutines(t *testing.T) {
	const goroutineCount, rounds = 4, 30
	const nothing = ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry nothing() { ret; }\n// "
	c, _ := compiling(t, WithStore(torn{}), Threads(goroutineCount))
	together.Run(goroutineCount, func(number int) {
		for round := range rounds {
			load := func(text string, good bool) {
				f, err := c.RawPTX(text, "nothing").Await(t.Context())
				assert.Equal(t, good, err == nil, "%s: %v", text, err)
				assert.Equal(t, good, f != nil)
			}
			for _, kind := range []string{"stored", "refused", "new"} {
				load(fmt.Sprint(nothing, kind, number, " ", round), true)
			}
			load(fmt.Sprint("no text ", number, " ", round), false)
			load(fmt.Sprint(nothing, "of all ", round), true)
		}
	})
	const each = goroutineCount * rounds
	want := Stats{
		Hits: each - rounds, Misses: 4*each + rounds, Compiled: 2*each + rounds, Stored: each, Refused: each, Failed: each,
	}
	for _, p := range c.modules {
		m, err := p.Future().Await(t.Context())
		require.NoError(t, err)
		if m.origin == Stored {
			want.LoadTime += m.took
		} else {
			want.CompileTime += m.took
		}
	}
	assert.Equal(t, want, c.Stats())
}

// negating returns the layouts of a negation of so many numbers, and its geometry.
func negating(t *testing.T, k *Kernel, count int) ([]layout.Layout, plan.Geometry) {
	t.Helper()
	l, err := layout.Of(count)
	require.NoError(t, err)
	var g plan.Geometry
	require.NoError(t, k.program.Fit(&g, []layout.Layout{l, l}, []uint64{0, 0}))
	return []layout.Layout{l, l}, g
}

// Goroutines that choose for classes of work while others are settled lose none of them, and each row that is passed over is counted.
func TestChoicesAmongGoroutines(t *testing.T) {
	const goroutineCount, rounds, classCount = 4, 20, 3
	c, _ := compiling(t)
	k, err := c.Elementwise(expr.Input(0, tensor.Float32).Neg())
	require.NoError(t, err)
	var all []plan.Geometry // the first of them are chosen for, the others settled
	rows := map[tune.Key][]tune.Row{}
	for i := range 2 * classCount {
		_, g := negating(t, k, 1<<(12+i))
		schedules := k.program.Schedules(&g)
		row := func(s plan.Schedule, code string, median time.Duration) tune.Row {
			return tune.Row{Variant: s.String(), Code: code, State: tune.Verified, Median: median, Rounds: 9}
		}
		all = append(all, g)
		rows[k.choices.key(classOf(&g))] = []tune.Row{
			row(schedules[0], "", 1000), row(schedules[1], k.choices.code(g, schedules[1]), 500), row(schedules[2], "of other code", 400),
			{Variant: "gone", State: tune.Verified, Median: 300, Rounds: 9},
		}
	}
	var looks atomic.Int64
	c.tuner.tables = func(_ tune.Device, of tune.Key) []tune.Row {
		looks.Add(1)
		return rows[of]
	}
	for range rounds {
		s := &choices{program: k.program, tuner: c.tuner}
		s.all.Store(&map[class]*choice{})
		together.Run(goroutineCount, func(number int) {
			for i := range classCount {
				if number > 0 {
					g := all[i]
					assert.False(t, s.choose(&g))
					continue
				}
				g := all[classCount+i]
				s.settle(classOf(&g), &g, rows[s.key(classOf(&g))])
			}
		})
		chosen := *s.all.Load()
		require.Len(t, chosen, len(all))
		for i := range all {
			require.Len(t, chosen[classOf(&all[i])].schedules, 1)
		}
	}
	stats := c.Stats()
	assert.EqualValues(t, rounds*classCount, stats.Tabled)
	assert.Equal(t, 2*(looks.Load()+rounds*classCount), stats.StaleRows)
}

// Kernels that goroutines prepare and print at the same time have the texts that they have alone, and no others are compiled.
func TestWarmUpsAmongGoroutines(t *testing.T) {
	const goroutineCount, kernelCount = 4, 8
	c, _ := compiling(t, Threads(goroutineCount), WithTables())
	var needs []Need
	var texts []string
	for i := range kernelCount {
		k, err := c.Elementwise(expr.Input(0, tensor.Float32).Add(expr.Number(float64(i))))
		require.NoError(t, err)
		for _, count := range []int{63, 64, 4096} {
			layouts, _ := negating(t, k, count)
			text, err := k.Text(layouts...)
			require.NoError(t, err)
			needs, texts = append(needs, Need{Kernel: k, Layouts: layouts}), append(texts, text)
		}
	}
	together.Run(goroutineCount, func(number int) {
		for i := range needs {
			at := (i + number*len(needs)/goroutineCount) % len(needs)
			text, err := needs[at].Kernel.Text(needs[at].Layouts...)
			assert.NoError(t, err)
			assert.Equal(t, texts[at], text)
			assert.NoError(t, c.WarmUp(t.Context(), needs[at:min(at+3, len(needs))], nil))
		}
	})
	want := map[string]bool{}
	for _, text := range texts {
		want[text] = true
	}
	for text := range c.modules {
		assert.True(t, want[text], "%s", text)
	}
	assert.Len(t, c.modules, len(want))
	assert.EqualValues(t, len(want), c.Stats().Compiled)
}

// A context's tickets that are closed while goroutines take, leave and renew them leave no memory, whichever comes first.
func TestTicketsAmongGoroutines(t *testing.T) {
	const goroutineCount, rounds = 4, 50
	c, dev := compiling(t)
	on, before := c.on, dev.Stats().LiveBytes
	for range rounds {
		b, err := zeroed(on, streamTickets)
		require.NoError(t, err)
		all := &contextTickets{on: on, launches: b}
		require.NoError(t, all.renew(on))
		var apart sync.Map
		together.Run(goroutineCount, func(number int) {
			switch number {
			case 0:
				assert.NoError(t, all.Close())
			case 1:
				if err := all.renew(on); err != nil {
					assert.ErrorIs(t, err, cuda.ErrNotOpen)
				}
			default:
				for range 3 {
					taken, ok := all.take(1)
					if !ok {
						break
					}
					_, twice := apart.LoadOrStore(taken.at, true)
					assert.False(t, twice, "two launches have the same tickets")
					assert.NoError(t, taken.release())
				}
			}
		})
		require.Equal(t, before, dev.Stats().LiveBytes)
	}
}

// Each measurement that goroutines request at the same time is counted once, as completed or not, keeps its rows, and leaves no memory.
func TestMeasurementsAmongGoroutines(t *testing.T) {
	const goroutineCount, rounds = 2, 2
	c, dev := compiling(t, Threads(goroutineCount), WithTables(), WithTuning(Tuning{RotateBytes: 1, Limit: time.Hour, Rounds: 1}))
	c.tuner.clock = func(plan.Schedule) time.Duration { return time.Microsecond }
	k, err := c.Elementwise(expr.Input(0, tensor.Float32).Neg())
	require.NoError(t, err)
	var in, out [goroutineCount]*tensor.Tensor
	for i := range in {
		for _, at := range []**tensor.Tensor{&in[i], &out[i]} {
			*at, err = tensor.New(c.on, tensor.Float32, 64<<i)
			require.NoError(t, err)
			require.NoError(t, (*at).Allocate())
		}
	}
	before := dev.Stats().LiveBytes
	ended, end := context.WithCancel(t.Context())
	end()
	together.Run(goroutineCount, func(number int) {
		outputs := []*tensor.Tensor{out[number]}
		for range rounds {
			rows, err := k.Tune(t.Context(), outputs, in[number])
			assert.NoError(t, err)
			assert.NotEmpty(t, rows)
			_, err = k.Tune(ended, outputs, in[number])
			assert.ErrorIs(t, err, context.Canceled)
			assert.NoError(t, k.Run(c.on, outputs, in[number]))
			assert.NotEmpty(t, c.Tuned().String())
		}
	})
	c.AwaitTuning()
	stats := c.Stats()
	assert.EqualValues(t, goroutineCount*rounds, stats.Tuned)
	assert.EqualValues(t, goroutineCount*rounds, stats.TuningFailed)
	assert.Positive(t, stats.TuningTime)
	assert.Zero(t, stats.Disqualified+stats.TuningDeferred+stats.Failed)
	assert.Equal(t, stats.Misses, stats.Compiled)
	assert.Equal(t, before, dev.Stats().LiveBytes)
	for i := range in {
		_, g := negating(t, k, 64<<i)
		assert.NotEmpty(t, c.Tuned().Rows(c.tuner.device(), k.choices.key(classOf(&g))))
		require.NoError(t, errors.Join(in[i].Free(), out[i].Free()))
	}
}
