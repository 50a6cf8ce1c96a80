package core

import (
	"slices"
	"testing"

	"github.com/go-vram/vram/internal/effect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// aged returns a pool that releases memory once it has been free for so many ticks.
func aged(ticks uint32) Settings {
	return Settings{Policy: Policy{HandlePages: 1, Slack: 4096}, LimitBytes: 1000 * pageBytes, AgeTicks: ticks}
}

// old returns a market with a client that has used so many pages, which are free with the pool.
func old(t *testing.T, s Settings, pages uint32) *market {
	t.Helper()
	m := openMarket(t, 2, s) // else all that is free is lent at once
	m.alloc(1, pages)
	m.drop(1)
	m.giveAll(1)
	return m
}

// giveAll returns all that a client's callers do not use, for good.
func (m *market) giveAll(id Client) {
	m.mail = append(m.mail, Return{Client: id, Runs: m.freeRuns(id), Final: true})
	m.deliverAt(len(m.mail) - 1)
	m.publish()
}

// ticks lets time pass, and returns how many handles were released at each tick.
func (m *market) ticks(count int) (released []int) {
	for range count {
		released = append(released, m.tick())
	}
	return released
}

// Memory goes back to the driver once it has been free for so many ticks, at most 256 handles at a
// tick.
func TestFreeMemoryAges(t *testing.T) {
	t.Parallel()
	m := old(t, aged(3), 600)
	assert.Equal(t, []int{0, 0, 256, 256, 88, 0}, m.ticks(6))
	assert.Zero(t, m.core.ReservedBytes())

	m = old(t, aged(0), 10)
	assert.Equal(t, make([]int, 50), m.ticks(50), "never")
	assert.EqualValues(t, 10*pageBytes, m.core.ReservedBytes())
}

// The age of a page restarts when the page is used, and no other page's age does.
func TestMemoryThatIsUsedIsYoung(t *testing.T) {
	t.Parallel()
	m := old(t, aged(4), 20)
	assert.Equal(t, []int{0, 0, 0}, m.ticks(3))
	m.alloc(1, 5)
	m.drop(1)
	m.giveAll(1)
	require.Zero(t, m.held(1))
	assert.Equal(t, []int{15, 0, 0, 5}, m.ticks(4))
}

// pauses has a client use so many pages for a moment, then one and two more in each of 16 steps, after each of which it returns
// all its pages. It returns how many pages the client had in each step with the first.
func (m *market) pauses(pages uint32) (held []int) {
	m.alloc(1, pages)
	m.drop(1)
	m.giveAll(1)
	for range 16 {
		m.alloc(1, 1)
		held = append(held, m.held(1))
		m.alloc(1, 2)
		m.tick()
		m.drop(1)
		m.giveAll(1)
		m.tick()
	}
	return held
}

// A client that pauses again and again is lent at once as much as it has used lately, which is no more than it uses now when
// its peak is two windows old. So the rest gets old, though it is one run and there is no other client.
func TestAClientThatPausesIsLentWhatItHasUsedLately(t *testing.T) {
	t.Parallel()
	m := openMarket(t, 1, aged(6))
	held := m.pauses(40)
	assert.Equal(t, slices.Repeat([]int{40}, 6), held[:6], "the peak is not old: one request, and it has all that it may need")
	assert.Equal(t, slices.Repeat([]int{3}, 10), held[6:])
	assert.EqualValues(t, 3*pageBytes, m.core.ReservedBytes())
}

// It is lent all free memory where no more than twice as much is reserved as it uses, and where memory does not age.
func TestAClientThatPausesIsLentAllThatItMayNeed(t *testing.T) {
	t.Parallel()
	for ticks, pages := range map[uint32]uint32{6: 6, 0: 40} {
		m := openMarket(t, 1, aged(ticks))
		assert.Equal(t, slices.Repeat([]int{int(pages)}, 16), m.pauses(pages))
		assert.EqualValues(t, pages*pageBytes, m.core.ReservedBytes())
	}
}

// A handle is as old as its youngest page, and one with a page in use stays.
func TestAHandleIsAsOldAsItsYoungestPage(t *testing.T) {
	t.Parallel()
	s := aged(3)
	s.Policy.HandlePages = 4
	m := openMarket(t, 1, s)
	m.alloc(1, 12)
	clear(m.inUse[0:7]) // a handle and three pages of the next
	m.giveAll(1)
	assert.Equal(t, []int{0, 0}, m.ticks(2))
	clear(m.inUse[7:8])
	m.giveAll(1)
	assert.Equal(t, []int{1, 0, 1, 0, 0, 0}, m.ticks(6))
	assert.EqualValues(t, 4*pageBytes, m.core.ReservedBytes())
}

// Memory whose fence has not passed does not age: it cannot go back.
func TestPendingMemoryAgesFromItsFenceOn(t *testing.T) {
	t.Parallel()
	m := openMarket(t, 1, aged(3))
	m.alloc(1, 4)
	m.drop(1)
	m.clients[1].issued = 1
	m.mail = append(m.mail, Return{Client: 1, Runs: m.freeRuns(1), Fence: 1, Final: true})
	m.deliverAt(0)
	assert.Equal(t, make([]int, 6), m.ticks(6))
	m.clients[1].passed = 1
	assert.Equal(t, []int{0, 0, 0, 4}, m.ticks(4), "the first of these ticks sees that it has passed")
}

// Memory that was mapped ahead stays until it was used: a program has asked for it, and will come.
func TestWarmedMemoryAgesOnceItWasUsed(t *testing.T) {
	t.Parallel()
	m := openMarket(t, 1, aged(3))
	m.token++
	m.await("warm")
	m.send(Warm{Token: m.token, Runs: []uint32{16}})
	m.settle()
	require.Empty(t, m.ends)
	assert.Equal(t, make([]int, 20), m.ticks(20))
	m.alloc(1, 4)
	m.drop(1)
	m.giveAll(1)
	released := m.ticks(3)
	assert.GreaterOrEqual(t, released[2], 4)
	assert.EqualValues(t, 16-released[2], m.core.ReservedBytes()/pageBytes)
}

// To free a plain segment waits for all work of the device: age is no reason for that.
func TestPlainSegmentsDoNotAge(t *testing.T) {
	t.Parallel()
	m := openMarket(t, 1, aged(2))
	m.core = NewPlain(pageBytes, uint32(len(m.pages)), m.settings) //nolint:gosec // a few
	m.idle = true
	m.send(Join{Client: 1})
	m.alloc(1, 8)
	m.drop(1)
	m.giveAll(1)
	for range 20 {
		m.tick()
	}
	assert.EqualValues(t, 8*pageBytes, m.core.ReservedBytes())
}

// Memory that the driver does not take back is young again.
func TestADriverThatRefusesIsAskedSeldom(t *testing.T) {
	t.Parallel()
	m := old(t, aged(3), 4)
	for range 3 {
		m.ticks(2)
		m.publish()
		m.send(Tick{})
		require.NotNil(t, m.job)
		m.perform(0, errBroken)
		assert.Nil(t, m.job)
		assert.EqualValues(t, 4*pageBytes, m.core.ReservedBytes())
	}
	assert.Equal(t, []int{0, 0, 4}, m.ticks(3))
}

// Ticks count while a job is in flight at each of them.
func TestMemoryAgesInABusyPool(t *testing.T) {
	t.Parallel()
	m := openMarket(t, 2, aged(3))
	m.alloc(1, 4)
	m.alloc(2, 2)
	m.drop(1)
	m.drop(2)
	m.giveAll(1)
	m.clients[2].issued = 1
	m.mail = append(m.mail, Return{Client: 2, Runs: m.freeRuns(2), Fence: 1, Final: true})
	m.deliverAt(0)
	for range 3 {
		m.publish()
		m.send(Tick{})
		require.NotNil(t, m.job, "it polls the fence")
	}
	m.perform(-1, nil)
	assert.Equal(t, 4, m.tick())
}

// A client that has returned a surplus is lent no more than it asks for until twice the age has passed, and then as before.
func TestAClientWithASurplusIsLentLittleForAWhile(t *testing.T) {
	t.Parallel()
	const age = 3
	for ticks, lent := range map[int]uint32{0: 1, 1: 1, 2*age - 1: 1, 2 * age: 8, 2*age + 1: 8} {
		c := New(pageBytes, 64, Settings{Policy: Policy{HandlePages: 1}, LimitBytes: 64 * pageBytes, AgeTicks: age})
		ask := func(pages uint32) Run {
			fx := c.Step(Refill{Client: 1, Token: 1, Pages: pages, Bytes: int64(pages) * pageBytes})
			for range 4 {
				if len(effect.Left(&fx.Grants)) > 0 {
					break
				}
				if fx.Job != nil {
					fx = c.Step(JobDone{Job: fx.Job, Done: len(fx.Job.Ops)})
				} else {
					fx = c.Step(Return{Client: 1, Answer: true})
				}
			}
			require.Len(t, effect.Left(&fx.Grants), 1)
			return effect.Left(&fx.Grants)[0].Run
		}
		c.Step(Join{Client: 1})
		all := ask(8)
		c.Step(Return{Client: 1, Surplus: true})
		for range ticks {
			c.Step(Tick{})
		}
		c.Step(Return{Client: 1, Runs: []Run{all}})
		assert.Equal(t, lent, ask(1).Pages, "after %d ticks", ticks)
		require.NoError(t, c.Check())
	}
}
