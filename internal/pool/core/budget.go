package core

import (
	"cmp"

	"github.com/go-vram/vram/internal/pool/memory"
)

// budget bounds the reserved bytes while there is something to recycle, or to take from other clients. It follows the live
// peak: the most that clients used or wanted at one moment.
//
// Moves book their cost. Once they have cost the price of the missing bytes, the budget buys growth: this is the rule of the
// ski rental problem, to rent until the rents have come to the price. So moves never cost more than growth, except for the last
// price, nor growth more than moves. The budget first buys slack (widen): growth within it comes in steps, and a client that
// has grown by a step misses less than one that got just the pages of its request.
//
// Growth that is forced, since no client has anything left to return, costs nothing: no move could have served. It shows that
// the slack is too small, and so widens it.
type budget struct {
	settings *Settings
	memory   *memory.Memory
	clients  *clients

	livePeak      peak
	steadyBytes   int64 // added by recycling since the peak rose last
	boughtBytes   int64 // added at the price of moves
	extraSlack    int64 // beyond Policy.SharedSlack, in 1/1024 of the live peak
	costNs        int64 // of moves, less purchases
	createNs      int64 // to make a handle, as the driver was seen to take; 0: it was not seen yet
	moveNs        int64 // likewise to move one, or to give it back for another
	recycledBytes int64 // while the peak was not stable
	flatRequests  int   // in a row that free memory did not serve, and that did not raise the peak
}

const (
	// stableRequests is how many requests in a row that do not raise the peak make it stable. Not fewer: one that does not
	// raise it comes now and then in the first pass of a loop. Not more: the second pass asks for a few windows only.
	stableRequests = 2
	// recycledShare is the part of the reserved bytes from which on recycling makes handles long: a sixth.
	recycledShare = 6
	// firstCreateNs and firstMoveNs stand for the costs of handles until the driver was seen to
	// make and to move some: an H200's.
	firstCreateNs, firstMoveNs = 22_000, 47_000
	// askNs is the least cost of an ask: the turns of two actors, whose goroutines wake up, and the calls that record and query
	// a fence. runNs is added for each run that comes back. Both are estimates for answers of unknown time.
	askNs, runNs = 15_000, 1_000
	// slackStep is by how much the slack of several clients widens at once, in 1/1024 of the live peak. Not less: with 24 four
	// streams of sizes that shift hold 0.7 percent more after eight rounds, since they buy more pages one by one. Not more:
	// with 48 they hold 0.5 percent more.
	slackStep = 32
	// worthUnit is the unit of Policy.PageWorth: eighths of the cost of a handle.
	worthUnit = 8
	// fragmentShare is the part of their own peaks that clients need in addition, since free memory is fragmented: an eighth.
	fragmentShare = 8
	// lateFactor bounds the time of an answer that is booked: on a slow machine, with its caches
	// cold, an ask takes eight times the least.
	lateFactor = 8
	// dearFactor is by how much a page is dearer once more is reserved than all clients need by
	// themselves: from there on pages move since free memory lies in pieces, or with a client that
	// does not need it, and growth ends neither.
	dearFactor = 4
)

// raise raises the live peak to the bytes that are used and wanted, and reports whether they are
// more than before. As many bought bytes are part of the budget without a purchase then, and their
// price comes back: the plain one, also where they were dear.
func (b *budget) raise(liveBytes int64) bool {
	rise := liveBytes - b.livePeak.bytes()
	b.livePeak.note(liveBytes)
	if rise <= 0 {
		return false
	}
	b.steadyBytes = 0
	refund := min(b.boughtBytes, rise)
	b.boughtBytes -= refund
	b.costNs += b.worthNs(refund / b.memory.PageBytes())
	return true
}

// notePeak raises the live peak to the clients' last reports, once for a request that free memory does not serve.
func (b *budget) notePeak(r *request) {
	if r.noted {
		return
	}
	if r.raised, r.noted = b.raise(b.clients.usedBytes), true; r.raised {
		b.flatRequests = 0
	} else {
		b.flatRequests = min(b.flatRequests+1, stableRequests)
	}
}

// asked books the cost of a client's answer: the time that it took, as far as that can be the cost of
// an ask. A longer one waited for a turn or a processor.
func (b *budget) asked(runs int, tookNs int64) {
	least := int64(askNs + runs*runNs)
	b.costNs += max(least, min(tookNs, least*lateFactor))
}

// recycled counts handles that are recycled: in later rounds the budget is higher by as much, up to the steady slack.
func (b *budget) recycled(handles int, bytes int64) {
	b.costNs += int64(handles) * cmp.Or(b.moveNs, firstMoveNs)
	if b.flatRequests < stableRequests {
		b.recycledBytes += bytes
	}
	b.steadyBytes = max(b.steadyBytes, min(b.part(b.settings.Policy.SteadySlack), b.steadyBytes+bytes))
}

// priceNs returns the price of bytes beyond the budget, in time spent on moves, where so much is
// reserved with them. A part of a page costs a page.
func (b *budget) priceNs(bytes, reservedBytes int64) int64 {
	price := b.worthNs((bytes + b.memory.PageBytes() - 1) / b.memory.PageBytes())
	if need := b.clients.ownPeakBytes; reservedBytes > need+need/fragmentShare {
		return price * dearFactor
	}
	return price
}

// tooMuch reports whether more than twice as much is reserved as clients have used lately, each by itself. Not less than twice:
// usage is seen at requests and ticks only, so that these peaks may be higher, and holes lie between buffers.
func (b *budget) tooMuch() bool {
	return b.memory.ReservedBytes() > 2*b.clients.ownPeakBytes+b.settings.Policy.SpareBytes
}

// worthNs returns the price of so many pages, where clients need as many by themselves.
func (b *budget) worthNs(pages int64) int64 {
	return pages * b.settings.Policy.PageWorth * cmp.Or(b.createNs, firstCreateNs) / worthUnit
}

// fits reports whether so many new pages for a request stay within the soft budget, and within the driver's memory.
func (b *budget) fits(r *request, pages uint32) bool {
	return b.reservedWith(pages) <= b.within(r, b.softBytes())
}

// within bounds the reserved bytes for a request by the driver's memory, if the driver has refused the request.
func (b *budget) within(r *request, bytes int64) int64 {
	if r.capped {
		return min(bytes, b.driverBytes(r))
	}
	return bytes
}

// driverBytes returns all that the driver can give, for a request that it has refused. It may have given others more since: all
// that is reserved now can be had again.
func (b *budget) driverBytes(r *request) int64 { return max(r.capBytes, b.memory.ReservedBytes()) }

// reservedWith returns the reserved bytes with so many new pages.
func (b *budget) reservedWith(pages uint32) int64 {
	return b.memory.ReservedBytes() + b.memory.Bytes(pages)
}

// buys raises the budget for growth by so many pages, if moves have cost their price, and reports whether it does. It does not
// buy memory that the driver has refused or that would break the limit.
func (b *budget) buys(r *request, pages uint32) bool {
	reserved := b.reservedWith(pages)
	beyond := reserved - b.softBytes()
	switch {
	case r.capped || reserved > b.settings.LimitBytes:
		return false
	case beyond <= 0:
		return true
	case !b.affords(beyond, reserved):
		return false
	}
	b.buy(beyond, reserved)
	return true
}

// affords reports whether moves have cost the price of bytes beyond the budget, where so much is
// reserved with them.
func (b *budget) affords(bytes, reservedBytes int64) bool {
	return bytes <= 0 || b.settings.Policy.PageWorth > 0 && b.costNs >= b.priceNs(bytes, reservedBytes)
}

// buy raises the budget by bytes, and takes their price off the cost of moves.
func (b *budget) buy(bytes, reservedBytes int64) {
	if bytes > 0 && b.settings.Policy.PageWorth > 0 {
		b.costNs -= b.priceNs(bytes, reservedBytes)
		b.boughtBytes += bytes
	}
}

// widen raises the slack of several clients by a step, if moves have cost its price. It reports
// whether it does.
func (b *budget) widen() bool {
	step := b.nextStep()
	price := b.worthNs(b.part(step) / b.memory.PageBytes())
	if step == 0 || b.costNs < price {
		return false
	}
	b.costNs -= price
	b.extraSlack += step
	return true
}

// exceed raises the budget by bytes that a request needs beyond it. Once the slack is as wide as it gets, they are bought if
// moves have cost their price; before that the cost is kept for the slack. Otherwise growth is forced.
func (b *budget) exceed(bytes, reservedBytes int64) {
	if b.nextStep() == 0 && b.affords(bytes, reservedBytes) {
		b.buy(bytes, reservedBytes)
	} else {
		b.force(bytes)
	}
}

// force raises the budget by bytes that a request needs and that no client can return, and the slack by a step.
func (b *budget) force(bytes int64) {
	if bytes > 0 && b.settings.Policy.PageWorth > 0 {
		b.extraSlack += b.nextStep()
		b.boughtBytes += bytes
	}
}

// nextStep returns by how much the slack may widen: 0 at its maximum, and where one client holds all memory.
func (b *budget) nextStep() int64 {
	p := &b.settings.Policy
	if p.PageWorth == 0 || b.clients.holding < 2 {
		return 0
	}
	return min(slackStep, max(0, p.MostSharedSlack-p.SharedSlack-b.extraSlack))
}

// changed applies new settings: if they buy nothing, purchases leave the budget.
func (b *budget) changed() {
	p := &b.settings.Policy
	if p.PageWorth == 0 {
		b.boughtBytes, b.costNs = 0, 0
	}
	b.extraSlack = min(b.extraSlack, max(0, p.MostSharedSlack-p.SharedSlack))
}

// part returns a part of the live peak, given in 1/1024 of it.
func (b *budget) part(share int64) int64 { return b.livePeak.bytes() / 1024 * share }

// baseBytes returns the budget without purchases.
func (b *budget) baseBytes() int64 {
	p := &b.settings.Policy
	slack := p.Slack
	if b.clients.holding > 1 {
		slack = max(slack, p.SharedSlack+b.extraSlack)
	}
	return b.livePeak.bytes() + b.part(slack) + p.SpareBytes + b.steadyBytes
}

// softBytes returns the bound of reserved bytes while there is something to move, and at the start.
func (b *budget) softBytes() int64 {
	return min(b.settings.LimitBytes, b.baseBytes()+b.boughtBytes)
}

// maxHandlePages bounds the length of a new handle.
func (b *budget) maxHandlePages() uint32 {
	p := &b.settings.Policy
	if b.recycledBytes > b.memory.ReservedBytes()/recycledShare {
		return max(1, p.HandlePages, p.LongPages)
	}
	return max(1, p.HandlePages)
}

// learn takes how long the driver took to make and to move handles.
func (b *budget) learn(created, moved int, ns int64) {
	switch {
	case ns <= 0:
	case moved > 0:
		own := ns - int64(created)*cmp.Or(b.createNs, firstCreateNs)
		b.moveNs = blend(b.moveNs, max(0, own)/int64(moved))
	case created > 0:
		b.createNs = blend(b.createNs, ns/int64(created))
	}
}

// roll begins a new window of time: peaks that are older than two are forgotten, and half of the
// cost and of the extra slack. A purchase is kept as far as it is reserved still.
func (b *budget) roll() {
	b.livePeak.roll(b.clients.usedBytes)
	b.clients.roll()
	b.extraSlack /= 2
	b.boughtBytes = min(b.boughtBytes, max(0, b.memory.ReservedBytes()-b.baseBytes()))
	b.costNs /= 2
}

// blend moves a mean a part of the way to a new value.
func blend(mean, value int64) int64 {
	if mean == 0 {
		return value
	}
	return mean + (value-mean)/8
}
