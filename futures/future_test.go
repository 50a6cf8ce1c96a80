package futures

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var errTest = errors.New("no memory")

type block struct{ slot, generation, bytes uint64 }

func TestAFutureOfThreeWordsHasFour(t *testing.T) {
	assert.Equal(t, 4*unsafe.Sizeof(uintptr(0)), unsafe.Sizeof(Future[block]{}))
}

func TestDone(t *testing.T) {
	f := Done(7)
	assert.True(t, f.Completed())
	v, completed, err := f.Poll()
	assert.Equal(t, 7, v)
	assert.True(t, completed)
	require.NoError(t, err)
	<-f.Done()
	assert.False(t, f.Cancel(), "an answer that is there cannot be canceled")

	over, cancel := context.WithCancel(t.Context())
	cancel()
	v, err = f.Await(over)
	require.NoError(t, err, "an answer that is there does not ask the context")
	assert.Equal(t, 7, v)
}

func TestFailed(t *testing.T) {
	f := Failed[int](errTest)
	assert.True(t, f.Completed())
	<-f.Done()
	_, err := f.Await(t.Context())
	require.ErrorIs(t, err, errTest)
	_, completed, err := f.Poll()
	assert.True(t, completed)
	require.ErrorIs(t, err, errTest)
	assert.False(t, f.Cancel())
}

// An answer that is there needs no context; a wait without one is refused, and changes nothing.
func TestAwaitWithoutAContext(t *testing.T) {
	var none context.Context
	for _, kind := range []struct {
		of  Future[int]
		v   int
		err error
	}{
		{Done(7), 7, nil},
		{Failed[int](errTest), 0, errTest},
		{new(Promise[int]).Future(), 0, ErrNilContext},
		{Then(new(Promise[int]).Future(), double), 0, ErrNilContext},
	} {
		v, err := kind.of.Await(none)
		require.ErrorIs(t, err, kind.err)
		assert.Equal(t, kind.v, v)
	}
}

// The text of a future tells its answer, in the one form that encoders use too.
func TestTheTextOfAFuture(t *testing.T) {
	for want, f := range map[string]Future[int]{
		"completed: 7":               Done(7),
		"completed: 0":               {},
		"failed: " + errTest.Error(): Failed[int](errTest),
		"pending":                    new(Promise[int]).Future(),
	} {
		assert.Equal(t, want, f.String())
		text, err := f.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
}

func TestPendingThenComplete(t *testing.T) {
	var p Promise[int]
	f := p.Future()
	assert.False(t, f.Completed())
	assert.True(t, p.Pending())
	_, completed, err := f.Poll()
	assert.False(t, completed)
	require.NoError(t, err)
	require.True(t, p.Complete(3, nil))
	assert.False(t, p.Pending())
	require.False(t, p.Complete(4, nil))
	require.False(t, p.Cancel(nil))
	v, err := f.Await(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 3, v)
	<-f.Done()
}

// Property 4 of the package comment.
func TestTheEndOfAContextEndsOnlyThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Promise[int]
		f := p.Future()
		patient := make(chan int, 1)
		go func() {
			v, _ := f.Await(context.Background())
			patient <- v
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := f.Await(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		assert.True(t, p.Pending())
		require.True(t, p.Complete(5, nil))
		assert.Equal(t, 5, <-patient)
		v, err := f.Await(ctx)
		require.NoError(t, err)
		assert.Equal(t, 5, v)
	})
}

func TestManyWaitersAllWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Promise[int]
		const waiterCount = 100
		values := make(chan int, waiterCount)
		for range waiterCount {
			go func() {
				v, _ := p.Future().Await(t.Context())
				values <- v
			}()
		}
		synctest.Wait()
		p.Complete(9, nil)
		for range waiterCount {
			assert.Equal(t, 9, <-values)
		}
	})
}

func TestWaitsThatAreGivenUpLeaveNothingBehind(t *testing.T) {
	var p Promise[int]
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.Future().Await(over)
	require.ErrorIs(t, err, context.Canceled)
	allocs := testing.AllocsPerRun(100, func() { _, _ = p.Future().Await(over) })
	assert.Zero(t, allocs)
	assert.Nil(t, p.core.observers.Load())
}

func TestCancel(t *testing.T) {
	told := 0
	p := NewPromise[int](func() { told++ })
	f := p.Future()
	require.True(t, f.Cancel())
	require.False(t, f.Cancel())
	assert.Equal(t, 1, told)
	assert.False(t, p.Complete(1, nil), "the producer keeps its value")
	_, err := f.Await(t.Context())
	require.ErrorIs(t, err, ErrCanceled)
	require.ErrorIs(t, err, context.Canceled)
}

func TestCancelWithACause(t *testing.T) {
	var p Promise[int]
	told := false
	p.OnCancel(func() { told = true })
	require.True(t, p.Cancel(errTest))
	assert.True(t, told)
	_, err := p.Future().Await(t.Context())
	require.ErrorIs(t, err, errTest)
}

func TestCancelAfterCompletionTellsNobody(t *testing.T) {
	p := NewPromise[int](func() { t.Error("told of a cancellation that lost") })
	require.True(t, p.Complete(1, nil))
	assert.False(t, p.Future().Cancel())
}

func TestTheFastPathAllocatesNothing(t *testing.T) {
	ctx := t.Context()
	failures := 0
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		f := Done(block{1, 2, 3})
		v, err := f.Await(ctx)
		if err != nil || v.bytes != 3 || !f.Completed() {
			failures++
		}
	}))
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		f := Then(Done(block{1, 2, 3}), func(b block) (uint64, error) { return b.bytes, nil })
		if v, err := f.Await(ctx); err != nil || v != 3 {
			failures++
		}
	}))
	var p Promise[block]
	assert.Zero(t, testing.AllocsPerRun(1000, func() { p.Complete(block{}, nil) }), "a promise without waiters")
	assert.Zero(t, failures)
}

// asked counts the waits that a producer hears of.
type asked struct {
	name         string
	begun, ended int
}

// on has the producer hear of waits for a promise.
func (a *asked) on(p *Promise[int]) {
	p.OnAwait(func(begins bool) {
		if begins {
			a.begun++
		} else {
			a.ended++
		}
	})
	p.OnGiveUp(func(ended error) error { return fmt.Errorf("still asked for %s: %w", a.name, ended) })
}

// A producer hears of each Await that waits, and may say more about the end of one; the answer and other waits are as they
// were.
func TestAProducerDescribesAnAwaitThatIsGivenUp(t *testing.T) {
	p, producer := NewPromise[int](nil), asked{name: "seven"}
	producer.on(p)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := p.Future().Await(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.EqualError(t, err, "still asked for seven: context canceled")
	require.True(t, p.Complete(7, nil))
	v, err := p.Future().Await(ctx)
	require.NoError(t, err)
	assert.Equal(t, 7, v)
	assert.Equal(t, asked{"seven", 1, 1}, producer)
}

// The error of an Await of a derived future is the error of its first incomplete source, whose producer hears of no wait. While
// a function runs, and where no producer says more, it is the context's.
func TestADerivedFutureHasTheErrorOfItsSource(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	of := func(name string) (*Promise[int], *asked) {
		p, producer := NewPromise[int](nil), &asked{name: name}
		producer.on(p)
		return p, producer
	}
	one, first := of("one")
	two, second := of("two")
	running, end := make(chan struct{}), make(chan struct{})
	half := func(i int) (float64, error) {
		close(running)
		<-end
		return float64(i) / 2, nil
	}
	then := Then(Then(one.Future(), func(i int) (int, error) { return i, nil }), half)
	all := All(nil, Done(0), one.Future(), two.Future())
	race := First(nil, one.Future(), two.Future())
	awaits := func() (errs []string) {
		for _, f := range []func() error{
			func() error { _, err := then.Await(ctx); return err },
			func() error { _, err := all.Await(ctx); return err },
			func() error { _, err := race.Await(ctx); return err },
			func() error { _, err := All(nil, all).Await(ctx); return err },
		} {
			err := f()
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
			}
			errs = append(errs, fmt.Sprint(err))
		}
		return errs
	}
	const a, b, plain = "still asked for one: context canceled", "still asked for two: context canceled", "context canceled"
	assert.Equal(t, []string{a, a, a, a}, awaits())
	require.True(t, one.Complete(1, nil))
	<-running
	assert.Equal(t, []string{plain, b, "<nil>", b}, awaits())
	close(end)
	require.True(t, two.Complete(2, nil))
	v, err := then.Await(t.Context())
	require.NoError(t, err)
	assert.InDelta(t, 0.5, v, 0)
	assert.Equal(t, []string{"<nil>", "<nil>", "<nil>", "<nil>"}, awaits())
	assert.Equal(t, []asked{{name: "one"}, {name: "two"}}, []asked{*first, *second})

	_, err = Then(NewPromise[int](nil).Future(), func(i int) (int, error) { return i, nil }).Await(ctx)
	assert.Equal(t, context.Canceled, err)
}

// A nil promise is one that nobody completes: each call says so, and nothing panics.
func TestANilPromise(t *testing.T) {
	var p *Promise[int]
	p.On(nil)
	p.OnCancel(func() {})
	p.OnAwait(func(bool) {})
	p.OnGiveUp(func(err error) error { return err })
	assert.False(t, p.Pending())
	assert.False(t, p.Complete(1, nil))
	assert.False(t, p.Cancel(nil))
	v, err := p.Await(t.Context())
	require.ErrorIs(t, err, ErrNoPromise)
	assert.Zero(t, v)
}
