package futures

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/together"
)

// wide is a value that takes a millisecond to write, 4 MiB, so that a reader that is notified too
// early finds its end missing.
type wide [1 << 19]int64

// widest is one of them, of sevens. It is not written any more.
var widest = func() *wide {
	v := new(wide)
	for i := range v {
		v[i] = 7
	}
	return v
}()

// full reports whether its end is there, which is written last.
func (w *wide) full() bool { return w[len(w)-1] == 7 }

// A reader that finds the answer finds all of it: it is written before it is published, and before
// the gate opens.
func TestAnAnswerIsWrittenBeforeItIsPublished(t *testing.T) {
	for name, find := range map[string]func(p *Promise[wide]){
		"by looking": func(p *Promise[wide]) {
			for !p.Future().Completed() {
				runtime.Gosched()
			}
		},
		"at the gate": func(p *Promise[wide]) { <-p.Future().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				p := new(Promise[wide])
				together.Funcs(func() { p.Complete(*widest, errTest) }, func() {
					find(p)
					assert.True(t, p.val.full(), "the end of the value is missing")
					assert.ErrorIs(t, p.core.err, errTest)
				})
				require.False(t, t.Failed())
			}
		})
	}
}

// A part counts as answered once its value is there, and not before: the last one delivers the
// values that the others have written. Here the value has no place, so that nothing after the
// writing is reached.
func TestAPartIsWrittenBeforeItCounts(t *testing.T) {
	w := &gathered[int]{values: make([]int, 1), parts: parts[int]{all: make([]part[int], 2)}}
	w.parts.left.Store(2)
	w.parts.all[1].index = 1
	for _, err := range []error{nil, errTest} {
		assert.Panics(t, func() { w.settle(&w.parts.all[1], 5, err, false) })
		assert.EqualValues(t, 2, w.parts.left.Load())
		assert.True(t, w.promise.Pending())
	}
}

// A failed part counts as failed for the goroutine that answers the last: its value is not
// released.
func TestAFailedPartIsNotReleased(t *testing.T) {
	for range 500 {
		p, q := new(Promise[int]), new(Promise[int])
		var released atomic.Int64
		f := All(func(v int) { released.Add(int64(v)) }, p.Future(), q.Future(), Done(4))
		together.Funcs(func() { p.Complete(1, errTest) }, func() { q.Complete(2, errTest) })
		_, err := f.Await(t.Context())
		require.ErrorIs(t, err, errTest)
		for released.Load() == 0 { // on a goroutine of its own
			runtime.Gosched()
		}
		require.EqualValues(t, 4, released.Load())
	}
}

// All waits that begin at the same moment use one gate: a gate that the completion does not know
// never opens.
func TestWaitersShareOneGate(t *testing.T) {
	for range 5000 {
		p := new(Promise[int])
		var one, other <-chan struct{}
		together.Funcs(func() { one = p.Future().Done() }, func() { other = p.Future().Done() })
		require.Equal(t, one, other)
	}
}

// ledger is a host that starts nothing: it lists the functions that it should run.
type ledger struct{ due []func() }

func (l *ledger) Go(_ string, f func()) { l.due = append(l.due, f) }

func (*ledger) Wait(...<-chan struct{}) {}

// settle runs all listed functions, and those that they add.
func (l *ledger) settle() {
	for len(l.due) > 0 {
		f := l.due[0]
		l.due = l.due[1:]
		f()
	}
}

// Futures made from futures on a host are on that host.
func TestWhatIsMadeOfAFutureIsOnItsHost(t *testing.T) {
	var host ledger
	p, q := new(Promise[int]), new(Promise[int])
	q.On(&host)
	for name, h := range map[string]Host{
		"then":  Then(q.Future(), double).p.core.host,
		"all":   All(nil, Done(1), p.Future(), q.Future()).p.core.host,
		"first": First(nil, p.Future(), q.Future()).p.core.host,
	} {
		assert.Same(t, &host, h, name)
	}
	assert.Nil(t, All(nil, p.Future()).p.core.host, "it has none")
}

// Property 5: foreign functions run on the host and not on the goroutine that completes: callbacks,
// releases, and OnCancel of other parts. Each runs once.
func TestForeignFunctionsNeverRunOnTheCompleter(t *testing.T) {
	const one, other = 1, 2
	for name, begin := range map[string]func(told func(), p, q *Promise[int]) (complete func()){
		"then": func(told func(), p, _ *Promise[int]) func() {
			Then(p.Future(), func(v int) (int, error) { told(); return v, nil })
			return func() { p.Complete(one, nil) }
		},
		"the loser of a race": func(told func(), p, q *Promise[int]) func() {
			First(func(int) { told() }, p.Future(), q.Future())
			p.Complete(one, nil)
			return func() { assert.True(t, q.Complete(other, nil), "the race has not cancelled it yet") }
		},
		"the others of a race": func(told func(), p, q *Promise[int]) func() {
			q.OnCancel(told)
			First(func(int) {}, p.Future(), q.Future())
			return func() { p.Complete(one, nil) }
		},
		"the values of a whole that failed": func(told func(), p, q *Promise[int]) func() {
			All(func(int) { told() }, p.Future(), q.Future())
			p.Complete(one, nil)
			return func() { q.Complete(0, errTest) }
		},
		"the other parts of a whole that failed": func(told func(), p, q *Promise[int]) func() {
			q.OnCancel(told)
			All(func(int) {}, p.Future(), q.Future())
			return func() { p.Complete(0, errTest) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			var host ledger
			p, q := new(Promise[int]), new(Promise[int])
			p.On(&host)
			q.On(&host)
			count := 0
			complete := begin(func() { count++ }, p, q)
			complete()
			assert.Zero(t, count, "it ran on the completer")
			host.settle()
			assert.Equal(t, 1, count)
		})
	}
}

// A value that reaches a whole after it failed, or was canceled, is released once: by All after the last part was answered, by First as
// it comes; and never on the goroutine that completes.
func TestAValueThatComesTooLateIsReleasedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		gather func(release func(int), fs ...Future[int]) (cancel func() bool)
		fail   error // of the part that decides
	}{
		"all":   {func(release func(int), fs ...Future[int]) func() bool { return All(release, fs...).Cancel }, errTest},
		"first": {func(release func(int), fs ...Future[int]) func() bool { return First(release, fs...).Cancel }, nil},
	} {
		for _, canceled := range []bool{false, true} {
			var host ledger
			var released []int
			var fs []Future[int]
			promises := [4]Promise[int]{}
			for i := range promises {
				promises[i].On(&host)
				fs = append(fs, promises[i].Future())
			}
			var cancel func() bool
			// A function that runs cannot be canceled any more.
			fs[1] = Then(fs[1], func(v int) (int, error) {
				if canceled {
					assert.True(t, cancel())
				} else {
					promises[0].Complete(0, c.fail)
				}
				return v, nil
			})
			cancel = c.gather(func(v int) { released = append(released, v) }, fs...)
			promises[1].Complete(5, nil)
			host.due[0]() // the function
			if !canceled {
				assert.True(t, promises[2].Complete(6, nil), "the others are canceled on the host")
			}
			assert.Empty(t, released, "%s, canceled %t", name, canceled)
			host.due = host.due[1:]
			host.settle()
			if canceled {
				assert.Equal(t, []int{5}, released, name)
			} else {
				assert.ElementsMatch(t, []int{5, 6}, released, name)
			}
			for i := range promises {
				assert.False(t, promises[i].Pending(), "%s: part %d", name, i)
			}
		}
	}
}

// While a function waits for its turn on the host its source is complete: nobody is asked for anything any more, and the error of an
// Await that is given up is the context's.
func TestNobodyIsAskedOnceTheSourceIsComplete(t *testing.T) {
	var host ledger
	p := new(Promise[int])
	p.On(&host)
	p.OnGiveUp(func(error) error { return errTest })
	f := Then(p.Future(), double)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.Await(ctx)
	assert.Equal(t, errTest, err)
	p.Complete(2, nil)
	_, err = f.Await(ctx)
	assert.Equal(t, context.Canceled, err)
	host.settle()
	v, err := f.Await(ctx)
	require.NoError(t, err)
	assert.Equal(t, 4, v)
}

// told is a host and a producer that lists its calls during an Await.
type told struct {
	ledger

	calls []string
	ends  <-chan struct{} // of the context
}

func (l *told) Wait(closed ...<-chan struct{}) {
	l.calls = append(l.calls, "wait")
	if !slices.Contains(closed, l.ends) {
		l.calls = append(l.calls, "the context's end is no reason to return")
	}
}

// A producer hears that a wait begins, says why it is given up, and then hears that it ends. A host waits for the context, too.
func TestAProducerHearsOfAnAwaitInOrder(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l, p := &told{ends: ctx.Done()}, new(Promise[int])
	p.On(l)
	p.OnAwait(func(begins bool) { l.calls = append(l.calls, map[bool]string{true: "begins", false: "ends"}[begins]) })
	p.OnGiveUp(func(ended error) error { l.calls = append(l.calls, "why"); return ended })
	_, err := p.Future().Await(ctx)
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, []string{"begins", "wait", "why", "ends"}, l.calls)
}

// Without functions a promise is as it was.
func TestAPromiseWithNilFunctions(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := new(Promise[int])
	p.OnAwait(nil)
	p.OnGiveUp(nil)
	p.OnCancel(nil)
	_, err := p.Future().Await(ctx)
	require.ErrorIs(t, err, context.Canceled)
	assert.True(t, p.Future().Cancel())
}

// OnCancel's function finds the promise complete, with the cause of the cancellation. From the claim on no completion can win.
func TestACanceledProducerFindsTheAnswer(t *testing.T) {
	for cause, want := range map[error]error{nil: ErrCanceled, errTest: errTest} {
		p := new(Promise[int])
		heard := 0
		p.OnCancel(func() {
			heard++
			v, completed, err := p.Future().Poll()
			assert.True(t, completed)
			assert.Zero(t, v)
			assert.Equal(t, want, err)
		})
		assert.True(t, p.Pending())
		assert.True(t, p.Cancel(cause))
		assert.False(t, p.Cancel(cause))
		assert.Equal(t, 1, heard)
	}
	p := new(Promise[int])
	require.True(t, p.core.claim())
	assert.False(t, p.Pending())
	assert.False(t, p.Future().Completed())
}

// late is a context that ends just when the answer comes: after the last look at the answer, and before the choice.
type late struct {
	context.Context
	p *Promise[int]
}

func (l late) Done() <-chan struct{} {
	l.p.Complete(7, nil)
	return opened.open
}

func (late) Err() error { return context.Canceled }

// An answer that is there is returned with a context in any state, also where both come at once.
func TestAnAnswerComesBeforeTheEndOfTheContext(t *testing.T) {
	for range 100 { // a choice is as a coin falls
		p := new(Promise[int])
		v, err := p.Future().Await(late{t.Context(), p})
		require.NoError(t, err)
		require.Equal(t, 7, v)
	}
}
