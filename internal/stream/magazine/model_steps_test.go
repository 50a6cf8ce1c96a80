package magazine

// op is an operation of an actor; it begins with a step. An alias, as step is: most switches are over some.
type op = uint8

const (
	opTake     op = iota // of callers
	opFree               // of a handle, which may be live or not
	opAnnounce           // likewise
	opDrain              // of the owner: Freed, and Collect for each slot
	opPark
	opReady
	opTakeReady // one slot, of a magazine that stays parked
	opShelve
	opIdle     // CloseIdle and Retire
	opSpan     // a new span for a magazine that was retired
	opEvict    // Close of a magazine of large blocks
	opReopen   // Reopen of one, after its slots in use were detached
	opAssign   // a slot of the owner for a new block
	opEnd      // of the cache: Drain, Freed and Collect, Close
	opRelease  // of the owner: Collect of a slot whose uses have passed
	opRecord   // of callers: Record
	opMove     // likewise
	opBack     // TakeBack, of a block of so many units as the serial says
	firstOwner = opDrain
)

// step is one atomic operation, and the plain code that follows.
type step = uint8

const (
	resting step = iota
	takeLoad
	takeSwap
	takeWord
	freeFast
	freePut
	freeLoad
	freeSwap
	freedLoad
	freedSwap
	usedLoad
	usedSwap
	usedTake
	parkedLoad
	parkedSwap
	lifeLoad
	flagLoad
	flagSwap
	drainLoad
	drainSwap
	homeLoad
	homeClear
	homePut
	parkSwap
	collectLoad
	collectSwap
	unpark
	shelveOr
	readyLoad
	readySwap
	readyWord
	idleLoad
	idleSwap
	spanStore
	lifeSwap
	closeSwap
	detachWord
	detachLoad
	detachSwap
	reopenSwap
	assignWord
	useSwap
	recordLoad
	recordSwap
	recordOr
	moveLoad
	moveSwap
	backLoad
	backEntry
	backSwap
	backWord
)

func opName(o op) string {
	return [...]string{
		"take", "free", "announce", "drain", "park", "ready", "take ready", "shelve", "idle", "span", "evict", "reopen", "assign", "end",
		"release", "record", "move", "take back",
	}[o]
}

func firstStep(o op) step {
	return [...]step{
		opTake: takeLoad, opFree: freeFast, opAnnounce: flagLoad, opDrain: drainLoad, opPark: parkSwap,
		opReady: collectLoad, opTakeReady: collectLoad, opShelve: shelveOr, opIdle: collectLoad, opSpan: spanStore, opEvict: closeSwap, opReopen: detachWord,
		opAssign: assignWord, opEnd: lifeSwap, opRelease: homeLoad, opRecord: recordLoad, opMove: moveLoad,
		opBack: backLoad,
	}[o]
}

// machine takes the steps of one actor in one world.
type machine struct {
	*rules
	*world
	*actor
}

func (m machine) goTo(s step) violation { m.at = s; return lawful }

// rest ends an operation, and clears its loaded values.
func (m machine) rest() violation {
	*m.actor = actor{left: m.left}
	return lawful
}

// advance takes the next step.
func (m machine) advance() violation {
	switch m.at {
	case takeLoad, takeSwap, takeWord:
		return m.take()
	case freeFast, freePut, freeLoad, freeSwap:
		return m.free()
	case freedLoad, freedSwap, usedLoad, usedSwap, parkedLoad, parkedSwap, lifeLoad:
		return m.handOver()
	case flagLoad, flagSwap:
		return m.announce()
	case recordLoad, recordSwap, recordOr:
		return m.record()
	case moveLoad, moveSwap:
		return m.hand()
	case backLoad, backEntry, backSwap, backWord:
		return m.takeBack()
	case drainLoad, drainSwap, usedTake, useSwap, homeLoad, homeClear, homePut:
		return m.drain()
	case shelveOr, readyLoad, readySwap, readyWord:
		return m.takeReady()
	case collectLoad, collectSwap, unpark, idleLoad, idleSwap, spanStore, parkSwap:
		return m.circulate()
	case lifeSwap, closeSwap, reopenSwap, assignWord:
		return m.govern()
	case detachWord, detachLoad, detachSwap:
		return m.detach()
	case resting:
	}
	panic("an actor at rest has no next step")
}

func (m machine) take() violation {
	switch m.at {
	case takeLoad:
		m.seen = m.mask
		if _, _, ok := m.rules.take(m.seen); !ok {
			return m.rest()
		}
		return m.goTo(takeSwap)
	case takeSwap:
		next, slot, _ := m.rules.take(m.seen)
		if m.mask != m.seen && !m.takeBlindly {
			m.seen = 0
			return m.goTo(takeLoad)
		}
		closed := m.mask >= closedBit
		m.mask, m.seen, m.slot = next, 0, int8(slot)
		m.at = takeWord
		if slot >= modelSlots {
			return twoOwners
		}
		if closed {
			return servedClosed
		}
		return m.handOut(m.slot, inWord)
	default:
		m.readHandle(m.slot)
		return m.rest()
	}
}

func (m machine) free() violation {
	word := &m.word[m.slot]
	switch m.at {
	case freeFast:
		handle := m.handleOf(m.slot, m.serial)
		if uint64(*word) != handle {
			return m.goTo(freeLoad)
		}
		next, _ := m.rules.free(handle, handle)
		*word = uint32(next)
		m.at = freePut
		if m.kind == loose {
			m.at = freedLoad
		}
		return m.won(m.slot, m.serial, 0)
	case freePut:
		old := m.mask
		m.mask |= 1 << m.slot
		where := m.put(old)
		if where == handSlot {
			return m.goTo(freedLoad)
		}
		m.place[m.slot] = inWord
		switch {
		case where == handMagazine:
			return m.owe()
		case old >= parkedBit:
			return m.goTo(lifeLoad)
		default:
			return m.rest()
		}
	case freeLoad:
		m.seen = uint64(*word)
		handle := m.handleOf(m.slot, m.serial)
		if _, ok := m.rules.free(m.seen, handle); ok {
			return m.goTo(freeSwap)
		}
		v := m.refused(m.slot, m.serial, m.refusal(m.seen, handle))
		m.rest()
		return v
	default:
		if uint64(*word) != m.seen {
			m.seen = 0
			return m.goTo(freeLoad)
		}
		next, _ := m.rules.free(m.seen, m.handleOf(m.slot, m.serial))
		*word = uint32(next)
		flags := uint8(m.seen & flagMask)
		m.flags, m.seen = flags&^uint8(Watched), 0
		switch m.at = freedLoad; {
		case flags&uint8(Announced) != 0 && !m.backFlagged:
			m.at = usedLoad
		case flags == uint8(Watched) && m.kind != loose: // as if it had not been watched
			m.at = freePut
		}
		return m.won(m.slot, m.serial, flags)
	}
}

// owe books that a caller was told to hand the magazine over.
func (m machine) owe() violation {
	m.at = parkedLoad
	if m.handing != notHanded {
		return handedTwice
	}
	m.handing = owed
	return lawful
}

// handOver is the way into the lists.
func (m machine) handOver() violation {
	switch m.at {
	case freedLoad:
		m.top = m.freed
		return m.goTo(freedSwap)
	case freedSwap:
		m.flagsHome[m.slot] = m.flags
		units := m.units[m.slot]
		if m.kind != loose || m.flags != 0 && !m.backFlagged {
			units = 0
		}
		m.aside[m.slot] = m.entry(units, uint32(m.top))
		if m.freed != m.top {
			return m.goTo(freedLoad)
		}
		m.freed, m.top = nextPush(m.top, uint32(m.slot)+1), 0
		m.at = lifeLoad
		if m.place[m.slot] != falling {
			return listedTwice
		}
		m.place[m.slot] = listed
		return lawful
	case usedLoad:
		m.top = m.used
		return m.goTo(usedSwap)
	case usedSwap:
		m.flagsHome[m.slot] = m.flags
		m.aside[m.slot] = m.entry(0, uint32(m.top))
		if m.used != m.top {
			return m.goTo(usedLoad)
		}
		m.used, m.top = nextUsed(m.top, uint32(m.slot)+1, 0), 0
		m.at = lifeLoad
		if m.place[m.slot] != falling {
			return listedTwice
		}
		m.place[m.slot] = listed
		return lawful
	case parkedLoad:
		m.head = m.parked
		return m.goTo(parkedSwap)
	case parkedSwap:
		m.behind = m.head
		if m.parked != m.head {
			return m.goTo(parkedLoad)
		}
		m.parked = 1
		m.at = lifeLoad
		if m.head != 0 {
			return handedTwice
		}
		m.handing = pushed
		return lawful
	default:
		m.woken = m.woken || m.life == draining
		return m.rest()
	}
}

// takeBack takes the slot on top of the list of freed slots, if its block has the length.
func (m machine) takeBack() violation {
	switch m.at {
	case backLoad:
		if m.top = m.freed; uint32(m.top) == noSlot || m.life == draining {
			return m.rest()
		}
		return m.goTo(backEntry)
	case backEntry:
		m.slot = int8(uint32(m.top)) - 1
		m.seen = m.aside[m.slot]
		if m.seen>>32 != m.entry(uint32(m.serial), noSlot)>>32 {
			return m.rest()
		}
		return m.goTo(backSwap)
	case backSwap:
		if m.freed != m.top {
			return m.rest()
		}
		m.freed, m.top, m.seen = m.pop(m.top, m.seen), 0, 0
		m.at = backWord
		switch {
		case m.units[m.slot] != uint32(m.serial):
			return wrongLength
		case m.flagsHome[m.slot] != 0:
			return takenFlagged
		}
		return m.handOut(m.slot, listed)
	default:
		m.readHandle(m.slot)
		return m.rest()
	}
}

// record announces a use in the word of the handle that it finds live, or notes it and then announces it.
func (m machine) record() violation {
	word := &m.word[m.slot]
	switch {
	case m.at == recordOr:
		m.uses[m.slot] |= 1 << m.user
		if m.flagFirst {
			return m.rest()
		}
		return m.goTo(flagLoad)
	case m.at == recordLoad:
		m.seen = uint64(*word)
	case uint64(*word) != m.seen:
		m.seen = 0
		return m.goTo(recordLoad)
	}
	next, noted, ok := m.rules.record(m.seen, m.handleOf(m.slot, m.serial), int(m.user))
	switch {
	case !ok:
		isLive := m.isLive(m.slot, m.serial)
		m.rest()
		if isLive {
			return refusedLive
		}
		return lawful
	case noted:
		m.seen = 0
		if m.flagFirst {
			return m.goTo(flagLoad)
		}
		return m.goTo(recordOr)
	case next == m.seen:
		return m.announcedOn(m.slot, m.serial)
	case m.at == recordLoad:
		return m.goTo(recordSwap)
	}
	*word = uint32(next)
	if m.isLive(m.slot, m.serial) {
		m.announced[m.slot] |= uint8(next & flagMask)
	}
	return m.announcedOn(m.slot, m.serial)
}

// hand moves the block of a handle to a new one.
func (m machine) hand() violation {
	word, handle := &m.word[m.slot], m.handleOf(m.slot, m.serial)
	next, ok := m.move(m.seen, handle)
	switch {
	case m.at == moveLoad:
		m.seen = uint64(*word)
		if _, ok := m.move(m.seen, handle); ok {
			return m.goTo(moveSwap)
		}
		isLive := m.isLive(m.slot, m.serial)
		m.rest()
		if isLive {
			return refusedLive
		}
		return lawful
	case uint64(*word) != m.seen || !ok:
		m.seen = 0
		return m.goTo(moveLoad)
	}
	*word = uint32(next)
	slot, serial := m.slot, m.serial
	m.rest()
	if !m.isLive(slot, serial) {
		return movedOther
	}
	m.past[slot] = uint32(handle)
	m.handle[slot][serial-1] = uint32(next &^ flagMask)
	m.announced[slot] |= uint8(Announced)
	return lawful
}

func (m machine) announce() violation {
	word := &m.word[m.slot]
	handle := m.handleOf(m.slot, m.serial)
	if m.at == flagLoad {
		m.seen = uint64(*word)
		if next, ok := m.flag(m.seen, handle, m.announces); ok {
			if next == m.seen {
				return m.announcedOn(m.slot, m.serial)
			}
			return m.goTo(flagSwap)
		}
		isLive := m.isLive(m.slot, m.serial)
		m.rest()
		if isLive {
			return refusedLive
		}
		return lawful
	}
	if uint64(*word) != m.seen {
		m.seen = 0
		return m.goTo(flagLoad)
	}
	next, _ := m.flag(m.seen, handle, m.announces)
	*word = uint32(next)
	if m.isLive(m.slot, m.serial) {
		m.announced[m.slot] |= uint8(m.announces)
	}
	return m.announcedOn(m.slot, m.serial)
}

// announcedOn ends an announcement that succeeded.
func (m machine) announcedOn(slot int8, serial uint8) violation {
	used := uint8(0)
	if m.op == opRecord {
		used = 1 << m.user
	}
	if isLate := m.at != recordLoad && m.at != recordSwap && used != 0 && m.flagFirst; isLate {
		if m.isLive(slot, serial) {
			m.recorded[slot] |= used
		}
		m.seen = 0
		return m.goTo(recordOr)
	}
	m.rest()
	if !m.isLive(slot, serial) {
		return flaggedOther
	}
	m.recorded[slot] |= used
	return lawful
}
