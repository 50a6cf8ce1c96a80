package memory

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

const pageBytes = 1 << 20

// perform enters a job in which each operation succeeds, up to one that fails.
func perform(m *Memory, j *Job, done int) Outcome {
	for i := range j.Ops {
		if op := &j.Ops[i]; op.Verb == Create {
			op.Handle = cudadrv.Handle(1 + op.Index) //nolint:gosec // a few
		}
	}
	return m.Finish(j, done, done < len(j.Ops))
}

// filled returns a memory with four free pages, four that are lent, and six holes, which a failed job left.
func filled(t *testing.T) *Memory {
	t.Helper()
	m := New(pageBytes, 64, false)
	w, ok := m.Room(User{Client: 1}, 8)
	require.True(t, ok)
	var j Job
	m.PlanFill(&j, Plan{Window: w.Run, For: 1, MaxHandlePages: 4})
	perform(m, &j, len(j.Ops))
	m.Transfer(w.Run, 1)
	m.Free(Run{First: 0, Pages: 4}, Tag{})

	var failed Job
	w, ok = m.Beyond(6)
	require.True(t, ok)
	m.PlanFill(&failed, Plan{Window: w.Run, MaxHandlePages: 4})
	require.Empty(t, perform(m, &failed, 0).Undo.Ops)
	require.NoError(t, m.Check(false, map[Client]uint64{}))
	return m
}

// Check sees each kind of damage to the books.
func TestCheckSeesDamage(t *testing.T) {
	t.Parallel()
	one := func(first uint32) Run { return Run{First: first, Pages: 1} }
	for name, harm := range map[string]func(m *Memory){
		"a page lost from a run":     func(m *Memory) { m.pages[0].run-- },
		"a free page without handle": func(m *Memory) { m.pages[1].handle = -1 },
		"a lent page without handle": func(m *Memory) { m.pages[6].handle = -1 },
		"a hole with a handle":       func(m *Memory) { m.pages[9].handle = 0 },
		"a hole of a client":         func(m *Memory) { m.pages[9].client = 1 },
		"a page of another handle":   func(m *Memory) { m.pages[6].handle = 0 },
		"a page that nobody owns": func(m *Memory) {
			m.pages[6].state = Busy
			m.counts[Lent]--
			m.counts[Busy]++
		},
		"a fence of a lent page":    func(m *Memory) { m.pages[6].fence = 1 },
		"a bit that is missing":     func(m *Memory) { m.free.set(one(1), false) },
		"a bit that is too many":    func(m *Memory) { m.free.set(one(6), true) },
		"a count of returned pages": func(m *Memory) { m.returned++ },
		"holes of another length":   func(m *Memory) { m.pages[8].run-- },
		"holes that do not exist":   func(m *Memory) { m.holeRuns.Set(holeKey{0, 1, 5}) },
		"holes that are not found": func(m *Memory) {
			var j Job
			m.PlanFill(&j, Plan{Window: Run{First: 14, Pages: 1}, MaxHandlePages: 4})
			perform(m, &j, len(j.Ops))
			m.Transfer(j.Window, 1)
			m.holeRuns.Clear()
		},
		"a count":                    func(m *Memory) { m.counts[Free]++ },
		"bytes that do not exist":    func(m *Memory) { m.reservedBytes += pageBytes },
		"bytes that do not sleep":    func(m *Memory) { m.sleepers, m.sleepingBytes = &sleep{}, pageBytes },
		"a free page that sleeps":    func(m *Memory) { m.sleepers, m.handleOf[m.pages[1].handle].asleep = &sleep{}, true },
		"bytes that were never lost": func(m *Memory) { m.lostBytes += pageBytes },
		"a run that is in no bin":    func(m *Memory) { m.clean.bins.Remove(m.links, 0) },
		"two runs that are not merged": func(m *Memory) {
			m.removeRun(0)
			m.insertRun(Run{First: 0, Pages: 2}, Tag{})
			m.insertRun(Run{First: 2, Pages: 2}, Tag{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := filled(t)
			harm(m)
			assert.Error(t, m.Check(false, map[Client]uint64{}))
		})
	}
}
