package core

import (
	"slices"
)

// sums are figures over all clients, kept up to date with each change of one: no decision visits the clients that have nothing
// to do with it, however many there are.
type sums struct {
	usedBytes    int64 // that all use at most, or want, as far as is known
	ownPeakBytes int64 // the sum of the most that each used by itself
	holding      int   // clients that have memory, or had and may have it back

	holders []Client // that have pages, rising, as the next ones
	free    []Client // that have published free pages
	stale   []Client // that have more to publish
}

// share is one client's part of the sums.
type share struct {
	usedBytes, ownPeakBytes     int64
	holding, holds, free, stale bool
}

// replace exchanges the share of a client.
func (s *sums) replace(id Client, before, now share) {
	if now == before {
		return
	}
	s.usedBytes += now.usedBytes - before.usedBytes
	s.ownPeakBytes += now.ownPeakBytes - before.ownPeakBytes
	if now.holding != before.holding {
		if s.holding++; before.holding {
			s.holding -= 2
		}
	}
	enter(&s.holders, id, before.holds, now.holds)
	enter(&s.free, id, before.free, now.free)
	enter(&s.stale, id, before.stale, now.stale)
}

// enter adds a client to a rising list, or removes it.
func enter(list *[]Client, id Client, was, is bool) {
	if was == is {
		return
	}
	at, _ := slices.BinarySearch(*list, id)
	if is {
		*list = slices.Insert(*list, at, id)
	} else {
		*list = slices.Delete(*list, at, at+1)
	}
}

// peak is a maximum over this window of time and the one before.
type peak struct{ before, now int64 }

func (p *peak) note(bytes int64) { p.now = max(p.now, bytes) }

func (p *peak) bytes() int64 { return max(p.before, p.now) }

// roll begins a window, in which there are so many bytes to begin with: no more than were noted.
func (p *peak) roll(bytes int64) { p.before, p.now = p.now, min(bytes, p.bytes()) }
