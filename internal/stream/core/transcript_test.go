package core

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
	"github.com/go-vram/vram/internal/transcript"
)

// TestTranscripts plays the scripts in testdata; the reference checks every command as in the model test.
//
// Commands: new page=U [bytes=SIZE] [ranges=N], grant FIRST PAGES, alloc NAME SIZE, queued NAME SIZE (the
// core is asked though a magazine may have one by now), repeat COUNT SIZE (alloc and free), free NAME...,
// again NAME, undo NAME, budget [bytes=SIZE] [ranges=N], excess, release [PAGES], close, return, end, books,
// magazine SIZE. Addresses and lengths are answered in units of 512 bytes.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	transcript.Run(t, func(t *testing.T) transcript.Machine {
		t.Helper()
		s := &script{t: t, named: map[string]*buffer{}, waits: map[string]bool{}}
		// Check is not called after each command: a check drains, which would hide recent frees
		return transcript.Machine{Obey: s.obey, Check: func() { s.w.check() }}
	})
}

// script is a world whose buffers have names.
type script struct {
	t     *testing.T
	w     *world
	named map[string]*buffer
	waits map[string]bool // asked before, and waits for pages
}

func (s *script) obey(words []string) string {
	verb, args := words[0], words[1:]
	switch verb {
	case "new":
		s.w = newWorld(s.t, uint32(s.option(args, "page")), s.budget(args))
	case "grant":
		require.True(s.t, s.w.grant(uint32(s.number(args[0])), uint32(s.number(args[1]))))
	case "alloc", "queued":
		return s.alloc(args[0], s.size(args[1]), verb == "queued")
	case "repeat":
		size := s.size(args[1])
		for range s.number(args[0]) {
			answer := s.alloc("repeated", size, false)
			require.NotContains(s.t, answer, "needs")
			s.w.free(s.named["repeated"])
		}
	case "free":
		for _, name := range args {
			s.w.free(s.named[name])
		}
	case "again":
		b := s.named[args[0]]
		s.w.freeAgain(b)
		return b.slot.Free(b.word).Error()
	case "undo":
		s.w.undo(s.named[args[0]], s.w.core.misses.byPool)
	case "budget":
		s.w.core.SetBudget(s.budget(args))
	case "excess":
		return s.back(s.w.core.Excess(false))
	case "release":
		limit := ^uint32(0)
		if len(args) > 0 {
			limit = uint32(s.number(args[0]))
		}
		return s.back(s.w.core.Release(limit, false))
	case "close":
		s.w.core.Close()
		s.w.closed = true
	case "return":
		return s.back(s.w.core.Return())
	case "end":
		s.w.core.End()
	case "books":
		return s.books()
	case "magazine":
		return s.magazine(s.size(args[0]))
	default:
		require.Failf(s.t, "a command that nobody knows", "%q", words)
	}
	return ""
}

// alloc prints the buffer's place, the kind of its slot, and the level that served it.
func (s *script) alloc(name string, bytes int64, queued bool) string {
	var slot *magazine.Slot
	var word uint64
	if !queued {
		slot, word = s.w.cache.Take(bytes)
	}
	by := "the magazine"
	if slot == nil {
		var need uint32
		if slot, need = s.w.core.Alloc(max(bytes, 1), 0); slot == nil {
			if !s.waits[name] {
				s.waits[name] = true
				s.w.core.Wait(bytes)
			}
			return fmt.Sprintf("%s needs %s", name, count(int(need), "page"))
		}
		by = "the turn"
		if s.waits[name] {
			delete(s.waits, name)
			s.w.core.Wait(-bytes)
			by = "the turn, after it waited"
			s.w.byPool++
			s.w.core.Served(true)
		} else {
			s.w.own++
			s.w.core.Served(false)
		}
		word = slot.Word()
	}
	b := s.w.book(slot, word, bytes)
	s.named[name] = b
	kind := "a slot that keeps its block"
	switch m := slot.Magazine(); {
	case m.Loose():
		kind = "a loose slot"
	case m.Span() != nil:
		kind = fmt.Sprintf("a slot of class %d", m.Span().Class)
	}
	return fmt.Sprintf("%s at %d+%d in %s, by %s", name, b.from, b.units, kind, by)
}

func (s *script) back(runs []Run) string {
	s.w.back(runs)
	words := []string{"gives up"}
	for _, r := range runs {
		words = append(words, fmt.Sprintf("%d+%d", r.First, r.Pages))
	}
	if len(runs) == 0 {
		return "gives up nothing"
	}
	return strings.Join(words, " ")
}

func (s *script) books() string {
	c := s.w.core
	n := c.Snapshot()
	in := func(bytes int64) int64 { return bytes >> sizeclass.UnitShift }
	return fmt.Sprintf("held %d: live %d in %s, cached %d; free %d in %s, longest %d; spans %d, kept %d; live for the pool %d",
		in(n.HeldBytes), in(n.LiveBytes), count(int(n.LiveCount), "buffer"), in(n.CachedBytes),
		c.heap.FreeUnits(), count(n.FreeRanges, "range"), in(n.LargestFreeBytes), c.spans.units, c.retention.units, in(c.LiveBytes()))
}

// magazine prints the state of a length's magazine, and the length's heat.
func (s *script) magazine(bytes int64) string {
	units := uint32(sizeclass.Units(bytes))
	state := "closed"
	s.w.core.owner.Exacts.Each(func(m *magazine.Exact) {
		if m.Units() == units && m.Open {
			state = fmt.Sprintf("open, %s attached, %d free", count(m.Attached(), "slot"), m.FreeSlots())
		}
	})
	t := s.w.core.retention.track[int(magazine.BucketOf(uint64(units)))-magazine.FirstLarge]
	if t.units != units {
		return state
	}
	return fmt.Sprintf("%s, heat %d", state, t.heat)
}

func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

func (s *script) budget(args []string) Budget {
	b := Budget{CacheRanges: s.option(args, "ranges")}
	if size, found := transcript.Option(args, "bytes"); found {
		b.CacheBytes = s.size(size)
	}
	return b
}

func (s *script) option(args []string, name string) int {
	if value, found := transcript.Option(args, name); found {
		return s.number(value)
	}
	return 0
}

func (s *script) number(word string) int { return int(transcript.Number(s.t, word)) }

// size reads 512, 4K, 2M, or 300u for units.
func (s *script) size(word string) int64 {
	for suffix, unit := range map[string]int64{"u": sizeclass.UnitBytes, "K": kib, "M": mib} {
		if n, ok := strings.CutSuffix(word, suffix); ok {
			return int64(s.number(n)) * unit
		}
	}
	return int64(s.number(word))
}
