package futures

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// moments are the calls of an Await, at which others can act.
func moments() []string {
	return []string{"wait begins", "host waits", "context is asked for its end", "context is asked why", "producer explains", "wait ends"}
}

// interrupted is the context, the host and the producer of an Await. It calls happen at one moment.
type interrupted struct {
	context.Context
	at     string
	happen func()
}

func (i *interrupted) reach(moment string) {
	if i.at == moment {
		i.happen()
	}
}

func (i *interrupted) Done() <-chan struct{} {
	i.reach("context is asked for its end")
	return opened.open
}
func (i *interrupted) Err() error { i.reach("context is asked why"); return context.Canceled }

func (i *interrupted) Wait(...<-chan struct{}) { i.reach("host waits") }
func (*interrupted) Go(_ string, f func())     { go f() }

func (i *interrupted) awaited(begins bool) {
	if begins {
		i.reach("wait begins")
	} else {
		i.reach("wait ends")
	}
}

func (i *interrupted) explain(ended error) error {
	i.reach("producer explains")
	return fmt.Errorf("explained: %w", ended)
}

// An Await whose context has ended returns the answer, or an error that wraps the context's, wherever the answer arrives while it
// runs: never neither. The answer is there for the next one.
func TestAnAnswerAtAnyMomentOfAnAwait(t *testing.T) {
	for name, derive := range map[string]func(p, q Future[int]) Future[int]{
		"itself": func(p, _ Future[int]) Future[int] { return p },
		"then":   func(p, _ Future[int]) Future[int] { return Then(p, double) },
		"chain":  func(p, _ Future[int]) Future[int] { return Then(Then(p, double), double) },
		"all": func(p, q Future[int]) Future[int] {
			return Then(All(nil, p, q), func(v []int) (int, error) { return v[0] + v[1], nil })
		},
		"first": func(p, q Future[int]) Future[int] { return First(nil, p, q) },
	} {
		for _, at := range moments() {
			for value, failure := range map[int]error{7: nil, 0: errTest} {
				p, q := new(Promise[int]), new(Promise[int])
				answer := func() { p.Complete(value, failure); q.Complete(value, failure) }
				i := &interrupted{Context: t.Context(), at: at, happen: answer}
				for _, of := range []*Promise[int]{p, q} {
					of.On(i)
					of.OnAwait(i.awaited)
					of.OnGiveUp(i.explain)
				}
				f := derive(p.Future(), q.Future())
				v, err := f.Await(i)
				if !errors.Is(err, context.Canceled) {
					require.ErrorIs(t, err, failure, "%s, %s", name, at)
					assert.Equal(t, err == nil, v > 0, "%s, %s: %d, %v", name, at, v, err)
				}
				answer()
				later, err := f.Await(context.Background())
				require.ErrorIs(t, err, failure)
				assert.Equal(t, err == nil, later > 0)
			}
		}
	}
}

// An answer is found at each of the probes and after the last, also while the goroutine that completes is held up before it
// opens the gate. On one processor the two take turns with each yield.
func TestAnAnswerAtAnyProbeOfAnAwait(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for yields := range 2 * probeCount {
		for heldUp := range 3 {
			p := new(Promise[int])
			var completer sync.WaitGroup
			completer.Go(func() {
				for range yields {
					runtime.Gosched()
				}
				assert.True(t, p.core.claim())
				first := p.seal(7, nil)
				for range heldUp {
					runtime.Gosched()
				}
				p.core.openGate()
				first.notifyAll()
			})
			v, err := p.Future().Await(t.Context())
			require.NoError(t, err)
			require.Equal(t, 7, v)
			completer.Wait()
		}
	}
}
