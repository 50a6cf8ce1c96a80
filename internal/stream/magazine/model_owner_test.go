package magazine

import "math/bits"

// drain is Freed, and Collect for each slot.
func (m machine) drain() violation {
	switch m.at {
	case drainLoad:
		if m.top = m.freed; uint32(m.top) == noSlot {
			m.top, m.second = 0, true
			return m.goTo(usedTake)
		}
		return m.goTo(drainSwap)
	case drainSwap:
		if m.freed != m.top {
			return m.goTo(drainLoad)
		}
		m.head, m.freed, m.woken = int8(uint32(m.top)), m.empty(m.top), false
		m.top = 0
		return m.fetch()
	case usedTake:
		m.head, m.used = int8(uint32(m.used)), 0
		return m.fetch()
	case useSwap:
		uses := m.uses[m.slot]
		m.uses[m.slot] = 0
		if user := m.flagsHome[m.slot] & userMask >> userShift; user != 0 {
			uses |= 1 << (user - 1)
		}
		if m.recorded[m.slot]&^uses != 0 {
			return useLost
		}
		m.recorded[m.slot] = 0
		if uses != 0 {
			m.place[m.slot] = kept
			return m.homeNext()
		}
		return m.goTo(homeLoad)
	case homeLoad:
		m.flagsHome[m.slot] = 0
		if m.word[m.slot]&flagMask != 0 {
			return m.goTo(homeClear)
		}
		return m.book()
	case homeClear:
		m.word[m.slot] = uint32(m.clear(uint64(m.word[m.slot])))
		return m.book()
	default:
		old := m.mask
		m.mask |= 1 << m.slot
		m.place[m.slot] = inWord
		if m.put(old) == handMagazine {
			if m.handing != notHanded {
				return handedTwice
			}
			m.inReady, m.handing = true, arrived
		}
		return m.homeNext()
	}
}

// fetch begins Collect of the slots in the list that the owner took.
func (m machine) fetch() violation {
	for s := m.head; s != 0; s = int8(uint32(m.aside[s-1])) {
		if m.place[s-1] != listed {
			return listedTwice
		}
		m.place[s-1] = fetched
	}
	return m.homeNext()
}

// homeNext begins Collect of the next slot in that list, or takes the second one.
func (m machine) homeNext() violation {
	if m.head == 0 {
		m.slot = 0
		if !m.second && m.op != opRelease {
			m.second = true
			return m.goTo(usedTake)
		}
		m.second = false
		return m.afterDrain()
	}
	m.slot = m.head - 1
	m.head = int8(uint32(m.aside[m.slot]))
	if m.sharing && m.flagsHome[m.slot]&uint8(Announced) != 0 {
		return m.goTo(useSwap)
	}
	return m.goTo(homeLoad)
}

// afterDrain continues the operation that took the lists of freed slots.
func (m machine) afterDrain() violation {
	if m.op == opEnd {
		return m.goTo(closeSwap)
	}
	return m.rest()
}

// book is Collect of a slot without flags.
func (m machine) book() violation {
	if m.kind == small && m.open {
		return m.goTo(homePut)
	}
	m.place[m.slot] = atHome
	m.homes |= 1 << m.slot
	return m.homeNext()
}

// circulate is the owner's operation on a magazine of a class.
func (m machine) circulate() violation {
	switch m.at {
	case parkSwap:
		if m.mask == exhaustedMask || m.parkBlindly {
			m.mask = parkedBit
		}
		return m.rest()
	case collectLoad:
		if m.parked == 0 {
			return m.afterCollect()
		}
		return m.goTo(collectSwap)
	case collectSwap:
		m.parked = 0
		switch {
		case m.behind != 0:
			return handedTwice
		case !m.open:
			m.handing = notHanded
		case m.mask&parkedBit == 0:
			return handedInUse
		case m.inReady:
			return handedTwice
		default:
			m.inReady, m.handing = true, arrived
		}
		return m.afterCollect()
	case unpark:
		m.mask &= unparkMask
		m.handing = notHanded
		return m.rest()
	case idleLoad:
		m.seen = m.mask
		if _, ok := m.idle(m.seen, modelWhole, m.inReady); ok {
			return m.goTo(idleSwap)
		}
		return m.rest()
	case idleSwap:
		next, _ := m.idle(m.seen, modelWhole, m.inReady)
		if m.mask != m.seen && !m.idleBlindly {
			return m.rest()
		}
		m.mask = next
		m.open = false
		if m.inReady {
			m.inReady, m.handing = false, notHanded
		}
		m.homes = modelWhole
		v := m.allHome()
		m.rest()
		return v
	default: // spanStore
		m.mask = modelWhole
		m.open, m.homes = true, 0
		for s := range m.place {
			m.place[s] = inWord
		}
		return m.rest()
	}
}

// allHome books the slots of a magazine that was closed as idle.
func (m machine) allHome() violation {
	for s := range m.place {
		if m.place[s] != inWord {
			return closedWhileBorrowed
		}
		m.place[s] = atHome
	}
	return lawful
}

// afterCollect continues the operation that collected the parked magazines.
func (m machine) afterCollect() violation {
	switch {
	case m.op == opIdle:
		return m.goTo(idleLoad)
	case m.inReady && m.op == opTakeReady:
		return m.goTo(readyLoad)
	case m.inReady:
		m.inReady = false
		return m.goTo(unpark)
	default:
		return m.rest()
	}
}

// takeReady takes a slot of a magazine that is ready, and leaves it parked; or makes a magazine that is in
// use ready, or parks it if it is exhausted.
func (m machine) takeReady() violation {
	switch m.at {
	case shelveOr:
		old := m.mask
		m.mask |= parkedBit
		if old != exhaustedMask {
			m.inReady, m.handing = true, arrived
		}
		return m.rest()
	case readyLoad:
		m.seen = m.mask
		return m.goTo(readySwap)
	case readySwap:
		next, taken := m.takeParked(m.seen, 1)
		if m.mask != m.seen {
			return m.goTo(readyLoad)
		}
		if taken == 0 || taken > modelWhole {
			return readyEmpty
		}
		m.mask, m.seen, m.slot = next, 0, int8(bits.TrailingZeros64(taken))
		if next&slotBits == 0 {
			m.inReady, m.handing = false, notHanded
		}
		m.at = readyWord
		return m.handOut(m.slot, inWord)
	default:
		m.readHandle(m.slot)
		return m.rest()
	}
}

// detach announces on each slot in use before its magazine is reopened: from m.slot on. The
// handle that it announces on is the word that it reads, whether that is live or not.
func (m machine) detach() violation {
	for m.slot < modelSlots && m.homes>>m.slot&1 != 0 {
		m.slot++
	}
	if m.slot == modelSlots {
		m.slot, m.seen, m.was = 0, 0, 0
		m.at = reopenSwap
		return m.govern()
	}
	word := &m.word[m.slot]
	switch m.at {
	case detachWord:
		m.was = *word &^ flagMask
		return m.goTo(detachLoad)
	case detachLoad:
		m.seen = uint64(*word)
		if _, ok := m.flag(m.seen, uint64(m.was), Detached); ok {
			return m.goTo(detachSwap)
		}
	default:
		if uint64(*word) != m.seen {
			return m.goTo(detachLoad)
		}
		next, _ := m.flag(m.seen, uint64(m.was), Detached)
		*word = uint32(next)
		if m.place[m.slot] == live {
			m.announced[m.slot] |= uint8(Detached)
		}
	}
	m.slot++
	m.seen, m.was = 0, 0
	return m.goTo(detachWord)
}

// govern is the owner's operation on a magazine of large blocks, and the end of a cache.
func (m machine) govern() violation {
	switch m.at {
	case lifeSwap:
		m.life = draining
		return m.goTo(drainLoad)
	case closeSwap:
		old := m.mask
		m.mask = closedBit
		m.over = m.op == opEnd
		m.open, m.inReady = false, false
		for f := m.broughtHome(old); f != 0; f &= f - 1 {
			s := bits.TrailingZeros64(f)
			if m.place[s] != inWord {
				return twoOwners
			}
			m.place[s] = atHome
			m.homes |= 1 << s
			m.word[s] = uint32(m.clear(uint64(m.word[s]))) // no step: nobody else can change it now
		}
		return m.rest()
	case reopenSwap:
		m.mask = m.reopen(m.mask)
		m.open = true
		return m.rest()
	default: // assignWord
		slot := int8(bits.TrailingZeros8(m.homes))
		m.homes &^= 1 << slot
		m.units[slot] = 3 - m.units[slot] // a block of another length than its last
		v := m.handOut(slot, atHome)
		m.readHandle(slot)
		m.rest()
		return v
	}
}
