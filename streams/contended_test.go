package streams

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/fence/line"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/internal/stream/magazine"
	"github.com/go-vram/vram/internal/together"
)

const (
	changers = 3 // goroutines that change one list
	changes  = 6 // of each
)

// changed is a list or a count under test, of which elements have the numbers below changers*changes.
type changed struct {
	add    func(i int)
	remove func(i int)  // nil: elements stay
	left   func() []int // elements
}

// Of changes to one list by several goroutines none is lost, and none is made twice.
func TestListsAmongGoroutines(t *testing.T) {
	t.Parallel()
	const all = changers * changes
	var streams [all]*cudaStream
	var lines [all]*fence.Timeline
	var handed [all]*magazine.Hand
	var peers [all]*peer
	owner := magazine.NewOwner(new(magazine.Cache), nil)
	for i := range all {
		lines[i] = fence.NewTimeline(nil, 0, false, nil)
		streams[i] = &cudaStream{line: lines[i]}
		peers[i] = &peer{id: uint32(i)}           //nolint:gosec // a few
		handed[i] = &magazine.Hand{To: uint32(i)} //nolint:gosec // a few
		s := owner.Loose.Take()
		s.Units = 1
		_, err := s.Move(s.Word(), &line.Line{}, 1, handed[i]) // else the hand is empty, and not kept
		require.NoError(t, err)
	}
	for name, begin := range map[string]func() changed{
		"hands": func() changed {
			var h hands
			return changed{func(i int) { h.keep(handed[i]) }, nil, func() []int { return places(handed[:], h.list()) }}
		},
		"users": func() changed {
			var c crossings
			return changed{func(i int) { c.add(streams[i]) }, nil, func() []int { return places(streams[:], *c.users.Load()) }}
		},
		"counts of others": func() changed {
			var c crossings
			return changed{func(i int) { c.of(streams[i]).count.Add(1) }, nil, func() (left []int) {
				for _, one := range *c.seen.Load() {
					if one.count.Load() == 1 {
						left = append(left, places(streams[:], []*cudaStream{one.of})...)
					}
				}
				return left
			}}
		},
		"readers": func() changed {
			o := &order{}
			return changed{func(i int) { o.reader(streams[i]).reads.Add(1) }, nil, func() (left []int) {
				for _, r := range o.entries() {
					if r.reads.Load() == 1 {
						left = append(left, places(streams[:], []*cudaStream{r.of})...)
					}
				}
				return left
			}}
		},
		"copies": func() changed {
			var h hostCopies
			var begun [all]*hostCopy
			return changed{func(i int) { begun[i] = h.begin(Buffer{}) }, func(i int) { h.end(begun[i]) }, func() []int {
				return places(begun[:], *h.all.Load())
			}}
		},
		"streams": func() changed {
			p := &Peers{}
			join := func(i int) { p.change(func(all []*peer) []*peer { return append(all, peers[i]) }) }
			return changed{join, func(i int) { p.leave(peers[i]) }, func() []int { return places(peers[:], p.list()) }}
		},
		"watched lines": func() changed {
			s := &peer{}
			return changed{func(i int) { s.watchBegins(lines[i]) }, func(i int) { s.watchEnds(lines[i]) }, func() []int {
				return places(lines[:], *s.watched.Load())
			}}
		},
		"freers": func() changed {
			s := &suspensions{}
			add := func(i int) {
				s.edit(func(p *progress) { p.freedBy = append(p.freedBy[:len(p.freedBy):len(p.freedBy)], poolcore.Client(i)) }) //nolint:gosec // a few
			}
			return changed{add, nil, func() (left []int) {
				p := s.progress.Load()
				assert.EqualValues(t, len(p.freedBy), p.number, "a number for each change")
				for _, c := range p.freedBy {
					left = append(left, int(c))
				}
				return left
			}}
		},
		"stranded waits": func() changed {
			k := &strandedWaits{}
			k.now.Store(&strandedCount{changed: make(chan struct{})})
			return changed{func(int) { k.add(1) }, nil, func() (left []int) {
				for i := range k.now.Load().stuck {
					left = append(left, i)
				}
				return left
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 150 {
				list := begin()
				var want []int
				for i := range all {
					if list.remove == nil || i%2 == 0 {
						want = append(want, i)
					}
				}
				together.Run(changers, func(g int) {
					for i := g * changes; i < (g+1)*changes; i++ {
						list.add(i)
					}
					for i := g * changes; i < (g+1)*changes && list.remove != nil; i++ {
						if i%2 != 0 {
							list.remove(i)
						}
					}
				})
				require.ElementsMatch(t, want, list.left())
			}
		})
	}
}

// places returns the places of elements in all.
func places[E comparable](all, elements []E) (at []int) {
	for _, e := range elements {
		at = append(at, slices.Index(all, e))
	}
	return at
}

// Goroutines that ask for the entry of one stream at once get the same one, and lose nothing that they note there.
func TestAnEntryAmongGoroutines(t *testing.T) {
	t.Parallel()
	of := &cudaStream{line: fence.NewTimeline(nil, 0, false, nil)}
	for range 300 {
		var c crossings
		var seen [changers]*seen
		o := &order{}
		var readers [changers]*reader
		together.Run(changers, func(g int) {
			seen[g], readers[g] = c.of(of), o.reader(of)
			c.add(of)
		})
		for g := range changers {
			require.Same(t, seen[0], seen[g])
			require.Same(t, readers[0], readers[g])
		}
		require.Len(t, *c.users.Load(), 1)
	}
}

// Of several Closes at once one ends the stream.
func TestClosesAmongGoroutines(t *testing.T) {
	t.Parallel()
	r := newRig(t, 16*mib)
	h := &r.stream(core.Budget{}).cuda
	for range 300 {
		var first atomic.Int64
		together.Run(changers, func(int) {
			h.calls.Add(1)
			ends, err := h.claimClose()
			assert.NoError(t, err)
			if ends {
				first.Add(1)
			}
		})
		require.EqualValues(t, 1, first.Load())
		h.closing.Store(false)
	}
}

// All calls that hear of the device's fault at once name the one that was noted first.
func TestTheFirstFaultAmongCalls(t *testing.T) {
	t.Parallel()
	r := newRig(t, 16*mib)
	require.NoError(t, r.faults.Add(fault.Rule{Func: "cuMemGetInfo", Result: cudadrv.IllegalAddress}))
	defer r.faults.Clear()
	var f Faults
	broken := &cudadrv.CallError{Func: "cuLaunchKernel", Result: cudadrv.IllegalAddress}
	var later, before *DeviceFailedError
	failed := f.Failed(broken, r.device, func() ([]FailedLaunch, bool) {
		require.ErrorAs(t, f.Failed(broken, r.device, func() ([]FailedLaunch, bool) { return nil, true }), &later)
		return nil, true
	})
	require.ErrorAs(t, failed, &before)
	require.NotNil(t, before.First)
	assert.Same(t, later.First, before.First)
}

// The value that is kept with a stream is the first one, also for a call that makes another at the same time.
func TestAttachedValuesMeet(t *testing.T) {
	t.Parallel()
	x := Submitter{&Stream{}}
	var later any
	value := x.Attached(func() any {
		later = x.Attached(func() any { return new(int) })
		return new(int)
	})
	assert.Same(t, later, value)
	assert.Same(t, later, x.Attached(nil))
}

// lookedAt is a stream's turn that counts the looks for its largest blocks.
type lookedAt struct {
	peerTurn
	looks atomic.Int64
}

func (l *lookedAt) largestBlocks(*core.Largest, bool) { l.looks.Add(1) }

// Goroutines that want to know the largest buffers at once share one look.
func TestLooksForTheLargestBuffersAmongGoroutines(t *testing.T) {
	t.Parallel()
	l := &lookedAt{}
	p := &Peers{}
	p.change(func([]*peer) []*peer { return []*peer{{entry: l}} })
	for i := range 500 {
		together.Run(changers, func(int) { p.Largest() })
		require.EqualValues(t, i+1, l.looks.Load())
		p.expire()
	}
}
