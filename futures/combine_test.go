package futures

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func double(v int) (int, error) { return 2 * v, nil }

func TestThenInlineWhenComplete(t *testing.T) {
	v, completed, err := Then(Done(4), double).Poll()
	require.NoError(t, err)
	assert.True(t, completed)
	assert.Equal(t, 8, v)

	_, _, err = Then(Failed[int](errTest), double).Poll()
	require.ErrorIs(t, err, errTest)
	_, _, err = Then(Done(4), func(int) (int, error) { return 1, errTest }).Poll()
	require.ErrorIs(t, err, errTest)
}

// A value that the callback returns with an error is dropped, whether it runs at once or later.
func TestAValueWithAnErrorIsDropped(t *testing.T) {
	both := func(int) (int, error) { return 7, errTest }
	var p Promise[int]
	for name, f := range map[string]Future[int]{"at once": Then(Done(1), both), "later": Then(p.Future(), both)} {
		p.Complete(1, nil)
		v, err := f.Await(t.Context())
		require.ErrorIs(t, err, errTest, name)
		assert.Zero(t, v, name)
	}
}

// Property 5: the callback may even wait for the goroutine that completes.
func TestThenNeverRunsOnTheCompleter(t *testing.T) {
	var p Promise[int]
	returned := make(chan struct{})
	f := Then(p.Future(), func(v int) (int, error) {
		<-returned
		return 2 * v, nil
	})
	p.Complete(4, nil)
	close(returned)
	v, err := f.Await(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 8, v)
}

func TestThenPassesAPendingErrorOn(t *testing.T) {
	var p Promise[int]
	f := Then(p.Future(), func(int) (int, error) { t.Error("called"); return 0, nil })
	p.Complete(0, errTest)
	_, err := f.Await(t.Context())
	require.ErrorIs(t, err, errTest)
}

// Property 7.
func TestACallbackThatDoesNotReturnIsAnError(t *testing.T) {
	for name, fn := range map[string]func(int) (int, error){
		"panic":          func(int) (int, error) { panic("out of luck") },
		"panic, error":   func(int) (int, error) { panic(errTest) },
		"panic, nil":     func(int) (int, error) { panic(errNothing()) },
		"ends goroutine": func(int) (int, error) { runtime.Goexit(); return 0, nil },
	} {
		t.Run(name, func(t *testing.T) {
			var p Promise[int]
			f := Then(p.Future(), fn)
			p.Complete(1, nil)
			_, err := f.Await(t.Context())
			var panicked *PanicError
			require.ErrorAs(t, err, &panicked)
			assert.Contains(t, string(panicked.Stack), "combine_test.go")
			assert.Contains(t, err.Error(), "callback panicked")
			assert.NotNil(t, panicked.Value, "also where the goroutine ended")
		})
	}
	_, _, err := Then(Done(1), func(int) (int, error) { panic(errTest) }).Poll()
	require.ErrorIs(t, err, errTest)
}

// A derived future keeps neither its function nor its source once it has an answer and its source, too: it may be kept for long.
func TestAChainKeepsNothingOfItsSource(t *testing.T) {
	type large struct{ bytes [1 << 10]byte }
	for name, c := range map[string]struct {
		cancels bool
		failure error
	}{"answered": {}, "canceled": {cancels: true}, "failed": {failure: errTest}} {
		t.Run(name, func(t *testing.T) {
			var ofFunction, ofSource weak.Pointer[large]
			var derived Future[int]
			synctest.Test(t, func(t *testing.T) {
				source, used := NewPromise[*large](nil), new(large)
				derived = Then(source.Future(), func(*large) (int, error) { return len(used.bytes), nil })
				value := new(large)
				ofFunction, ofSource = weak.Make(used), weak.Make(value)
				if c.cancels {
					require.True(t, derived.Cancel())
				}
				require.True(t, source.Complete(value, c.failure))
				synctest.Wait()
			})
			runtime.GC()
			assert.Nil(t, ofFunction.Value())
			assert.Nil(t, ofSource.Value())
			assert.True(t, derived.Completed())
		})
	}
}

func TestCancelOfAChainLeavesTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Promise[int]
		f := Then(p.Future(), func(int) (int, error) { t.Error("called after a cancel"); return 0, nil })
		require.True(t, f.Cancel())
		require.True(t, p.Complete(1, nil))
		synctest.Wait()
		v, err := p.Future().Await(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 1, v)
	})
}

// Property 6.
func TestACallbackThatHasBegunIsDelivered(t *testing.T) {
	var p Promise[int]
	begun, goOn := make(chan struct{}), make(chan struct{})
	f := Then(p.Future(), func(v int) (int, error) {
		close(begun)
		<-goOn
		return v, nil
	})
	p.Complete(1, nil)
	<-begun
	assert.False(t, f.Cancel())
	close(goOn)
	v, err := f.Await(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1, v)
}

func TestAll(t *testing.T) {
	v, completed, err := All[int](nil).Poll()
	require.NoError(t, err)
	assert.True(t, completed)
	assert.Empty(t, v)

	v, completed, err = All(nil, Done(1), Done(2)).Poll()
	require.NoError(t, err)
	assert.True(t, completed)
	assert.Equal(t, []int{1, 2}, v)

	var p, q Promise[int]
	f := All(nil, p.Future(), Done(2), q.Future())
	q.Complete(3, nil)
	assert.False(t, f.Completed())
	p.Complete(1, nil)
	v, err = f.Await(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []int{1, 2, 3}, v)
}

func TestAllWithoutReleaseOnlyWatches(t *testing.T) {
	var p, q Promise[int]
	f := All(nil, p.Future(), q.Future())
	p.Complete(0, errTest)
	_, err := f.Await(t.Context())
	require.ErrorIs(t, err, errTest)
	assert.True(t, q.Pending())
	require.True(t, q.Complete(1, nil))
}

// The part that arrives last meets one that fails: the whole has failed, whichever of them is ahead.
func TestALastPartMeetsOneThatFails(t *testing.T) {
	for range 2000 {
		var p, q Promise[int]
		f := All(nil, p.Future(), q.Future())
		var both sync.WaitGroup
		both.Go(func() { p.Complete(0, errTest) })
		both.Go(func() { q.Complete(1, nil) })
		both.Wait()
		_, err := f.Await(t.Context())
		require.ErrorIs(t, err, errTest)
	}
}

func TestFirst(t *testing.T) {
	_, _, err := First[int](nil).Poll()
	require.ErrorIs(t, err, ErrNoFutures)

	v, completed, err := First(nil, Failed[int](errTest), Done(2), Done(3)).Poll()
	require.NoError(t, err)
	assert.True(t, completed)
	assert.Equal(t, 2, v)

	other := errors.New("other")
	_, _, err = First(nil, Failed[int](errTest), Failed[int](other)).Poll()
	require.ErrorIs(t, err, errTest)
	require.ErrorIs(t, err, other)

	var p, q Promise[int]
	f := First(nil, p.Future(), q.Future())
	p.Complete(0, errTest)
	q.Complete(6, nil)
	v, err = f.Await(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 6, v)
}

// errNothing returns the nil that is given to panic by mistake.
func errNothing() error { return nil }

func TestCancelOfTheWholeCancelsItsParts(t *testing.T) {
	release := func(int) { t.Error("nothing to release") }
	p, q := new(Promise[int]), new(Promise[int])
	require.True(t, All(release, p.Future(), q.Future()).Cancel())
	assert.False(t, p.Pending())
	assert.False(t, q.Complete(1, nil))

	p, q = new(Promise[int]), new(Promise[int])
	require.True(t, First(release, p.Future(), q.Future()).Cancel())
	assert.False(t, p.Pending())
	assert.False(t, q.Complete(1, nil))
}

func TestFirstCancelsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, q := new(Promise[int]), new(Promise[int])
		f := First(func(int) { t.Error("nothing to release") }, p.Future(), q.Future())
		p.Complete(1, nil)
		synctest.Wait()
		assert.False(t, q.Pending())
		assert.False(t, q.Complete(2, nil), "the producer keeps its value")
		v, err := f.Await(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 1, v)
	})
}

func TestAPanicInReleaseDoesNotLoseTheOthers(t *testing.T) {
	released := 0
	f := All(func(v int) {
		released += v
		panic("release")
	}, Done(1), Done(2), Failed[int](errTest), Done(4))
	_, err := f.Await(t.Context())
	require.ErrorIs(t, err, errTest)
	assert.Equal(t, 7, released)
}

// Property 3 for All and First: every value is delivered, released, or was refused to its producer.
func TestGatheringLosesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		partCount := rapid.IntRange(1, 6).Draw(rt, "parts")
		race := rapid.Bool().Draw(rt, "first")
		// 0 completed before, 1 fails before, 2 completes later, 3 fails later.
		kinds := rapid.SliceOfN(rapid.IntRange(0, 3), partCount, partCount).Draw(rt, "kinds")
		cancels := rapid.Bool().Draw(rt, "cancels")
		yields := rapid.SliceOfN(rapid.IntRange(0, 6), partCount+1, partCount+1).Draw(rt, "yields")
		synctest.Test(t, func(t *testing.T) {
			var books sync.Mutex
			got := make([]int, partCount) // How often each value found an owner.
			owned := func(v int) {
				books.Lock()
				defer books.Unlock()
				got[v]++
			}
			fs := make([]Future[int], partCount)
			var later []func()
			for i, kind := range kinds {
				p := new(Promise[int])
				fs[i] = p.Future()
				finish := func() {
					if kind == 1 || kind == 3 {
						p.Complete(0, errTest)
						owned(i)
					} else if !p.Complete(i, nil) {
						owned(i)
					}
				}
				if kind < 2 {
					finish()
					continue
				}
				later = append(later, func() {
					for range yields[i] {
						runtime.Gosched()
					}
					finish()
				})
			}
			var one Future[int]
			var all Future[[]int]
			if race {
				one = First(owned, fs...)
			} else {
				all = All(owned, fs...)
			}
			for _, fn := range later {
				go fn()
			}
			if cancels {
				for range yields[partCount] {
					runtime.Gosched()
				}
				one.Cancel()
				all.Cancel()
			}
			if race {
				if v, err := one.Await(context.Background()); err == nil {
					owned(v)
				}
			} else if vs, err := all.Await(context.Background()); err == nil {
				for _, v := range vs {
					owned(v)
				}
			}
			synctest.Wait()
			for i := range got {
				require.Equal(t, 1, got[i], "part %d of kind %d", i, kinds[i])
			}
		})
	})
}

// partState is the state of a part when it is gathered.
type partState int

const (
	partDone   partState = iota // a value future
	partGiven                   // a promise that has its value
	partFailed                  // a promise that has failed
	partOpen                    // a promise without an answer
	partStates
)

// In each state of the parts when they are gathered, and with each next answer: once the whole is complete and does not want more, no part
// of its own is pending. Parts that are only watched are left alone, and so are the parts of a whole that still waits.
func TestAWholeThatIsCompleteHasNoPendingParts(t *testing.T) {
	const parts = 3
	const events = 2*parts + 2              // each part gets its value, or fails; the whole is canceled; nothing
	for code := range events * 2 * 2 * 64 { // 64: four states of three parts
		event, rest := code%events, code/events
		race, own, rest := rest%2 == 1, rest/2%2 == 1, rest/4
		var states [parts]partState
		for i := range states {
			states[i], rest = partState(rest%int(partStates)), rest/int(partStates)
		}
		synctest.Test(t, func(t *testing.T) { tryWhole(t, states[:], event, race, own) })
	}
}

// tryWhole gathers parts, lets one thing happen, and looks at the parts.
func tryWhole(t *testing.T, states []partState, event int, race, own bool) {
	t.Helper()
	promises, fs := make([]*Promise[int], len(states)), make([]Future[int], len(states))
	for i, state := range states {
		p := new(Promise[int])
		promises[i], fs[i] = p, p.Future()
		switch state {
		case partDone:
			promises[i], fs[i] = nil, Done(i)
		case partGiven:
			p.Complete(i, nil)
		case partFailed:
			p.Complete(0, errTest)
		}
	}
	var release func(int)
	if own {
		release = func(int) {}
	}
	var cancel func() bool
	var completed func() bool
	if race {
		f := First(release, fs...)
		cancel, completed = f.Cancel, f.Completed
	} else {
		f := All(release, fs...)
		cancel, completed = f.Cancel, f.Completed
	}
	synctest.Wait()
	look := func(after string) {
		for i, p := range promises {
			if states[i] == partOpen && own && completed() {
				assert.False(t, p.Pending(), "part %d of %v is pending %s; first %t", i, states, after, race)
			}
		}
	}
	look("at the begin")
	touched := -1
	switch {
	case event == 2*len(states):
		cancel()
	case event < 2*len(states) && promises[event/2] != nil:
		touched = event / 2
		promises[touched].Complete(touched, []error{nil, errTest}[event%2])
	}
	synctest.Wait()
	look("after an event")
	for i, p := range promises {
		if states[i] == partOpen && i != touched && (!own || !completed()) {
			assert.True(t, p.Pending(), "part %d of %v was canceled; first %t, owned %t", i, states, race, own)
		}
	}
}
