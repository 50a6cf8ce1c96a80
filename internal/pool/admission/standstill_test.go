package admission

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// atAStandstill has two accounts that hold memory and wait for more, of which everybody does nothing else.
func atAStandstill(t *testing.T) *Table {
	t.Helper()
	table := new(Table)
	table.Arrive(Waiter{ID: 1, Account: 1, Bytes: 4, Blocked: true})
	table.Arrive(Waiter{ID: 2, Account: 2, Bytes: 2, Blocked: true})
	exhaust(table)
	return table
}

// exhaust tries everybody in vain whom Next gives.
func exhaust(table *Table) {
	for id, ok := table.Next(); ok; id, ok = table.Next() {
		table.Failed(id)
	}
}

// changes returns every event that ends a standstill, each followed by calls that make everyone wait again.
func changes() map[string]func(*Table) {
	return map[string]func(*Table){
		"a goroutine that waited goes on for a while": func(table *Table) {
			table.Block(1, false)
			table.Block(1, true)
		},
		"another request arrives": func(table *Table) { table.Arrive(Waiter{ID: 3, Account: 2, Bytes: 9, Blocked: true}) },
		"a request is cancelled":  func(table *Table) { table.Arrive(Waiter{ID: 3, Account: 2, Bytes: 9}); table.Remove(3) },
		"an account stands for a while": func(table *Table) {
			table.Suspend(1, [][]Account{nil})
			table.Suspend(1, nil)
		},
		"others free an account's memory for a while": func(table *Table) {
			table.FreedBy(1, []Account{2})
			table.FreedBy(1, nil)
		},
		"memory changes": (*Table).Changed,
	}
}

// A deadlock is believed only if nothing at all has changed since everything was collected: an account that ran in between may
// have freed memory that has not been looked at. So each change has everything collected again.
func TestAnyChangeEndsAStandstill(t *testing.T) {
	t.Parallel()
	for name, change := range changes() {
		t.Run(name, func(t *testing.T) {
			holders := []Account{1, 2}
			undisturbed := atAStandstill(t)
			require.Equal(t, Confirm, lifts(undisturbed, holders))
			undisturbed.Confirmed()
			v, id := undisturbed.Stuck(holders)
			require.Equal(t, Deadlock, v)
			require.EqualValues(t, 2, id)

			during := atAStandstill(t) // while it is collected
			require.Equal(t, Confirm, lifts(during, holders))
			change(during)
			during.Confirmed()
			exhaust(during)
			assert.Equal(t, Confirm, lifts(during, holders), "what was collected before the change says nothing")

			after := atAStandstill(t)
			require.Equal(t, Confirm, lifts(after, holders))
			after.Confirmed()
			change(after)
			exhaust(after)
			assert.Equal(t, Confirm, lifts(after, holders))
		})
	}
}

// Without an account that holds memory none can come back: a request is hopeless, also if no goroutine waits for the answer.
func TestARequestIsHopelessThoughNobodyWaits(t *testing.T) {
	t.Parallel()
	for _, blocked := range []bool{false, true} {
		table := new(Table)
		table.Arrive(Waiter{ID: 1, Account: 1, Bytes: 4, Blocked: blocked})
		exhaust(table)
		require.Equal(t, Confirm, lifts(table, nil), "blocked %t", blocked)
		table.Confirmed()
		v, id := table.Stuck(nil)
		assert.Equal(t, Hopeless, v, "blocked %t", blocked)
		assert.EqualValues(t, 1, id)
	}
}

// lifts returns the next step once all waiters that a standstill lets pass were tried.
func lifts(table *Table, holders []Account) Verdict {
	for {
		v, _ := table.Stuck(holders)
		if v != Lift {
			return v
		}
		exhaust(table)
	}
}

// A waiter may pass in a standstill, and not after it: a small request does not overtake a large one for ever.
func TestAnyChangeEndsALift(t *testing.T) {
	t.Parallel()
	small := Waiter{Account: 3, Bytes: 9}
	for name, change := range changes() {
		t.Run(name, func(t *testing.T) {
			table := atAStandstill(t)
			require.False(t, table.MayPass(small))
			require.Equal(t, Confirm, lifts(table, []Account{1, 2}))
			require.True(t, table.MayPass(small))
			change(table)
			assert.False(t, table.MayPass(small))
		})
	}
}

// A deadlock refuses a waiter whose answer a caller waits for: the refusal of another would resume nobody.
func TestWhoIsRefusedIsWaitedFor(t *testing.T) {
	t.Parallel()
	holders := []Account{1, 2}
	table := atAStandstill(t)
	table.Arrive(Waiter{ID: 3, Account: 2, Bytes: 1}) // the youngest, of an account that holds memory
	exhaust(table)
	require.Equal(t, Confirm, lifts(table, holders))
	table.Confirmed()
	v, id := table.Stuck(holders)
	require.Equal(t, Deadlock, v)
	assert.EqualValues(t, 2, id)
}

// A deadlock refuses the youngest of the waiters whose accounts hold memory, wherever it is among the others.
func TestTheYoungestOfThoseWhoHoldMemoryIsRefused(t *testing.T) {
	t.Parallel()
	for holder := range uint64(3) {
		table := new(Table)
		for id := range uint64(3) {
			table.Arrive(Waiter{ID: id + 1, Account: Account(id + 1), Bytes: 4, Blocked: true})
		}
		holders := []Account{Account(holder + 1), 1}
		exhaust(table)
		require.Equal(t, Confirm, lifts(table, holders))
		table.Confirmed()
		v, id := table.Stuck(holders)
		require.Equal(t, Deadlock, v)
		assert.Equal(t, holder+1, id)
	}
}

// Memory that was served while a request waited for its quota did not pass it: it counts once the request is ready.
func TestNobodyPassesWhoHasNoQuota(t *testing.T) {
	t.Parallel()
	table := new(Table)
	table.Arrive(Waiter{ID: 1, Account: 1, Bytes: 4, Unready: true})
	for id := range uint64(8) {
		table.Arrive(Waiter{ID: 10 + id, Account: 2, Bytes: 4})
		next, ok := table.Next()
		require.True(t, ok)
		table.Served(next)
	}
	for range 4 {
		table.Passed(Waiter{Account: 3, Bytes: 4})
	}
	table.Ready(1)
	small := Waiter{Account: 3, Bytes: 4}
	require.True(t, table.MayPass(small), "nobody has passed it")
	table.Passed(small)
	assert.False(t, table.MayPass(Waiter{Account: 3, Bytes: 1}), "now somebody has, by all that it wants")
}

// Served memory counts against the account's share at once: two accounts with the same share are served in turn, the one that was short first, within one
// moment of which the usage is set once.
func TestWhatIsServedCountsAtOnce(t *testing.T) {
	t.Parallel()
	table := new(Table)
	usage := []Usage{{Account: 1, ChargedBytes: 2, ShareBytes: 8}, {Account: 2, ChargedBytes: 2, ShareBytes: 8}}
	for i, account := range []Account{1, 1, 2, 2} {
		table.Arrive(Waiter{ID: uint64(i) + 1, Account: account, Bytes: 1, ChargedBytes: 1})
	}
	table.SetUsage(usage)
	var served []uint64
	for id, ok := table.Next(); ok; id, ok = table.Next() {
		served = append(served, id)
		table.Served(id)
		require.NoError(t, table.Check())
	}
	assert.Equal(t, []uint64{1, 3, 4, 2}, served)
}

// A request whose quota comes in the middle of a standstill ends it, and one that is served.
func TestQuotaAndServiceEndAStandstill(t *testing.T) {
	t.Parallel()
	holders := []Account{1, 2}
	table := new(Table)
	table.Arrive(Waiter{ID: 1, Account: 1, Bytes: 4, Blocked: true})
	table.Arrive(Waiter{ID: 2, Account: 2, Bytes: 2, Blocked: true, Unready: true})
	exhaust(table)
	require.Equal(t, Confirm, lifts(table, holders))
	table.Ready(2)
	table.Confirmed()
	id, ok := table.Next()
	require.True(t, ok, "it is tried first")
	require.EqualValues(t, 2, id)
	table.Failed(2)
	require.Equal(t, Confirm, lifts(table, holders))

	table.Changed()
	id, _ = table.Next()
	table.Served(id)
	require.EqualValues(t, 1, id)
	table.Confirmed()
	exhaust(table)
	v, _ := table.Stuck(holders)
	assert.Equal(t, Wait, v, "the account that was served goes on")
}

// Facts that the table has already are no change: a deadlock is believed all the same.
func TestNothingNewEndsNoStandstill(t *testing.T) {
	t.Parallel()
	holders := []Account{1, 2}
	table := atAStandstill(t)
	tell := func() {
		table.FreedBy(1, []Account{2})
		table.FreedBy(3, nil)
		table.Suspend(2, [][]Account{{1}})
		table.Suspend(3, nil)
	}
	tell()
	exhaust(table)
	require.Equal(t, Confirm, lifts(table, holders))
	tell()
	table.Confirmed()
	v, _ := table.Stuck(holders)
	assert.Equal(t, Deadlock, v)
}

// An account that is forgotten is in no list: neither with the accounts that free its memory, nor as one of those.
func TestAForgottenAccountIsInNoList(t *testing.T) {
	t.Parallel()
	var table Table
	table.Suspend(1, [][]Account{{2}})
	table.FreedBy(1, []Account{2})
	table.FreedBy(2, []Account{1})
	table.FreedBy(3, []Account{1, 2})
	assert.True(t, table.Suspended(1))
	assert.False(t, table.Suspended(2))
	table.Forget(1)
	assert.False(t, table.Suspended(1))
	assert.Equal(t, []freers{{3, []Account{2}}}, table.freers)
}

// Bytes served before a waiter count until it is served: for the first waiter of each other account, and not if a later waiter of
// its own account is served.
func TestTheCountOfOutrankedBytesRestartsWithTheFirstWaiter(t *testing.T) {
	t.Parallel()
	var table Table
	table.SetUsage([]Usage{{Account: 1, ShareBytes: 100}, {Account: 2, ShareBytes: 100}})
	for id, account := range []Account{1, 2, 2, 2} {
		table.Arrive(Waiter{ID: uint64(id + 1), Account: account, Bytes: 10})
	}
	counts := func() [2]int64 { return [2]int64{table.sharing(1).outrankedBytes, table.sharing(2).outrankedBytes} }
	table.sharing(2).outrankedBytes = 7
	table.Served(3)
	assert.Equal(t, [2]int64{10, 7}, counts(), "not the first of its account")
	table.Served(2)
	assert.Equal(t, [2]int64{20, 0}, counts(), "the first, and another waits")
}

// Where nobody holds memory the first ready waiter is refused, since the quota of another has nothing to do with memory, and the
// first of all if none is ready.
func TestTheFirstReadyWaiterIsHopeless(t *testing.T) {
	t.Parallel()
	for ready, hopeless := range map[uint64]uint64{0: 1, 1: 1, 2: 2, 3: 3} {
		table := new(Table)
		for id := uint64(1); id <= 3; id++ {
			table.Arrive(Waiter{ID: id, Account: 1, Bytes: 4, Blocked: true, Unready: id != ready})
		}
		exhaust(table)
		var v Verdict
		var id uint64
		for range 4 {
			if v, id = table.Stuck(nil); v == Hopeless {
				break
			}
			exhaust(table)
			table.Confirmed()
		}
		require.Equal(t, Hopeless, v)
		assert.Equal(t, hopeless, id, "%d is ready", ready)
	}
}

// A standstill first lets waiters pass that others hold up. Where all were tried, freed memory is collected at once.
func TestAStandstillLiftsForThoseThatAreHeldUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		second Waiter
		want   Verdict
	}{
		"held up":         {Waiter{ID: 2, Account: 2, Bytes: 9, Blocked: true}, Lift},
		"tried":           {Waiter{ID: 2, Account: 2, Bytes: 3, Blocked: true}, Confirm},
		"without a quota": {Waiter{ID: 2, Account: 2, Bytes: 9, Blocked: true, Unready: true}, Confirm},
	} {
		var table Table
		table.Arrive(Waiter{ID: 1, Account: 1, Bytes: 5, Blocked: true})
		table.Arrive(c.second)
		exhaust(&table)
		v, _ := table.Stuck([]Account{1, 2})
		assert.Equal(t, c.want, v, name)
	}
}
