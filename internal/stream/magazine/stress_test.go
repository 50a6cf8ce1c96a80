package magazine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/recoveredtest"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

const (
	stressWorkers = 8
	stressRounds  = 20_000 // of each; the cache closes after three quarters of all
)

// duel is a handle that several goroutines free at once.
type duel struct {
	handle
	wins atomic.Int64
}

// arena is the state that the goroutines of the stress share.
type arena struct {
	*desk
	swaps  [4]atomic.Pointer[handle] // handles that change hands
	duels  [4]atomic.Pointer[duel]
	fought sync.Map // every duel
	rounds atomic.Int64
}

// worker allocates, frees and misuses.
type worker struct {
	*arena
	random *rand.Rand
	held   []handle
	freed  []handle
}

func (w *worker) round() error {
	switch n := w.random.IntN(16); {
	case n < 6 && len(w.held) < 12:
		return w.take()
	case n < 11:
		return w.drop()
	case n < 13:
		return w.misuse()
	case n < 14:
		return w.trade()
	default:
		return w.fight()
	}
}

func (w *worker) take() error {
	sizes := [...]int64{1, 512, 600, 4096, 65536, 65536, 65537, 100_000, 262_144}
	h, err := w.alloc(sizes[w.random.IntN(len(sizes))])
	if h.Slot == nil || err != nil {
		return err
	}
	if !h.Live(h.word) {
		return errors.New("a fresh handle is not live")
	}
	w.held = append(w.held, h)
	return nil
}

// pick removes a handle that the worker holds.
func (w *worker) pick() (handle, bool) {
	if len(w.held) == 0 {
		return handle{}, false
	}
	i := w.random.IntN(len(w.held))
	h := w.held[i]
	w.held[i] = w.held[len(w.held)-1]
	w.held = w.held[:len(w.held)-1]
	return h, true
}

func (w *worker) drop() error {
	h, ok := w.pick()
	if !ok {
		return nil
	}
	if w.random.IntN(8) == 0 {
		if err := h.Announce(h.word, Announced); err != nil {
			return fmt.Errorf("announce: %w", err)
		}
	}
	if err := w.free(h); err != nil {
		return err
	}
	if len(w.freed) < 64 {
		w.freed = append(w.freed, h)
	} else {
		w.freed[w.random.IntN(64)] = h
	}
	return nil
}

// misuse frees and announces a handle that was freed some time ago.
func (w *worker) misuse() error {
	if len(w.freed) == 0 {
		return nil
	}
	h := w.freed[w.random.IntN(len(w.freed))]
	before := h.Frees()
	err := h.Free(h.word)
	after := h.Frees()
	mine := h.word>>generationShift + 1 // the frees of the slot when this handle had been freed
	switch {
	case !errors.Is(err, ErrBadFree):
		return fmt.Errorf("a second free said %w", err)
	case before > mine && !errors.Is(err, ErrStale), after == mine && !errors.Is(err, ErrDoubleFree):
		return fmt.Errorf("a free of generation %d at %d to %d said %w", mine-1, before, after, err)
	case h.Live(h.word):
		return errors.New("a freed handle lives")
	}
	if err := h.Announce(h.word, Detached); !errors.Is(err, ErrStale) {
		return fmt.Errorf("announce of a freed handle said %w", err)
	}
	return nil
}

// trade swaps a handle with the one that another goroutine left.
func (w *worker) trade() error {
	h, ok := w.pick()
	if !ok {
		return nil
	}
	if other := w.swaps[w.random.IntN(len(w.swaps))].Swap(&h); other != nil {
		w.held = append(w.held, *other)
	}
	return nil
}

// fight puts up a handle for all to free, or joins the free of one that is up.
func (w *worker) fight() error {
	place := &w.duels[w.random.IntN(len(w.duels))]
	d := place.Load()
	if h, ok := w.pick(); ok {
		if err := w.unclaim(h); err != nil {
			return err
		}
		d = &duel{handle: h}
		w.fought.Store(d, true)
		place.Store(d)
	}
	if d == nil {
		return nil
	}
	err := w.freeUnclaimed(d.handle)
	if err == nil {
		d.wins.Add(1)
		return nil
	}
	if !errors.Is(err, ErrBadFree) {
		return fmt.Errorf("a free that lost said %w", err)
	}
	return nil
}

// govern is one turn of the owner.
func (a *arena) govern(random *rand.Rand) {
	a.turn.Lock()
	defer a.turn.Unlock()
	if a.closed {
		return
	}
	a.drain()
	switch random.IntN(5) {
	case 0:
		a.releaseUnused()
	case 1:
		if len(a.kept) > 0 {
			a.evict(a.kept[random.IntN(len(a.kept))])
		}
	case 2:
		a.owner.Spans.Each(func(m *Span) {
			if m.Open && m.IsInstalled() && m.mask.Load() == 0 {
				a.owner.Spans.Park(m)
			}
		})
	case 3:
		if random.IntN(2) == 0 {
			if m := a.owner.Spans.At(random.IntN(FirstLarge), 0); m != nil {
				m.contended.Store(contendedLimit)
				a.owner.Spans.Shard(m, random.IntN(Shards))
			}
			return
		}
		if len(a.kept) > 0 {
			m := a.kept[0]
			m.contended.Store(contendedLimit)
			a.owner.Exacts.Shard(m, random.IntN(Shards))
		}
	default:
		class, hint := random.IntN(FirstLarge), random.IntN(Shards)
		if a.owner.Spans.At(class, hint) != nil {
			return
		}
		if m := a.owner.Spans.Ready(class); m != nil {
			a.owner.Spans.Install(m, hint)
		}
	}
}

// Eight goroutines and an owner that parks, evicts, shards and closes: no memory is held twice, none is lost,
// every misuse is refused by its name and one of several frees succeeds.
func TestStress(t *testing.T) {
	a := &arena{desk: newDesk()}
	var all sync.WaitGroup
	for i := range stressWorkers {
		w := &worker{arena: a, random: rand.New(rand.NewPCG(uint64(i), 1))}
		all.Go(func() {
			for range stressRounds {
				a.rounds.Add(1)
				if err := w.round(); !assert.NoError(t, err) {
					a.rounds.Add(stressWorkers * stressRounds) // let the owner end
					return
				}
			}
			for _, h := range w.held {
				assert.NoError(t, a.free(h))
			}
		})
	}
	all.Go(func() {
		random := rand.New(rand.NewPCG(stressWorkers, 1))
		for a.rounds.Load() < stressWorkers*stressRounds*3/4 {
			a.govern(random)
			runtime.Gosched()
		}
		a.turn.Lock()
		defer a.turn.Unlock()
		a.close()
	})
	all.Wait()

	wakes := a.wakes.Load()
	for i := range a.swaps {
		if h := a.swaps[i].Load(); h != nil {
			require.NoError(t, a.free(*h))
			wakes++
		}
	}
	assert.Equal(t, wakes, a.wakes.Load(), "each block that came home to the closed cache wakes the owner")
	a.fought.Range(func(d, _ any) bool {
		return assert.EqualValues(t, 1, d.(*duel).wins.Load(), "frees of one handle that succeeded")
	})
	assert.Empty(t, a.live())
	assert.Zero(t, a.out, "regions in use")
	for i := range a.claims {
		require.Zero(t, a.claims[i].Load(), "a block is held still")
	}
	a.check(t)
	t.Logf("%d frees, %d slots came home with flags, %d wakes", a.frees.Load(), a.flagged, a.wakes.Load())
}
