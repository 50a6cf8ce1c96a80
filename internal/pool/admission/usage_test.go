package admission

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The last call alone says which accounts have a share: none, others, or the same in another order.
func TestSharesAreThoseOfTheLastCall(t *testing.T) {
	t.Parallel()
	usage := func(accounts ...Account) (all []Usage) {
		for _, a := range accounts {
			all = append(all, Usage{Account: a, ShareBytes: 10 * int64(a), ChargedBytes: int64(a)})
		}
		return all
	}
	var table Table
	for _, all := range [][]Usage{nil, usage(1), usage(2), usage(2), usage(1, 2), usage(2, 1), usage(3, 1, 2), usage(2, 3, 1), usage(2, 3), nil, usage(3), usage()} {
		table.SetUsage(all)
		var got []Usage
		for _, s := range table.shares {
			got = append(got, Usage{Account: s.account, ShareBytes: s.shareBytes, ChargedBytes: s.usedBytes})
		}
		assert.ElementsMatch(t, all, got)
	}
}

// A request that has not arrived borrows if its account's use, with the requests that wait before it and are charged, exceeds the
// share.
func TestWhoWaitsBeforeARequestCountsInItsShare(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		waits   Waiter
		borrows bool
	}{
		"as much priority":    {Waiter{Account: 1, Priority: 3}, true},
		"more priority":       {Waiter{Account: 1, Priority: 4}, true},
		"less priority":       {Waiter{Account: 1, Priority: 2}, false},
		"without a charge":    {Waiter{Account: 1, Priority: 3, Unready: true}, false},
		"of another account":  {Waiter{Account: 2, Priority: 3}, false},
		"without any account": {Waiter{Priority: 3}, false},
	} {
		for _, bytes := range []int64{5, 6} { // all of the share, and a byte more
			w := c.waits
			w.ID, w.Bytes, w.ChargedBytes = 1, bytes, bytes
			used := map[Account]int64{1: 5}
			if !w.Unready {
				used[w.Account] += bytes
			}
			var table Table
			table.SetUsage([]Usage{{1, used[1], 10}, {2, used[2], 100}})
			table.Arrive(w)
			table.SetUsage([]Usage{{1, used[1], 10}, {2, used[2], 100}})
			got := table.Borrows(Waiter{Account: 1, Priority: 3, Bytes: 5, ChargedBytes: 5})
			assert.Equal(t, c.borrows && bytes > 5, got, "%s, %d bytes", name, bytes)
		}
	}
}

// Served bytes count against the first waiters of other accounts of the same rank: the same priority, and within their shares or not.
func TestServedBytesCountAgainstEqualRanks(t *testing.T) {
	t.Parallel()
	for priority := range 5 {
		for _, usedBytes := range []int64{0, 150} {
			for _, waits := range []int64{0, 150} {
				var table Table
				usage := []Usage{{1, usedBytes, 100}, {2, waits, 100}}
				table.SetUsage(usage)
				table.Arrive(Waiter{ID: 1, Account: 2, Priority: 2, Bytes: 5})
				table.SetUsage(usage)
				table.Passed(Waiter{Account: 1, Priority: priority, Bytes: 7})
				want := int64(0)
				if priority == 2 && usedBytes == waits {
					want = 7
				}
				assert.Equal(t, want, table.sharing(2).outrankedBytes, "priority %d, %d and %d bytes used", priority, usedBytes, waits)
			}
		}
	}
}

// Bytes that are served before they wait have their effect at once: who was outranked long enough is first.
func TestServedBytesReorderTheQueue(t *testing.T) {
	t.Parallel()
	table := Table{lag: 1}
	table.SetUsage([]Usage{{1, 49, 1000}, {2, 50, 1000}})
	for id := range uint64(2) {
		table.Arrive(Waiter{ID: id + 1, Account: Account(id + 1), Bytes: 5})
	}
	first := func() (id uint64) {
		table.Each(func(w Waiter) { id = cmp.Or(id, w.ID) })
		return id
	}
	table.Passed(Waiter{Account: 1, Bytes: 9})
	require.EqualValues(t, 1, first(), "it has less")
	table.Passed(Waiter{Account: 1, Bytes: 1})
	assert.EqualValues(t, 2, first(), "twice its request was served before it")
}

// Among waiters without a share one that has a share comes at the age of the youngest before it that has its priority: one with more
// priority does not hold it up.
func TestATurnIsOfOnePriority(t *testing.T) {
	t.Parallel()
	var table Table
	table.SetUsage([]Usage{{1, 0, 100}, {2, 0, 100}, {3, 50, 100}})
	table.Arrive(Waiter{ID: 1, Account: 2, Priority: 0, Bytes: 5, Age: 1})
	table.Arrive(Waiter{ID: 2, Account: 9, Priority: 0, Bytes: 5, Age: 2})
	table.Arrive(Waiter{ID: 3, Account: 1, Priority: 1, Bytes: 5, Age: 3})
	order := func() (ids []uint64) {
		table.Each(func(w Waiter) { ids = append(ids, w.ID) })
		return ids
	}
	assert.Equal(t, []uint64{3, 1, 2}, order())
	table.Arrive(Waiter{ID: 4, Account: 3, Priority: 0, Bytes: 5, Age: 1}) // it has more in use than the account 2
	assert.Equal(t, []uint64{3, 1, 4, 2}, order())
}

// Waiters of one priority come in the order of what their accounts have in use, also where one of another priority is between them by
// that: the elder does not overtake.
func TestATurnIsHandedOnWithinAPriority(t *testing.T) {
	t.Parallel()
	var table Table
	table.SetUsage([]Usage{{1, 0, 100}, {2, 10, 100}, {3, 20, 100}})
	for id, priority := range map[uint64]int{1: 0, 2: 1, 3: 0} {
		table.Arrive(Waiter{ID: id, Account: Account(id), Priority: priority, Bytes: 30, Age: 10 - id})
	}
	var ids []uint64
	table.Each(func(w Waiter) { ids = append(ids, w.ID) })
	assert.Equal(t, []uint64{2, 1, 3}, ids)
}

// Ready waiters of one account keep their order if one of them comes back, also where a younger one without a quota comes before them.
func TestAWaiterThatComesBackKeepsItsPlace(t *testing.T) {
	t.Parallel()
	var table Table
	usage := []Usage{{1, 20, 10}}
	table.SetUsage(usage)
	table.Arrive(Waiter{ID: 1, Account: 1, Bytes: 5, Age: 1, ChargedBytes: 5}) // borrows
	table.Arrive(Waiter{ID: 3, Account: 1, Bytes: 5, Age: 3, Unready: true})
	table.Arrive(Waiter{ID: 2, Account: 1, Bytes: 5, Age: 2, ChargedBytes: 5})
	var ids []uint64
	table.Each(func(w Waiter) { ids = append(ids, w.ID) })
	assert.Equal(t, []uint64{3, 1, 2}, ids)
}

// Served bytes count against the first ready waiter of an account, whatever the rank of one before it that has no quota.
func TestServedBytesCountAgainstTheFirstReadyWaiter(t *testing.T) {
	t.Parallel()
	for _, unready := range []bool{false, true} {
		var table Table
		table.SetUsage([]Usage{{1, 0, 100}, {2, 0, 100}})
		table.Arrive(Waiter{ID: 1, Account: 2, Bytes: 5, Priority: 1, Unready: unready})
		table.Arrive(Waiter{ID: 2, Account: 2, Bytes: 5})
		table.Passed(Waiter{Account: 1, Bytes: 7})
		want := int64(0) // of another priority
		if unready {
			want = 7
		}
		assert.Equal(t, want, table.sharing(2).outrankedBytes)
	}
}

// Bytes that were served before the first waiter of an account stay counted if other accounts get a share.
func TestOutrankedBytesOutlastANewShare(t *testing.T) {
	t.Parallel()
	var table Table
	table.SetUsage([]Usage{{2, 0, 10}})
	table.Arrive(Waiter{ID: 1, Account: 2, Bytes: 1})
	table.sharing(2).outrankedBytes = 7
	table.SetUsage([]Usage{{1, 0, 10}, {2, 0, 10}, {3, 0, 10}})
	assert.EqualValues(t, 7, table.sharing(2).outrankedBytes)
	assert.Zero(t, table.sharing(1).outrankedBytes)
}

// An account that no longer waits has no debts: bytes that are served to others until it waits again do not count.
func TestNobodyIsOutrankedWhoDoesNotWait(t *testing.T) {
	t.Parallel()
	var table Table
	table.SetUsage([]Usage{{1, 0, 10}, {2, 0, 10}})
	table.Arrive(Waiter{ID: 1, Account: 1, Bytes: 1})
	table.Arrive(Waiter{ID: 2, Account: 2, Bytes: 1})
	table.sharing(1).outrankedBytes, table.sharing(2).outrankedBytes = 7, 7
	table.Remove(2)
	assert.EqualValues(t, 7, table.sharing(1).outrankedBytes)
	assert.Zero(t, table.sharing(2).outrankedBytes)
}

// The credit of an account is at most its share and its first request, and so is its debt: an account that waited for long, or had more for
// long, has its proportion again after so many bytes.
func TestCreditsAndDebtsAreBounded(t *testing.T) {
	t.Parallel()
	var table Table
	table.Arrive(Waiter{ID: 1, Account: 1, Bytes: 30})
	used, credit, debt := []int64{0, 300}, 130.0, 150.0
	for range 2 {
		table.SetUsage([]Usage{{1, used[0], 100}, {2, used[1], 100}})
		one, other := table.sharing(1), table.sharing(2)
		before := [2]float64{one.creditBytes, other.creditBytes}
		serve := func() { table.outrank(&entry{Waiter: Waiter{ID: 2, Account: 2, Bytes: 50}}) }
		serve()
		assert.InDelta(t, math.Copysign(25, credit), one.creditBytes-before[0], 0, "half of the shares, none or all of the memory")
		assert.InDelta(t, -math.Copysign(25, credit), other.creditBytes-before[1], 0)
		for range 30 {
			serve()
		}
		assert.InDelta(t, credit, one.creditBytes, 0)
		assert.InDelta(t, -debt, other.creditBytes, 0)
		slices.Reverse(used)
		credit, debt = -credit, -debt
	}
}
