package memory

import "math"

// kept stands for the tick at which a page became free that never gets old.
const kept = math.MaxUint32

// Tick goes to the next tick, by which the age of free pages is counted.
func (t *table) Tick() {
	if t.now++; t.now == kept { // after thirteen years of ten ticks a second
		t.now = 0
	}
}

// Keep has free pages never get old, until they have been lent.
func (t *table) Keep(r Run) {
	entries := t.of(r)
	for i := range entries {
		entries[i].since = kept
	}
}

// Old are handles all of whose pages have been free and clean for so many ticks, at most so many and so many bytes, the longest first. The
// result is valid until the next call.
func (m *Memory) Old(ticks uint32, most int, maxBytes int64) (ids []int32) {
	for _, id := range m.victims(Run{}) {
		run := m.handleOf[id].run
		if m.isOld(run, ticks) && m.Bytes(run.Pages) <= maxBytes {
			if maxBytes -= m.Bytes(run.Pages); len(ids) == most {
				break
			}
			ids = append(ids, id)
		}
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
