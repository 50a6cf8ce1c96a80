package kernel

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/futures"
)

// here runs functions that a completion starts on the goroutine that completes.
type here struct{}

func (here) Go(_ string, f func()) { f() }

func (here) Wait(closed ...<-chan struct{}) { <-closed[0] }

// A failure is not remembered: a call that begins once a caller has it loads the module again, and gets that answer. The part
// that All cancels sees the failure first.
func TestAFailureIsForgottenBeforeItIsSeen(t *testing.T) {
	broken := errors.New("the text has a mistake")
	for _, failure := range []error{broken, ErrNotPrepared} {
		c := &Compiler{modules: map[string]*futures.Promise[*code]{}, threads: 1}
		c.idle = sync.NewCond(&c.mu)
		good := &code{}
		var again futures.Future[*code]
		var known bool
		seen := make(chan struct{})
		first := futures.NewPromise[*code](func() {
			defer close(seen)
			again, known = c.once("text", func() (*code, error) { return good, nil })
		})
		loading := make(chan struct{})
		loaded, _ := c.once("text", func() (*code, error) {
			<-loading
			return nil, failure
		})
		c.mu.Lock()
		c.modules["text"].On(here{})
		c.mu.Unlock()
		both := futures.All(func(*code) {}, loaded, first.Future())
		close(loading)
		<-seen
		_, err := both.Await(t.Context())
		require.ErrorIs(t, err, failure)
		assert.False(t, known)
		got, err := again.Await(t.Context())
		require.NoError(t, err)
		assert.Same(t, good, got)
		kept, known := c.once("text", func() (*code, error) { return nil, broken })
		assert.True(t, known, "a success is remembered")
		got, err = kept.Await(t.Context())
		require.NoError(t, err)
		assert.Same(t, good, got)
		failed := int64(1)
		if errors.Is(failure, ErrNotPrepared) {
			failed = 0
		}
		assert.Equal(t, [3]int64{1, 2, failed}, [3]int64{c.counts.hits.Load(), c.counts.misses.Load(), c.counts.failed.Load()})
	}
}

// The end of a measurement that was not completed leaves a choice that was made during it, and a kind of work that is not measured.
func TestAMeasurementThatWasGivenUpEndsItsOwnStateAlone(t *testing.T) {
	for _, retry := range []bool{false, true} {
		after := map[bool]uint32{false: settled, true: open}[retry]
		for before, want := range map[uint32]uint32{settled: settled, open: open, measuring: after} {
			s, c := &choices{}, &choice{}
			s.all.Store(&map[class]*choice{{rows: 1}: c})
			c.state.Store(before)
			s.giveUp(class{rows: 2}, retry)
			assert.Equal(t, before, c.state.Load())
			s.giveUp(class{rows: 1}, retry)
			assert.Equal(t, want, c.state.Load(), "from %d, retry: %t", before, retry)
		}
	}
}

// A measurement times nothing more from the moment when the compiler ends it, also where nobody has told its context yet.
func TestAMeasurementEndsAtOnce(t *testing.T) {
	c, _ := compiling(t, WithTables(), WithTuning(Tuning{RotateBytes: 1, Rounds: 1, Limit: time.Hour}))
	var asked atomic.Int64
	c.tuner.clock = func(plan.Schedule) time.Duration {
		asked.Add(1)
		c.tuner.mu.Lock()
		defer c.tuner.mu.Unlock()
		c.tuner.stop()
		return time.Microsecond
	}
	k, err := c.Elementwise(expr.Input(0, tensor.Float32).Neg())
	require.NoError(t, err)
	x, err := tensor.New(c.on, tensor.Float32, 64)
	require.NoError(t, err)
	y, err := tensor.New(c.on, tensor.Float32, 64)
	require.NoError(t, err)
	_, err = k.Tune(t.Context(), []*tensor.Tensor{y}, x)
	require.ErrorIs(t, err, ErrClosed)
	assert.Equal(t, int64(1), asked.Load())
	require.NoError(t, errors.Join(x.Free(), y.Free()))
}

// A geometry is kept in the list that was searched, and not where that was replaced since: the geometry may be of an old choice.
func TestAGeometryOfAnOldListIsNotKept(t *testing.T) {
	var s fits
	s.clear()
	_, old := s.find(nil, nil)
	s.clear()
	_, searched := s.find(nil, nil)
	s.keep(old, nil, nil, &plan.Geometry{Rows: 1})
	assert.Empty(t, *s.list.Load())
	s.keep(searched, nil, nil, &plan.Geometry{Rows: 2})
	s.keep(searched, nil, nil, &plan.Geometry{Rows: 3})
	require.Len(t, *s.list.Load(), 1)
	assert.EqualValues(t, 2, (*s.list.Load())[0].geometry.Rows)
}
