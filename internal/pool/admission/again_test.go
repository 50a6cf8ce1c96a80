package admission

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// order lists the waiters' IDs in the order of service.
func (t *Table) orderOfIDs() (ids []uint64) {
	t.Each(func(w Waiter) { ids = append(ids, w.ID) })
	return ids
}

// A waiter that goes away and comes back with the age of its first arrival has its first place, whatever the priorities, the
// accounts and their shares, and however often it does. Without its age it comes last among its equals.
func TestWhoComesBackHasItsFirstPlace(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3)) //nolint:gosec // reproducible is the point
		var table Table
		charged := map[Account]int64{1: r.Int64N(20), 2: r.Int64N(20)}
		charge := func(w Waiter, sign int64) {
			charged[w.Account] += sign * w.ChargedBytes
			if seed%2 == 0 {
				table.SetUsage([]Usage{{1, charged[1], 10}, {2, charged[2], 30}})
			}
		}
		arrive := func(w Waiter) (age uint64) {
			charge(w, 1)
			return table.Arrive(w)
		}
		remove := func(w Waiter) bool {
			gone := table.Remove(w.ID)
			if gone {
				charge(w, -1)
			}
			return gone
		}
		all := make([]Waiter, 2+r.IntN(6))
		ages := map[uint64]bool{}
		for i := range all {
			bytes := 1 + r.Int64N(9)
			all[i] = Waiter{ID: uint64(i) + 1, Account: Account(1 + r.IntN(3)), Priority: r.IntN(2), Bytes: bytes, ChargedBytes: bytes} //nolint:gosec // a few
			all[i].Age = arrive(all[i])
			require.False(t, ages[all[i].Age], "an age of its own")
			ages[all[i].Age] = true
		}
		first := table.orderOfIDs()
		for range 10 {
			var away []Waiter
			for range 1 + r.IntN(len(all)) {
				w := all[r.IntN(len(all))]
				if remove(w) {
					away = append(away, w)
				}
			}
			r.Shuffle(len(away), func(i, j int) { away[i], away[j] = away[j], away[i] })
			for _, w := range away {
				require.Equal(t, w.Age, arrive(w), "seed %d: it keeps its age", seed)
			}
			require.NoError(t, table.Check())
			require.Equal(t, first, table.orderOfIDs(), "seed %d: %+v came back", seed, away)
		}
		last := all[0]
		remove(last)
		last.ID, last.Age = 99, 0
		age := arrive(last)
		require.NoError(t, table.Check())
		require.Greater(t, age, slices.MaxFunc(all, func(a, b Waiter) int { return int(a.Age) - int(b.Age) }).Age) //nolint:gosec // a few
	}
}

// A waiter whose quota comes to allow it while another is tried was not passed by that one: later ones may pass it by as much as it
// wants. One that was ready before was passed.
func TestAWaiterThatBecomesReadyDuringATrialWasNotPassed(t *testing.T) {
	t.Parallel()
	for _, unready := range []bool{false, true} {
		var table Table
		table.Arrive(Waiter{ID: 1, Account: 1, Bytes: 8, Unready: unready})
		table.Arrive(Waiter{ID: 2, Account: 2, Bytes: 5})
		if !unready {
			id, _ := table.Next()
			require.EqualValues(t, 1, id)
			require.True(t, table.Failed(1))
		}
		id, _ := table.Next()
		require.EqualValues(t, 2, id)
		if unready {
			table.Ready(1)
		}
		table.Served(2)
		for bytes, passes := range map[int64]bool{3: true, 4: unready, 8: unready, 9: false} {
			require.Equal(t, passes, table.MayPass(Waiter{ID: 3, Account: 3, Bytes: bytes}), "%d bytes, %v", bytes, unready)
		}
		require.NoError(t, table.Check())
	}
}

// A request that was served before it arrived has passed those that come before it, and no others: not the ones of lower priority,
// nor those that borrow.
func TestARequestPassesThoseBeforeItAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		served Waiter
		passed bool
	}{
		"a later one":           {Waiter{ID: 2, Account: 2, Bytes: 5}, true},
		"of lower priority":     {Waiter{ID: 2, Account: 2, Bytes: 5, Priority: -1}, true},
		"of higher priority":    {Waiter{ID: 2, Account: 2, Bytes: 5, Priority: 1}, false},
		"that does not borrow":  {Waiter{ID: 2, Account: 3, Bytes: 5, ChargedBytes: 5}, false},
		"that borrows likewise": {Waiter{ID: 2, Account: 1, Bytes: 5, ChargedBytes: 5}, true},
	} {
		var table Table
		borrows := []Usage{{Account: 1, ChargedBytes: 20, ShareBytes: 10}, {Account: 3, ChargedBytes: 0, ShareBytes: 100}}
		account := Account(4)
		if c.served.ChargedBytes > 0 {
			account = 1
		}
		table.SetUsage(borrows)
		table.Arrive(Waiter{ID: 1, Account: account, Bytes: 8, ChargedBytes: 8})
		table.Passed(c.served)
		id, _ := table.Next()
		require.EqualValues(t, 1, id)
		require.True(t, table.Failed(1))
		again := Waiter{ID: 9, Account: account, Bytes: 8, ChargedBytes: 8}
		require.Equal(t, !c.passed, table.MayPass(again), name)
		again.Bytes = 3
		require.True(t, table.MayPass(again), name)
	}
}
