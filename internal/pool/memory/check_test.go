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
		"a busy page of a client": func(m *Memory) {
			var j Job
			m.PlanShrink(&j, []int32{m.pages[0].handle})
			m.pages[0].client = 1
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
			assert.Error(t, m.Check(m.counts[Busy] > 0 && name != "a page that nobody owns", map[Client]uint64{}))
		})
	}
}

// segments returns a memory of two plain segments of four pages, which client 1 has.
func segments(t *testing.T) *Memory {
	t.Helper()
	m := New(pageBytes, 64, true)
	for range 2 {
		w, ok := m.Room(User{Client: 1}, 4)
		require.True(t, ok)
		var j Job
		m.PlanFill(&j, Plan{Window: w.Run, For: 1})
		require.Len(t, j.Ops, 1)
		j.Ops[0].Address = cudadrv.Ptr(1)<<32 - cudadrv.Ptr(j.Ops[0].Run.First)*8*pageBytes // not in the order of their pages
		perform(m, &j, 1)
		m.Transfer(w.Run, 1)
	}
	check(t, m)
	return m
}

// Check sees pages of a plain segment that name another one.
func TestCheckSeesDamageOfSegments(t *testing.T) {
	t.Parallel()
	m := segments(t)
	var all []Run
	m.EachMapped(func(r MappedRun) { all = append(all, r.Run) })
	require.Len(t, all, 2)
	m.pages[all[0].First+1].handle = m.pages[all[1].First].handle
	assert.Error(t, m.Check(false, map[Client]uint64{}))
}

// The map has the address of each run of a plain segment, also of one that begins within it.
func TestTheMapHasTheAddressesInSegments(t *testing.T) {
	t.Parallel()
	m := segments(t)
	m.EachMapped(func(r MappedRun) { m.Free(Run{First: r.First + 1, Pages: 2}, Tag{}) })
	count := 0
	m.EachMapped(func(r MappedRun) {
		h := m.handleOf[m.pages[r.First].handle]
		assert.Equal(t, h.at+cudadrv.Ptr(r.First-h.run.First)*pageBytes, r.At, "%+v", r)
		count++
	})
	assert.Equal(t, 6, count)
}

// fourHandles returns a memory whose pages are in four handles of four pages each, all of which client 1 has.
func fourHandles(t *testing.T) *Memory {
	t.Helper()
	m := New(pageBytes, 64, false)
	w, ok := m.Room(User{Client: 1}, 16)
	require.True(t, ok)
	var j Job
	m.PlanFill(&j, Plan{Window: w.Run, For: 1, MaxHandlePages: 4})
	perform(m, &j, len(j.Ops))
	m.Transfer(w.Run, 1)
	return m
}

// A close that fails, at any of its operations, loses the handle of that one alone: all others still go back.
func TestACloseThatFailsLosesOneHandle(t *testing.T) {
	t.Parallel()
	for failing := range 8 {
		m := fourHandles(t)
		var j Job
		m.PlanClose(&j)
		require.Len(t, j.Ops, 8)
		undo := perform(m, &j, failing).Undo
		require.NoError(t, m.Check(true, map[Client]uint64{}))
		assert.Empty(t, perform(m, &undo, len(undo.Ops)).Undo.Ops)
		assert.Equal(t, 4*m.PageBytes(), m.ReservedBytes(), "operation %d of %v fails", failing, j.Ops)
		assert.Equal(t, 4*m.PageBytes(), m.LostBytes())
		require.NoError(t, m.Check(false, map[Client]uint64{}))
	}
}

// Victims have as many bytes as it says: whole handles of at least as many as were asked for, or all.
func TestVictimsAreWholeHandles(t *testing.T) {
	t.Parallel()
	m := fourHandles(t)
	m.Free(Run{First: 0, Pages: 16}, Tag{})
	for pages, count := range map[int64]int{0: 0, 1: 1, 4: 1, 5: 2, 12: 3, 15: 4, 16: 4, 17: 4, 99: 4} {
		ids, bytes := m.Victims(pages*m.PageBytes(), Run{})
		assert.Len(t, ids, count, "%d pages", pages)
		assert.Equal(t, int64(4*count)*m.PageBytes(), bytes, "%d pages", pages)
	}
	for i := range uint32(4) {
		ids, bytes := m.Victims(99*m.PageBytes(), Run{First: 4*i + 1, Pages: 1})
		assert.Len(t, ids, 3)
		assert.NotContains(t, ids, m.pages[4*i].handle, "it overlaps")
		assert.Equal(t, 12*m.PageBytes(), bytes)
	}
}

// The outcome of a failed job of any kind names the operation that failed; it is Await for a job without operations.
func TestAnOutcomeNamesTheOperationThatFailed(t *testing.T) {
	t.Parallel()
	for name, plan := range map[string]func(m *Memory, j *Job){
		"fill":   func(m *Memory, j *Job) { m.PlanFill(j, Plan{Window: Run{First: 20, Pages: 8}, MaxHandlePages: 4}) },
		"shrink": func(m *Memory, j *Job) { m.PlanShrink(j, []int32{m.pages[0].handle}) },
		"close":  func(m *Memory, j *Job) { m.PlanClose(j) },
		"sleep":  func(m *Memory, j *Job) { m.PlanSleep(j, 1) },
		"wake": func(m *Memory, j *Job) {
			var sleep Job
			m.PlanSleep(&sleep, 1)
			perform(m, &sleep, len(sleep.Ops))
			m.PlanWake(j, 1)
		},
		"query": func(*Memory, *Job) {},
	} {
		for done := 0; ; done++ {
			m := filled(t)
			var j Job
			plan(m, &j)
			if done > len(j.Ops) {
				break
			}
			want := Await
			if done < len(j.Ops) {
				want = j.Ops[done].Verb
			}
			require.NoError(t, m.Check(true, map[Client]uint64{}), name)
			start := m.ReservedBytes()
			out := m.Finish(&j, done, true)
			assert.Equal(t, want, out.FailedAt, "%s, %d done", name, done)
			assert.Equal(t, m.ReservedBytes()-start, out.GrownBytes, "%s, %d done", name, done)
		}
	}
}
