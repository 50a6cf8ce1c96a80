package memory

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// slept returns a memory in which client 1 has handles of four pages at 0 and 8, client 2 one at 4, and both share one at 12.
func slept(t *testing.T) *Memory {
	t.Helper()
	m := New(pageBytes, 64, false)
	window := Run{First: 0, Pages: 16}
	var j Job
	m.PlanFill(&j, Plan{Window: window, For: 1, MaxHandlePages: 4})
	perform(m, &j, len(j.Ops))
	m.Transfer(window, 1)
	m.Transfer(Run{First: 4, Pages: 4}, 2)
	m.Transfer(Run{First: 14, Pages: 2}, 2)
	check(t, m)
	return m
}

func check(t *testing.T, m *Memory) {
	t.Helper()
	require.NoError(t, m.Check(false, map[Client]uint64{}))
}

// play performs a job, and its rollback if it fails, up to an operation that fails; with -1 none does.
func play(t *testing.T, m *Memory, j *Job, failsAt int) {
	t.Helper()
	done := len(j.Ops)
	if failsAt >= 0 && failsAt < done {
		done = failsAt
	}
	out := perform(m, j, done)
	check(t, m)
	if len(out.Undo.Ops) > 0 {
		play(t, m, &out.Undo, -1)
	}
}

// figures formats the totals of the whole memory.
func figures(m *Memory) string {
	return fmt.Sprintf("reserved %d asleep %d", m.ReservedBytes()/pageBytes, m.SleepingBytes()/pageBytes)
}

func TestOnlyWholeHandlesOfOneClientSleep(t *testing.T) {
	t.Parallel()
	m := slept(t)
	var sleep, wake Job
	m.PlanSleep(&sleep, 1)
	play(t, m, &sleep, -1)
	assert.Equal(t, "reserved 8 asleep 8", figures(m), "the handle that two clients share stays")
	assert.EqualValues(t, 8*pageBytes, m.WakeBytes(1))
	assert.Zero(t, m.WakeBytes(2))
	m.PlanWake(&wake, 1)
	play(t, m, &wake, -1)
	assert.Equal(t, "reserved 16 asleep 0", figures(m))
	var nothing Job
	m.PlanWake(&nothing, 1)
	assert.Empty(t, nothing.Ops)
}

// TestASleepFailsAnywhere has each operation of the sleep fail, and then of the wake. Both plans can start from every state.
func TestASleepFailsAnywhere(t *testing.T) {
	t.Parallel()
	for sleepFails := -1; sleepFails < 4; sleepFails++ {
		for wakeFails := -1; wakeFails < 6; wakeFails++ {
			t.Run(fmt.Sprintf("sleep %d, wake %d", sleepFails, wakeFails), func(t *testing.T) {
				t.Parallel()
				m := slept(t)
				var sleep, wake Job
				m.PlanSleep(&sleep, 1)
				play(t, m, &sleep, sleepFails)
				m.PlanWake(&wake, 1)
				play(t, m, &wake, wakeFails)
				if wakeFails >= 0 && wakeFails < len(wake.Ops) {
					assert.Equal(t, "reserved 8 asleep 8", figures(m), "all of it goes back")
				}
				for range 2 {
					var sleep, wake Job
					m.PlanSleep(&sleep, 1)
					play(t, m, &sleep, -1)
					assert.Equal(t, "reserved 8 asleep 8", figures(m))
					m.PlanWake(&wake, 1)
					play(t, m, &wake, -1)
					assert.Equal(t, "reserved 16 asleep 0", figures(m))
				}
			})
		}
	}
}

// TestSleepingPagesAreFreed frees pages after a sleep that failed anywhere, in parts and in either direction, and then closes the pool.
func TestSleepingPagesAreFreed(t *testing.T) {
	t.Parallel()
	for sleepFails := -1; sleepFails < 4; sleepFails++ {
		for _, parts := range [][]Run{
			nil,
			{{First: 0, Pages: 2}, {First: 2, Pages: 2}},
			{{First: 2, Pages: 1}, {First: 3, Pages: 1}},
			{{First: 8, Pages: 3}, {First: 11, Pages: 3}},
			{{First: 0, Pages: 1}, {First: 1, Pages: 1}, {First: 2, Pages: 1}, {First: 3, Pages: 1}},
		} {
			for _, backwards := range []bool{false, true} {
				t.Run(fmt.Sprintf("sleep %d, %v, backwards %v", sleepFails, parts, backwards), func(t *testing.T) {
					t.Parallel()
					m := slept(t)
					var sleep, end Job
					m.PlanSleep(&sleep, 1)
					play(t, m, &sleep, sleepFails)
					parts := slices.Clone(parts)
					if backwards {
						slices.Reverse(parts)
					}
					for _, part := range parts {
						m.Free(part, Tag{})
						check(t, m)
						for at := part.First; at < part.End(); at++ {
							assert.NotEqual(t, Lent, m.pages[at].state, "page %d", at)
						}
						asleep := 0
						for _, h := range []Run{{First: 0, Pages: 4}, {First: 8, Pages: 4}} {
							if slices.ContainsFunc(m.of(h), func(p page) bool { return p.state == Lent }) {
								asleep += 4
							}
						}
						if sleepFails < 0 {
							assert.Equal(t, fmt.Sprint("reserved 8 asleep ", asleep), figures(m), "a handle sleeps as long as a page names it")
						}
					}
					m.PlanClose(&end)
					play(t, m, &end, -1)
					assert.Equal(t, "reserved 0 asleep 0", figures(m))
					assert.Zero(t, m.LostBytes())
				})
			}
		}
	}
}

// TestAHandleWakesOnlyWhereItsPagesAre frees a part of a sleeping handle and fills those pages again for the same client.
func TestAHandleWakesOnlyWhereItsPagesAre(t *testing.T) {
	t.Parallel()
	m := slept(t)
	var sleep, fill, wake Job
	m.PlanSleep(&sleep, 1)
	play(t, m, &sleep, -1)
	part := Run{First: 2, Pages: 2}
	m.Free(part, Tag{})
	m.PlanFill(&fill, Plan{Window: part, For: 1, MaxHandlePages: 4})
	perform(m, &fill, len(fill.Ops))
	m.Transfer(part, 1)
	check(t, m)
	assert.EqualValues(t, 4*pageBytes, m.WakeBytes(1))
	m.PlanWake(&wake, 1)
	play(t, m, &wake, -1)
	assert.Equal(t, "reserved 14 asleep 4", figures(m))
}

// TestPagesAreFreedWithinAJob frees pages while a sleep or a wake that may fail anywhere is in flight.
func TestPagesAreFreedWithinAJob(t *testing.T) {
	t.Parallel()
	for _, freed := range []Run{{First: 0, Pages: 4}, {First: 2, Pages: 2}, {First: 8, Pages: 6}} {
		for wakes := range 2 {
			for failsAt := -1; failsAt < 7; failsAt++ {
				t.Run(fmt.Sprintf("%v, wake %d, fails at %d", freed, wakes, failsAt), func(t *testing.T) {
					t.Parallel()
					m := slept(t)
					var j, end Job
					m.PlanSleep(&j, 1)
					if wakes > 0 {
						play(t, m, &j, -1)
						j = Job{}
						m.PlanWake(&j, 1)
					}
					for at := freed.First; at < freed.End(); at++ {
						m.Free(Run{First: at, Pages: 1}, Tag{})
						require.NoError(t, m.Check(true, map[Client]uint64{}))
					}
					assert.False(t, m.LentTo(Run{First: freed.First, Pages: 1}, 1))
					play(t, m, &j, failsAt)
					m.PlanClose(&end)
					play(t, m, &end, -1)
					assert.Equal(t, "reserved 0 asleep 0", figures(m))
					assert.Zero(t, m.LostBytes())
				})
			}
		}
	}
}

// A wake gives access to all pages that it maps, after it has mapped them and by one call for neighbours, and to no others.
func TestAWakeGivesAccessToWhatItMaps(t *testing.T) {
	t.Parallel()
	for _, handlePages := range []uint32{1, 2, 4} {
		for _, others := range []Run{{First: 8, Pages: 4}, {First: 0, Pages: 4}, {First: 12, Pages: 4}, {First: 1, Pages: 14}} {
			if others.Pages%handlePages != 0 || others.First%handlePages != 0 {
				continue // a handle that clients share does not sleep
			}
			m := New(pageBytes, 64, false)
			window := Run{First: 0, Pages: 16}
			var fill, sleep, wake Job
			m.PlanFill(&fill, Plan{Window: window, For: 1, MaxHandlePages: handlePages})
			perform(m, &fill, len(fill.Ops))
			m.Transfer(window, 1)
			m.Transfer(others, 2)
			m.PlanSleep(&sleep, 1)
			play(t, m, &sleep, -1)
			m.PlanWake(&wake, 1)
			mapped := map[uint32]bool{}
			var access []Run
			for _, op := range wake.Ops {
				for at := op.Run.First; at < op.Run.End(); at++ {
					switch op.Verb {
					case Map:
						mapped[at] = true
					case Access:
						require.True(t, mapped[at], "page %d", at)
					}
				}
				if op.Verb == Access {
					access = append(access, op.Run)
				}
			}
			want := []Run{{First: 0, Pages: others.First}, {First: others.End(), Pages: 16 - others.End()}}
			want = slices.DeleteFunc(want, func(r Run) bool { return r.Pages == 0 })
			assert.Equal(t, want, access, "handles of %d pages", handlePages)
			assert.Len(t, mapped, int(16-others.Pages))
			play(t, m, &wake, -1)
			assert.Equal(t, "reserved 16 asleep 0", figures(m))
		}
	}
}

// The map has a run for each change of what the books say of a page: its state, its client, and whether it sleeps, with the number
// of handles that begin there.
func TestTheMapTellsWhatSleeps(t *testing.T) {
	t.Parallel()
	m := slept(t)
	m.Free(Run{First: 10, Pages: 2}, Tag{Client: 1, Fence: 3})
	runs := func() (all []MappedRun) {
		m.EachMapped(func(r MappedRun) {
			r.At = 0
			all = append(all, r)
		})
		return all
	}
	want := []MappedRun{
		{Run: Run{First: 0, Pages: 4}, State: Lent, Client: 1, Handles: 1},
		{Run: Run{First: 4, Pages: 4}, State: Lent, Client: 2, Handles: 1},
		{Run: Run{First: 8, Pages: 2}, State: Lent, Client: 1, Handles: 1},
		{Run: Run{First: 10, Pages: 2}, State: Free, Client: 1},
		{Run: Run{First: 12, Pages: 2}, State: Lent, Client: 1, Handles: 1},
		{Run: Run{First: 14, Pages: 2}, State: Lent, Client: 2},
	}
	assert.Equal(t, want, runs())
	var sleep Job
	m.PlanSleep(&sleep, 1)
	play(t, m, &sleep, -1)
	want[0].Asleep = true
	assert.Equal(t, want, runs(), "the others are parts of handles")

	m = New(pageBytes, 64, false) // handles side by side, of which one sleeps
	var j Job
	m.PlanFill(&j, Plan{Window: Run{First: 0, Pages: 6}, For: 1, MaxHandlePages: 2})
	perform(m, &j, len(j.Ops))
	m.Transfer(Run{First: 0, Pages: 6}, 1)
	assert.Equal(t, []MappedRun{{Run: Run{First: 0, Pages: 6}, State: Lent, Client: 1, Handles: 3}}, runs())
	sleep = Job{}
	m.PlanSleep(&sleep, 1)
	play(t, m, &sleep, len(sleep.Ops)-2) // one handle has given its memory back
	assert.Equal(t, []MappedRun{
		{Run: Run{First: 0, Pages: 2}, State: Lent, Client: 1, Handles: 1, Asleep: true},
		{Run: Run{First: 2, Pages: 4}, State: Lent, Client: 1, Handles: 2},
	}, runs())
}
