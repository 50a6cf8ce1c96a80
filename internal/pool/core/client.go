package core

import (
	"fmt"
	"slices"

	"github.com/go-vram/vram/internal/watermark"
)

// client is the pool's record of a stream, from Join until it has left and holds nothing.
type client struct {
	id        Client
	heldPages uint64
	liveBytes int64 // as its last Refill or Return reported: an upper bound since
	usage     Usage // at the last Refill of any client, Look or Tick
	ownPeak   peak  // of the bytes that it used
	// givenBytes are the part of liveBytes that its callers have. They rise with each grant.
	givenBytes int64
	leftBytes  int64 // once it is gone: of its remaining live buffers, as last reported
	passed     Fence // the newest that has
	suspended  uint64
	dirty      bool // may keep pages that it was not asked for yet
	excluded   bool // see Exclude
	gone       bool
	synced     bool // gone, and its returns are clean
	adopted    bool // see Join
	reserves   bool
	reserved   []Run // that others may draw from
	// thriftTicks is the number of ticks for which it is lent no more than it asks for, since it has returned a surplus.
	// Otherwise its next request would be lent all of that again, and no page would get old.
	thriftTicks uint32
	// wakingTicks is the number of ticks for which it is lent no more at once than it has used lately where too much is
	// reserved, since it has been idle and returned its memory. Otherwise a client that pauses again and again would be lent
	// all free memory each time, and no page would get old.
	wakingTicks uint32
	way         way // of its Refills; nil: the ladder
	answer
	share share // of the sums over all clients
}

// answer records a client's last answer to an Ask, and whether one is to come.
type answer struct {
	asked           bool
	askedPages      uint32 // as in that Ask
	askedAgain      bool   // for all, during a smaller Ask or an earlier one
	moves           bool   // its answer to that Ask is for another client
	answering       bool   // an answer has come, and counts from answerAt on
	answerAt        uint64 // of arrived
	arrived         uint64 // of its messages: see Return.Sent
	uncoveredBytes  int64
	pendingBytes    int64
	chargedToOthers bool // all that it holds, as it last reported
}

// buffersBytes returns the bytes in buffers of a client, or cached by its magazines, as it last reported.
func (cl *client) buffersBytes() int64 {
	if cl.gone {
		return cl.leftBytes
	}
	return cl.givenBytes
}

// sum returns a client's part of the sums.
func (cl *client) sum() share {
	return share{
		usedBytes: cl.usage.UsedBytes, ownPeakBytes: cl.ownPeak.bytes(), holding: cl.liveBytes > 0 || cl.heldPages > 0,
		holds: cl.heldPages > 0, free: cl.usage.FreePages > 0, stale: cl.usage.Stale,
	}
}

// count brings the sums up to date after a change of a client that has joined.
func (cs *clients) count(cl *client) {
	now := cl.sum()
	cs.replace(cl.id, cl.share, now)
	cl.share = now
}

// report records the bytes that a client reports in use.
func (cs *clients) report(cl *client, liveBytes int64) {
	cl.liveBytes, cl.usage.UsedBytes = liveBytes, liveBytes
	cl.ownPeak.note(liveBytes)
	cs.count(cl)
}

// hold adds pages to a client's holding.
func (cs *clients) hold(cl *client, pages uint64) {
	cl.heldPages += pages
	cs.count(cl)
}

func (cs *clients) release(cl *client, pages uint64) {
	cl.heldPages -= pages
	cs.count(cl)
}

// mayReturn reports whether a client may have anything to return.
func (cl *client) mayReturn() bool { return !cl.reserves && (!cl.gone || cl.heldPages > 0) }

// Usage is the memory of a client's stream at one moment, as known without a turn of it.
type Usage struct {
	UsedBytes    int64  // in buffers and magazines, and wanted by requests that wait
	FreePages    uint32 // that its free ranges hold, at most
	MaxFreePages uint32 // that the longest of them holds, at most
	Stale        bool   // callers have freed more since: a turn has to collect it
}

// returned counts an answer to an Ask for so many pages, or, with 0, for all. The client publishes again before the next
// request, and has that much less until then.
func (u *Usage) returned(pages, askedPages uint32) {
	u.FreePages -= min(u.FreePages, pages)
	if pages < askedPages || askedPages == 0 { // it has no more
		u.FreePages = 0
	}
	u.MaxFreePages = min(u.MaxFreePages, u.FreePages)
}

// note enters a Return, and reports whether it completes the client's answer to an Ask: all earlier messages have arrived.
func (cl *client) note(m Return) (answered bool) {
	cl.arrived += m.sent()
	if m.Answer {
		cl.uncoveredBytes, cl.pendingBytes, cl.chargedToOthers = m.UncoveredBytes, m.PendingBytes, m.LetsOnly
	}
	cl.dirty = cl.dirty || m.Kept > 0 || m.Answer && cl.askedPages > 0 || !m.Answer && (m.Stirred || len(m.Runs) > 0)
	if m.Answer && cl.asked {
		cl.answering, cl.answerAt = true, m.Sent
	}
	if !cl.answering || cl.arrived < cl.answerAt {
		return false
	}
	cl.asked, cl.answering = false, false
	return true
}

// clients are the clients that have joined and are not forgotten.
type clients struct {
	all map[Client]*client
	ids []Client // ascending, so that equal histories have equal steps

	sums
	givenBytes int64 // of all
	givenPeak  watermark.Mark
	// unclaimed notes that clients were asked for pages that may have to be lent back, asker the client that was asked for its
	// own sake.
	unclaimed bool
	asker     Client
	contention
}

func (cs *clients) join(m Join) {
	id := m.Client
	cs.all[id] = &client{id: id, dirty: !m.Reserves, reserves: m.Reserves, adopted: m.Adopted}
	at, _ := slices.BinarySearch(cs.ids, id)
	cs.ids = slices.Insert(cs.ids, at, id)
}

func (cs *clients) remove(id Client) {
	if cl := cs.all[id]; cl != nil {
		cs.replace(id, cl.share, share{})
	}
	delete(cs.all, id)
	if at, ok := slices.BinarySearch(cs.ids, id); ok {
		cs.ids = slices.Delete(cs.ids, at, at+1)
	}
}

// setGiven records the bytes that a client's callers have, while so much is lent to all clients.
func (cs *clients) setGiven(cl *client, bytes, lentBytes int64) {
	bytes = max(0, bytes)
	cs.givenBytes += bytes - cl.givenBytes
	cl.givenBytes = bytes
	cs.givenPeak.Raise(min(cs.givenBytes, lentBytes))
}

// roll begins a new window of time for the peaks.
func (cs *clients) roll() {
	for _, cl := range cs.all {
		cl.ownPeak.roll(cl.usage.UsedBytes)
		cs.count(cl)
	}
}

// lackedPages returns how many pages a client lacks compared with its own recent peak.
func (cl *client) lackedPages(pageBytes int64) uint32 {
	pages := (cl.ownPeak.bytes() + pageBytes - 1) / pageBytes
	return uint32(max(0, pages-int64(cl.heldPages))) //nolint:gosec // pages of one arena
}

// tick counts the ticks during which clients are lent little.
func (cs *clients) tick() {
	for _, cl := range cs.all {
		cl.thriftTicks -= min(cl.thriftTicks, 1)
		cl.wakingTicks -= min(cl.wakingTicks, 1)
	}
}

// anyHolder reports whether want reports true for any client that has pages.
func (cs *clients) anyHolder(want func(*client) bool) bool {
	return slices.ContainsFunc(cs.holders, func(id Client) bool { return want(cs.all[id]) })
}

// mayBeAwaited reports whether others may be made to wait for the fences of a client: not if it is excluded.
func (cs *clients) mayBeAwaited(id Client) bool {
	cl := cs.all[id]
	return cl == nil || !cl.excluded
}

// reservation returns the client that a Refill names to be served from; nil if there is none.
func (cs *clients) reservation(id Client) *client {
	if cl := cs.all[id]; id != 0 && cl != nil && cl.reserves && !cl.gone {
		return cl
	}
	return nil
}

// contention records whether clients miss in turns. While they do, collected memory stays with the pool: each would have to
// return it again at the next one's miss.
type contention struct {
	last   Client
	climbs int // of the same client in a row until contention ends
}

// contendedClimbs is how many further climbs of the same client end contention. Not fewer: a client misses a few times in a row
// among others. Not more: until then each grant of the pool costs a second search.
const contendedClimbs = 8

// contend notes that a client needs memory of others, or growth beyond the budget.
func (c *contention) contend(id Client) {
	if c.last != id {
		c.last, c.climbs = id, contendedClimbs
	} else if c.climbs > 0 {
		c.climbs--
	}
}

// check holds the sums against the clients.
func (cs *clients) check() error {
	var all sums
	var givenBytes int64
	for _, id := range cs.ids {
		givenBytes += cs.all[id].givenBytes
		all.replace(id, share{}, cs.all[id].sum())
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
