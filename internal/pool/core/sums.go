package core

import (
	"fmt"
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

// count brings the sums up to date after a change of a client that has joined.
func (s *sums) count(cl *client) {
	s.set(cl, share{
		usedBytes: cl.usage.UsedBytes, ownPeakBytes: cl.ownPeak.bytes(), holding: cl.liveBytes > 0 || cl.heldPages > 0,
		holds: cl.heldPages > 0, free: cl.usage.FreePages > 0, stale: cl.usage.Stale,
	})
}

// set replaces the share of a client.
func (s *sums) set(cl *client, now share) {
	before := cl.share
	if now == before {
		return
	}
	cl.share = now
	s.usedBytes += now.usedBytes - before.usedBytes
	s.ownPeakBytes += now.ownPeakBytes - before.ownPeakBytes
	if now.holding != before.holding {
		if s.holding++; before.holding {
			s.holding -= 2
		}
	}
	enter(&s.holders, cl.id, before.holds, now.holds)
	enter(&s.free, cl.id, before.free, now.free)
	enter(&s.stale, cl.id, before.stale, now.stale)
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

// check holds the sums against the clients.
func (cs *clients) check() error {
	var all sums
	var givenBytes int64
	for _, id := range cs.ids {
		cl := *cs.all[id]
		givenBytes += cl.givenBytes
		cl.share = share{}
		all.count(&cl)
	}
	s := &cs.sums
	if s.usedBytes != all.usedBytes || s.ownPeakBytes != all.ownPeakBytes || s.holding != all.holding ||
		!slices.Equal(s.holders, all.holders) || !slices.Equal(s.free, all.free) || !slices.Equal(s.stale, all.stale) {
		return fmt.Errorf("pool: the clients come to %+v, the books say %+v", all, *s)
	}
	if givenBytes != cs.givenBytes {
		return fmt.Errorf("pool: the callers of all clients have %d bytes, the books say %d", givenBytes, cs.givenBytes)
	}
	return nil
}
