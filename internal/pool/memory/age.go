package memory

import "math"

// kept stands for the tick at which a page became free that never gets old.
const kept = math.MaxUint32

// Tick counts a tick: the age of free pages is counted in ticks.
func (t *table) Tick() {
	if t.now++; t.now == kept { // after thirteen years of ten ticks a second
		t.now = 0
	}
}

// Keep prevents free pages from getting old until they have been lent.
func (t *table) Keep(r Run) {
	entries := t.of(r)
	for i := range entries {
		entries[i].since = kept
	}
}

// Old returns the handles all of whose pages have been free and clean for so many ticks, at most maxHandles of them,
// the longest first.
func (m *Memory) Old(ticks uint32, maxHandles int) (ids []int32) {
	for _, id := range m.victims(func(r Run) bool { return m.isOld(r, ticks) }) {
		if len(ids) == maxHandles {
			break
		}
		ids = append(ids, id)
	}
	return ids
}

func (m *Memory) isOld(r Run, ticks uint32) bool {
	for _, p := range m.of(r) {
		if p.since == kept || m.now-p.since < ticks {
			return false
		}
	}
	return true
}
