package admission

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// trail is a world and how it came about.
type trail struct {
	world *world
	move  move
	from  *trail
}

func (tr *trail) String() (s string) {
	for ; tr.from != nil; tr = tr.from {
		s = tr.move.verb + " " + string(rune('0'+tr.move.wish)) + ", " + s
	}
	return s
}

// search visits every world that can come about, and reports how many there are.
func search(t *testing.T, r *rules) int {
	t.Helper()
	first := newWorld(r)
	key := first.appendKey(nil)
	seen := map[string]bool{string(key): true}
	next := new(world)
	var spare []*world
	for ready := []*trail{{world: first}}; len(ready) > 0; {
		at := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for _, m := range at.world.moves() {
			at.world.copyTo(next)
			if err := next.do(m); err != nil {
				t.Fatalf("%v\nwith %+v\nafter: %v", err, *r, &trail{next, m, at})
			}
			if key = next.appendKey(key[:0]); seen[string(key)] {
				continue
			}
			seen[string(key)] = true
			ready = append(ready, &trail{next, m, at})
			if last := len(spare) - 1; last >= 0 {
				next, spare = spare[last], spare[:last]
			} else {
				next = new(world)
			}
		}
		spare, at.world = append(spare, at.world), nil // the trail needs only the move
	}
	return len(seen)
}

// wishLists are all lists of so many requests of 1 up to most bytes, of that many accounts.
func wishLists(count int, most int64, accounts Account, visit func([]wish)) {
	list := make([]wish, count)
	var fill func(at int)
	fill = func(at int) {
		if at == count {
			visit(list)
			return
		}
		for a := range accounts {
			for bytes := range most {
				list[at] = wish{account: a, bytes: bytes + 1}
				fill(at + 1)
			}
		}
	}
	fill(0)
}

// TestEverySmallWorld walks all interleavings of up to four requests of two accounts in a memory of three bytes: of one
// goroutine each, of many, and mixed. In each state no request waits while memory would serve it, except for the bound; none is
// passed by more than it wants; and a deadlock is declared exactly where nothing else can happen. The short form has every third world of four
// requests.
func TestEverySmallWorld(t *testing.T) {
	t.Parallel()
	states, met := 0, 0
	for _, alone := range [][]bool{{true, true}, {true, false}} {
		wishLists(3, 3, 2, func(list []wish) {
			states += search(t, &rules{memory: 3, wishes: list, alone: alone, quota: make([]int64, 2), share: make([]int64, 2), cancel: true})
		})
		wishLists(4, 2, 2, func(list []wish) {
			if list[0].account > 0 || list[0].bytes == 1 && list[1].bytes == 1 { // others have as much in them
				return
			}
			if met++; testing.Short() && met%3 != 0 {
				return
			}
			states += search(t, &rules{memory: 3, wishes: list, alone: alone, quota: make([]int64, 2), share: make([]int64, 2)})
		})
	}
	require.Greater(t, states, 10_000)
}

// TestEverySmallWorldOfTenants does so with priorities, quotas and shares.
func TestEverySmallWorldOfTenants(t *testing.T) {
	t.Parallel()
	states := 0
	wishLists(3, 2, 2, func(list []wish) {
		for urgent := range list {
			ranked := append([]wish(nil), list...)
			ranked[urgent].priority = 1
			for _, alone := range [][]bool{{true, true}, {true, false}} {
				states += search(t, &rules{
					memory: 3, wishes: ranked, alone: alone, quota: []int64{2, 0}, share: []int64{0, 1}, cancel: true,
				})
			}
		}
	})
	require.Greater(t, states, 10_000)
}

// TestEverySmallWorldOfBorrowers does so with shares that are soon used up, so that all that counts is who has how much of
// its own, and for how long others were served before.
func TestEverySmallWorldOfBorrowers(t *testing.T) {
	t.Parallel()
	states := 0
	for _, share := range [][]int64{{1, 1}, {1, 2}} {
		wishLists(3, 2, 2, func(list []wish) {
			states += search(t, &rules{memory: 3, wishes: list, alone: make([]bool, 2), quota: make([]int64, 2), share: share, cancel: true})
		})
	}
	require.Greater(t, states, 10_000)
}

// TestNobodyIsOutrankedForEver has an account that holds twice its share, and another one with less of its own whose requests
// come first until they have had enough.
func TestNobodyIsOutrankedForEver(t *testing.T) {
	t.Parallel()
	list := []wish{{account: 0, bytes: 2}, {account: 0, bytes: 1}, {account: 1, bytes: 2}, {account: 1, bytes: 2}, {account: 1, bytes: 2}}
	r := &rules{memory: 4, wishes: list, alone: make([]bool, 2), quota: make([]int64, 2), share: []int64{1, 1}, lag: 1}
	require.Greater(t, search(t, r), 100)
}

// TestEverySmallWorldThatStands does so where accounts wait for each other in other ways, too.
func TestEverySmallWorldThatStands(t *testing.T) {
	t.Parallel()
	states := 0
	for _, alone := range [][]bool{{true, true}, {true, false}} {
		wishLists(3, 2, 2, func(list []wish) {
			states += search(t, &rules{memory: 2, wishes: list, alone: alone, quota: make([]int64, 2), share: make([]int64, 2), stand: true})
		})
	}
	three := []wish{{account: 0, bytes: 2}, {account: 1, bytes: 1}, {account: 2, bytes: 1}} // one of them may resume
	for _, alone := range [][]bool{{true, true, true}, {true, true, false}} {               // or goroutines of one that waits with others
		states += search(t, &rules{memory: 2, wishes: three, alone: alone, quota: make([]int64, 3), share: make([]int64, 3), stand: true})
	}
	for _, on := range [][][]Account{{{1}, {2}, {0}}, {{1, 2}, nil, {0}}, {{2}, {2}, nil}} { // they say whom they wait for
		states += search(t, &rules{memory: 2, wishes: three, alone: []bool{true, true, true}, quota: make([]int64, 3), share: make([]int64, 3), stand: true, on: on})
	}
	require.Greater(t, states, 5_000)
}

// settled asks a table for the next step in a standstill, with all collected.
func settled(t *testing.T, table *Table, holders ...Account) Verdict {
	t.Helper()
	for {
		if id, ok := table.Next(); ok {
			table.Failed(id)
			continue
		}
		v, _ := table.Stuck(holders)
		if v != Confirm && v != Lift {
			return v
		}
		table.Confirmed()
	}
}

// Accounts that hold nothing and want nothing count only where somebody waits for them by name, over however many others.
func TestIdleAccountsCountWhereTheyAreNamed(t *testing.T) {
	t.Parallel()
	table := new(Table)
	table.Suspend(1, [][]Account{nil})
	table.Arrive(Waiter{ID: 1, Account: 2, Bytes: 1, Blocked: true})
	require.Equal(t, Deadlock, settled(t, table, 1, 2), "there may be any number of others")
	table.Suspend(1, [][]Account{{3}})
	require.Equal(t, Wait, settled(t, table, 1, 2), "3 may have it go on")
	table.Suspend(3, [][]Account{{4}})
	require.Equal(t, Wait, settled(t, table, 1, 2), "4 may have 3 have it go on")
	table.Suspend(4, [][]Account{{3, 2}})
	require.Equal(t, Deadlock, settled(t, table, 1, 2), "a circle, and one that waits")
	table.Suspend(4, [][]Account{{3, 2, 5}})
	require.Equal(t, Wait, settled(t, table, 1, 2), "any of three")
	table.Suspend(1, [][]Account{{3}, {2}})
	require.Equal(t, Deadlock, settled(t, table, 1, 2), "both of two")
	table.FreedBy(2, []Account{6})
	require.Equal(t, Wait, settled(t, table, 1, 2), "6 frees memory of 2")
	table.Suspend(6, [][]Account{{2}})
	require.Equal(t, Deadlock, settled(t, table, 1, 2), "6 waits for 2")
	table.FreedBy(6, []Account{7})
	require.Equal(t, Wait, settled(t, table, 1, 2), "6 has handed memory of 2 to 7")
	table.Forget(7)
	require.Equal(t, Deadlock, settled(t, table, 1, 2))
	table.Suspend(1, nil)
	require.Equal(t, Wait, settled(t, table, 1, 2))
}

// An account that is gone may still end the waits in which it is named, one of which began before and one after; but it frees no memory that
// it was handed.
func TestAnAccountThatIsGoneMayEndWaits(t *testing.T) {
	t.Parallel()
	table := new(Table)
	table.Suspend(1, [][]Account{{3}})
	table.Suspend(3, [][]Account{{2}})
	table.Arrive(Waiter{ID: 1, Account: 2, Bytes: 1, Blocked: true})
	require.Equal(t, Deadlock, settled(t, table, 1, 2), "3 waits for 2")
	table.FreedBy(1, []Account{3})
	table.Forget(3)
	require.Equal(t, Wait, settled(t, table, 1, 2), "3 is gone, and waits for nobody")
	table.Suspend(1, [][]Account{{2}})
	require.Equal(t, Deadlock, settled(t, table, 1, 2), "3 frees nothing of 1")
	table.Suspend(1, [][]Account{{3}})
	require.Equal(t, Wait, settled(t, table, 1, 2))
	table.Suspend(1, [][]Account{{3}, {2}})
	require.Equal(t, Deadlock, settled(t, table, 1, 2), "both of two")
}

// TestNobodyIsPassedForEver has more small requests than may pass a larger one.
func TestNobodyIsPassedForEver(t *testing.T) {
	t.Parallel()
	list := []wish{{account: 0, bytes: 2}, {account: 1, bytes: 2}, {account: 0, bytes: 1}, {account: 0, bytes: 1}, {account: 0, bytes: 1}}
	require.Greater(t, search(t, &rules{memory: 3, wishes: list, alone: make([]bool, 2), quota: make([]int64, 2), share: make([]int64, 2)}), 100)
}

// TestLongHistories lives worlds that are too large to be walked.
func TestLongHistories(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		accounts := rapid.IntRange(1, 5).Draw(t, "accounts")
		r := &rules{memory: rapid.Int64Range(4, 40).Draw(t, "memory"), cancel: rapid.Bool().Draw(t, "cancel")}
		for range accounts {
			r.alone = append(r.alone, rapid.Bool().Draw(t, "alone"))
			quota := rapid.SampledFrom([]int64{0, 0, r.memory / 2}).Draw(t, "quota")
			r.quota = append(r.quota, quota)
			r.share = append(r.share, rapid.SampledFrom([]int64{0, 0, 1, 1 + r.memory/4}).Draw(t, "share"))
		}
		r.lag = rapid.Int64Range(0, 2).Draw(t, "lag")
		for range rapid.IntRange(1, 30).Draw(t, "requests") {
			a := rapid.IntRange(0, accounts-1).Draw(t, "account")
			most := r.memory
			if r.quota[a] > 0 {
				most = r.quota[a]
			}
			r.wishes = append(r.wishes, wish{Account(a), rapid.Int64Range(1, most).Draw(t, "bytes"), rapid.IntRange(0, 2).Draw(t, "priority")})
		}
		w := newWorld(r)
		for moves := w.moves(); len(moves) > 0; moves = w.moves() {
			m := moves[rapid.IntRange(0, len(moves)-1).Draw(t, "move")]
			if err := w.do(m); err != nil {
				t.Fatalf("%v: %v\nwith %+v", m, err, *r)
			}
		}
		for i, p := range w.phases {
			if p == waiting || p == unborn {
				t.Fatalf("request %d has come to phase %d and no further, with %+v", i, p, *r)
			}
		}
	})
}
