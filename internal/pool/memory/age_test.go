package memory

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// mapped returns a memory with free handles of those lengths, mapped from page 0 on.
func mapped(t *testing.T, lengths ...uint32) *Memory {
	t.Helper()
	m := New(1<<20, 64, false)
	at := uint32(0)
	for _, pages := range lengths {
		var j Job
		w := Run{First: at, Pages: pages}
		m.PlanFill(&j, Plan{Window: w, MaxHandlePages: pages})
		m.Finish(&j, len(j.Ops), false)
		m.Free(w, Tag{})
		at += pages
	}
	assert.NoError(t, m.Check(false, map[Client]uint64{}))
	return m
}

// The oldest handles are those that have been free for so many ticks: the longest first, no more
// than so many, and no more bytes.
func TestOldHandlesAreBounded(t *testing.T) {
	t.Parallel()
	m := mapped(t, 2, 5, 3, 1)
	lengths := func(ids []int32) (all []uint32) {
		for _, id := range ids {
			all = append(all, m.Handle(id).Run.Pages)
		}
		return all
	}
	assert.Empty(t, m.Old(1, 10))
	m.Tick()
	assert.Equal(t, []uint32{5, 3, 2, 1}, lengths(m.Old(1, 10)))
	assert.Equal(t, []uint32{5, 3}, lengths(m.Old(1, 2)))
	assert.Empty(t, m.Old(2, 10))
	m.Keep(Run{First: 7, Pages: 1}) // of the handle of three pages
	assert.Equal(t, []uint32{5, 2, 1}, lengths(m.Old(1, 10)))
	m.Lend(0, Run{First: 7, Pages: 3}, 1)
	m.Free(Run{First: 7, Pages: 3}, Tag{})
	m.Tick()
	assert.Equal(t, []uint32{5, 3, 2, 1}, lengths(m.Old(1, 10)), "it was used")
}

// Neighbours of pages that are lent or freed keep their age.
func TestNeighboursKeepTheirAge(t *testing.T) {
	t.Parallel()
	m := mapped(t, 1, 1, 1, 1)
	m.Tick()
	m.Lend(0, Run{First: 1, Pages: 1}, 1)
	assert.Len(t, m.Old(1, 10), 3)
	m.Free(Run{First: 1, Pages: 1}, Tag{})
	assert.Len(t, m.Old(1, 10), 3)
	m.Tick()
	assert.Len(t, m.Old(1, 10), 4)
	assert.Len(t, m.Old(2, 10), 3)
}

// The tick counter restarts before it reaches the mark of pages that never get old.
func TestTicksBeginAnew(t *testing.T) {
	t.Parallel()
	m := mapped(t, 1)
	m.now = kept - 2
	m.Lend(0, Run{Pages: 1}, 1)
	m.Free(Run{Pages: 1}, Tag{})
	for range 3 {
		assert.Empty(t, m.Old(4, 10))
		m.Tick()
		assert.NotEqual(t, uint32(kept), m.now)
	}
	m.Tick()
	assert.Len(t, m.Old(4, 10), 1)
}
