package streams

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/fence"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// edits is a list that goroutines read without a lock, and a random change of it.
type edits[T comparable] struct {
	list func() []T
	edit func()
}

// keep changes the list, and checks that no list that a reader had found changes.
func (e edits[T]) keep(t *testing.T) {
	t.Helper()
	var found, copies [][]T
	longest := 0
	for range 300 {
		e.edit()
		now := e.list()
		longest = max(longest, len(now))
		if last := len(found) - 1; last >= 0 && !slices.Equal(found[last], now) && len(now) > 0 && len(found[last]) > 0 {
			require.NotSame(t, unsafe.SliceData(found[last]), unsafe.SliceData(now), "an editor that fails would write to it")
		}
		found, copies = append(found, now), append(copies, slices.Clone(now))
	}
	for i := range found {
		require.True(t, slices.Equal(copies[i], found[i]), "after edit %d", i)
	}
	assert.Positive(t, longest)
}

// TestListsThatAreReplacedDoNotChange is about every list of the package whose declaration says so.
func TestListsThatAreReplacedDoNotChange(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	one := func(n int) int { return random.IntN(n) }
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	load := func(list func() *progress) *progress {
		if p := list(); p != nil {
			return p
		}
		return &progress{}
	}
	pointee := func(of *[]*cudaStream) []*cudaStream {
		if of == nil {
			return nil
		}
		return *of
	}
	streams := func() []*cudaStream {
		all := make([]*cudaStream, 8)
		for i := range all {
			all[i] = &cudaStream{line: &fence.Timeline{}}
			all[i].line.Init(nil)
		}
		return all
	}

	waits := make([]*suspension, 6)
	for i := range waits {
		waits[i] = &suspension{}
	}
	t.Run("suspensions", edits[*suspension]{
		func() []*suspension { return load(s.suspensions.progress.Load).all },
		func() {
			if i := one(len(waits)); slices.Contains(load(s.suspensions.progress.Load).all, waits[i]) {
				s.suspensions.resume(waits[i])
				waits[i] = &suspension{}
			} else {
				s.suspensions.suspend(waits[i])
			}
		},
	}.keep)
	t.Run("freers", edits[poolcore.Client]{
		func() []poolcore.Client { return load(s.suspensions.progress.Load).freedBy },
		func() { s.suspensions.addFreer(poolcore.Client(2 + one(100))) },
	}.keep)

	var peers Peers
	joined := make([]*peer, 6)
	for i := range joined {
		joined[i] = &peer{id: uint32(i + 1)}
	}
	t.Run("streams of a device", edits[*peer]{peers.list, func() {
		if p := joined[one(len(joined))]; slices.Contains(peers.list(), p) {
			peers.leave(p)
		} else {
			peers.change(func(all []*peer) []*peer { return append(all, p) })
		}
	}}.keep)
	t.Run("devices that are reached", edits[*Peers]{
		func() []*Peers {
			if all := peers.reached.Load(); all != nil {
				return *all
			}
			return nil
		},
		func() { peers.Reach(&Peers{}) },
	}.keep)

	lines := make([]*fence.Timeline, 6)
	for i := range lines {
		lines[i] = &fence.Timeline{}
	}
	watcher := &peer{}
	t.Run("watched lines", edits[*fence.Timeline]{
		func() []*fence.Timeline {
			if all := watcher.watched.Load(); all != nil {
				return *all
			}
			return nil
		},
		func() {
			if l := lines[one(len(lines))]; !watcher.watchBegins(l) {
				watcher.watchEnds(l)
			}
		},
	}.keep)

	var o Observers
	observers := make([]*Observer, 6)
	for i := range observers {
		observers[i] = &Observer{}
	}
	t.Run("observers", edits[*Observer]{o.All, func() {
		x := observers[one(len(observers))]
		o.EditAll(func(all []*Observer) []*Observer {
			if i := slices.Index(all, x); i >= 0 {
				return slices.Delete(all, i, i+1)
			}
			return append(all, x)
		})
	}}.keep)

	var copies hostCopies
	begun := []*hostCopy{}
	t.Run("copies of the host", edits[*hostCopy]{
		func() []*hostCopy {
			if all := copies.all.Load(); all != nil {
				return *all
			}
			return nil
		},
		func() {
			if i := one(8); i < len(begun) {
				copies.end(begun[i])
				begun = slices.Delete(begun, i, i+1)
			} else {
				begun = append(begun, copies.begin(Buffer{}))
			}
		},
	}.keep)

	var held hands
	t.Run("hands", edits[*magazine.Hand]{held.list, func() { held.keep(&magazine.Hand{To: uint32(one(1000))}) }}.keep)

	var c crossings
	all := streams()
	replace := func() *cudaStream { // one of them; at times one that has finished is replaced
		i := one(len(all))
		if one(3) == 0 {
			all[i].line.Finish()
			all[i] = streams()[0]
		}
		return all[i]
	}
	t.Run("users of a stream's memory", edits[*cudaStream]{
		func() []*cudaStream { return pointee(c.users.Load()) },
		func() { c.add(replace()) },
	}.keep)
	t.Run("counts of others", edits[*seen]{
		func() []*seen {
			if all := c.seen.Load(); all != nil {
				return *all
			}
			return nil
		},
		func() { c.of(replace()) },
	}.keep)
	var works order
	t.Run("readers", edits[*reader]{works.entries, func() { works.join(replace()) }}.keep)
}
