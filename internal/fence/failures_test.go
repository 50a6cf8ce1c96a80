package fence

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// guard counts the records that begin and end, and refuses one of its calls.
type guard struct {
	calls, refuses int
	begun, ended   int
}

func (g *guard) Enter() error {
	if err := g.call(); err != nil {
		return err
	}
	g.begun++
	return nil
}

func (g *guard) Check() error { return g.call() }
func (g *guard) Leave()       { g.ended++ }

func (g *guard) call() error {
	if g.calls++; g.calls == g.refuses {
		return cudadrv.NotPermitted
	}
	return nil
}

// After a failure of any call, each record that began has ended, no event belongs to two fences, the error is returned, a later fence covers
// the blocks, and all events go back to the driver.
func TestATimelineLosesNothingByAFailure(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"error", "panic", "refusal"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			for n := 1; failsOnce(t, way, n); n++ {
			}
		})
	}
}

// failsOnce uses a timeline in all ways, and has the n-th call fail. It reports whether there were as many.
func failsOnce(t *testing.T, way string, n int) (failed bool) {
	t.Helper()
	b := newBench(t)
	other, err := b.sim.StreamCreate()
	require.NoError(t, err)
	g := &guard{}
	l := NewTimeline(b.Events, b.stream, false, g)
	if way == "refusal" {
		g.refuses = n
	}
	calls := 0
	b.faults.SetBefore(func(function string) {
		if slices.Contains([]string{"cuEventDestroy", "cuStreamCreate"}, function) {
			return // the driver keeps an event that it cannot destroy
		}
		if calls++; calls != n {
			return
		}
		switch way {
		case "panic":
			panic("planted")
		case "error":
			b.fail(function)
		}
	})
	var numbers []uint64
	attempt := func(name string, f func() error) {
		t.Helper()
		injected, refused, panicked := b.faults.Injected(), g.calls < g.refuses, true
		func() {
			defer func() { _ = recover() }()
			err = f()
			panicked = false
		}()
		refused = refused && g.calls >= g.refuses
		if panicked || refused || b.faults.Injected() > injected {
			failed = true
			b.faults.Clear()
			assert.True(t, panicked || err != nil, "%s after %s %d", name, way, n)
		} else {
			require.NoError(t, err, "%s after %s %d", name, way, n)
		}
		assert.Equal(t, g.begun, g.ended, "%s after %s %d", name, way, n)
		assert.True(t, l.Idle())
	}
	take := func() error {
		number := l.Next()
		numbers = append(numbers, number)
		_, err := l.Take(number)
		return err
	}
	order := func() error { _, err := l.Order(other); return err }
	look := func() error { _, err := l.Look(); return err }
	for range 2 { // the cells have passed marks the second time
		require.NoError(t, b.sim.Launch(b.stream, time.Second))
		attempt("a first fence", take)
		attempt("an order", order)
		for range CellCount - 2 {
			attempt("a fence", take)
		}
		attempt("an order without a cell", order)
		attempt("a look", look)
		attempt("a wait", func() error { _, err := l.Wait(); return err })
		attempt("a look", look)
	}
	attempt("a last fence", take)
	g.refuses = 0
	b.faults.SetBefore(nil)
	b.advance(10 * time.Second)
	b.take(l, l.Next())
	b.look(l)
	for _, number := range numbers {
		assert.True(t, l.Passed(number), "fence %d after %s %d", number, way, n)
	}
	l.Shut()
	l.Finish()
	require.NoError(t, b.Close(), "an event was released twice")
	assert.Zero(t, b.sim.Objects()["event"], "events after %s %d", way, n)
	return failed
}
