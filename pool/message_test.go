package pool

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/pool/core"
)

// listener is a client that records its calls, and panics at one of them.
type listener struct {
	calls   []string
	panicAt int // counted from 1; 0: never
}

func (l *listener) hear(format string, args ...any) {
	l.calls = append(l.calls, fmt.Sprintf(format, args...))
	if len(l.calls) == l.panicAt {
		panic("a client's own mistake")
	}
}

func (l *listener) Granted(token uint64, runs []core.Run, _ bool) {
	l.hear("granted %d %v", token, runs)
}
func (l *listener) Denied(token uint64, err error)         { l.hear("denied %d %v", token, err) }
func (l *listener) Asked(runsGranted uint64, pages uint32) { l.hear("asked %d %d", runsGranted, pages) }

func (l *listener) Offered(token, runsGranted uint64) { l.hear("offered %d %d", token, runsGranted) }
func (l *listener) Demanded()                         { l.hear("demanded") }
func (l *listener) Look()                             { l.hear("look") }
func (l *listener) Usage() core.Usage                 { return core.Usage{} }
func (l *listener) Follow(fence.Mark) error           { return nil }
func (l *listener) Idle() bool                        { return true }

// Every effect is performed once and in order, also when a client panics in one of them: the rest is not affected. The panic
// continues to the goroutine that performs the effects.
func TestEveryEffectIsCarriedOutOnce(t *testing.T) {
	t.Parallel()
	want := []string{
		"granted 1 [{3 4}]", "granted 2 [{9 1}]", "denied 3 no", "denied 4 no", "demanded", "offered 5 6", "asked 7 0", "asked 8 3", "look",
	}
	for panicAt := range len(want) + 1 {
		p, l := new(Pool), &listener{panicAt: panicAt}
		promise := futures.NewPromise[int64](nil)
		e := &effects{pool: p}
		effect.Push(&e.grants, grant{client: l, id: 1, token: 1, runs: []core.Run{{First: 3, Pages: 4}}})
		effect.Push(&e.grants, grant{client: l, id: 1, token: 2, runs: []core.Run{{First: 9, Pages: 1}}})
		effect.Push(&e.denials, denial{client: l, token: 3, err: errors.New("no")})
		effect.Push(&e.denials, denial{client: l, token: 4, err: errors.New("no")})
		effect.Push[Client](&e.demands, l)
		effect.Push(&e.offers, offer{client: l, token: 5, runsGranted: 6})
		effect.Push(&e.reclaims, reclaimRequest{client: l, runsGranted: 7})
		effect.Push(&e.reclaims, reclaimRequest{client: l, runsGranted: 8, pages: 3})
		effect.Push[Client](&e.looks, l)
		effect.Push(&e.ends, completion{promise: promise, bytes: 10})
		if panicAt == 0 {
			e.Perform()
		} else {
			assert.PanicsWithValue(t, "a client's own mistake", e.Perform, panicAt)
		}
		assert.Equal(t, want, l.calls, panicAt)
		bytes, err := promise.Future().Await(t.Context())
		assert.NoError(t, err, panicAt)
		assert.EqualValues(t, 10, bytes, panicAt)
		assert.Same(t, e, p.spare.Load(), "the effects are for the next turn")
		assert.False(t, e.deliver() || e.tell(), "nothing is left in them")
	}
}

// Effects that wait for their reuse keep nothing alive: neither a client that has left, nor an answered request.
func TestPerformedEffectsKeepNothing(t *testing.T) {
	t.Parallel()
	for name, push := range map[string]func(e *effects, l *listener){
		"home":     func(e *effects, l *listener) { effect.Push(&e.home, grant{client: l}) },
		"grants":   func(e *effects, l *listener) { effect.Push(&e.grants, grant{client: l, token: 1}) },
		"denials":  func(e *effects, l *listener) { effect.Push(&e.denials, denial{client: l, token: 1, quiet: true}) },
		"demands":  func(e *effects, l *listener) { effect.Push[Client](&e.demands, l) },
		"offers":   func(e *effects, l *listener) { effect.Push(&e.offers, offer{client: l}) },
		"reclaims": func(e *effects, l *listener) { effect.Push(&e.reclaims, reclaimRequest{client: l}) },
		"looks":    func(e *effects, l *listener) { effect.Push[Client](&e.looks, l) },
		"ends": func(e *effects, l *listener) {
			effect.Push(&e.ends, completion{promise: futures.NewPromise[int64](func() { l.calls = nil })})
		},
	} {
		p := new(Pool)
		left := func() weak.Pointer[listener] {
			l := new(listener)
			e := &effects{pool: p}
			push(e, l)
			e.Perform()
			return weak.Make(l)
		}()
		runtime.GC()
		assert.Nil(t, left.Value(), name)
		runtime.KeepAlive(p)
	}
}
