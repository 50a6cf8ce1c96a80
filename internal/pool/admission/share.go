package admission

import (
	"cmp"
	"slices"
	"sort"
)

// Usage is the memory of an account with a share.
type Usage struct {
	Account      Account
	ChargedBytes int64 // of the account, and of its ready waiters
	ShareBytes   int64 // more than 0
}

// sharing is an account with a share.
type sharing struct {
	account    Account
	shareBytes int64
	usedBytes  int64 // without its waiters
	// outrankedBytes were served to equally ranked accounts since the first waiter of this one was served.
	outrankedBytes int64
	// creditBytes are the bytes that the account is short of its proportion while it waits, or has had more: see earn.
	creditBytes float64

	// Scratch of order.
	sumBytes int64  // used, and wanted by its waiters so far
	first    *entry // of its ready waiters
}

// standing holds the other inputs of a waiter's place.
type standing struct {
	borrows bool    // served in the order of its account, it would exceed the account's share, at once and over time
	due     bool    // its account is short over time, or others of its rank had enough
	fill    float64 // part of its account's share in use by then: 1 is all of it; 0 without a share
	// turn is its age among waiters without a share: of the youngest waiter before it that has a share, or its own.
	turn uint64
}

// mostLag bounds how many times its proportion other accounts may have before the first waiter of an account is served. Not
// more: it bounds the wait of an account with old debts. Not less: an account whose requests hold memory so many times longer
// than others' has so many times fewer of them at the same share, and would get more than its share.
const mostLag = 16

// SetUsage sets the memory of each account that has a share. Call it before any other call about the same moment. Accounts that
// are not listed have no share.
func (t *Table) SetUsage(all []Usage) {
	if len(all) == 0 && len(t.shares) == 0 {
		return
	}
	if !t.shareAlready(all) {
		t.reshare(all)
	}
	for _, u := range all {
		s := t.sharing(u.Account)
		s.shareBytes, s.usedBytes = u.ShareBytes, u.ChargedBytes
	}
	for i := range t.queue {
		if e := &t.queue[i]; !e.Unready {
			if s := t.sharing(e.Account); s != nil {
				s.usedBytes = max(0, s.usedBytes-e.ChargedBytes)
			}
		}
	}
	t.order()
}

// shareAlready reports whether the accounts with a share are these, in this order.
func (t *Table) shareAlready(all []Usage) bool {
	if len(t.shares) != len(all) {
		return false
	}
	for i := range all {
		if t.shares[i].account != all[i].Account {
			return false
		}
	}
	return true
}

// reshare replaces the accounts with a share.
func (t *Table) reshare(all []Usage) {
	old := t.shares
	t.shares = make([]sharing, len(all))
	for i, u := range all {
		t.shares[i].account = u.Account
	}
	slices.SortFunc(t.shares, func(a, b sharing) int { return cmp.Compare(a.account, b.account) })
	for i := range old {
		if s := t.sharing(old[i].account); s != nil {
			s.outrankedBytes, s.creditBytes = old[i].outrankedBytes, old[i].creditBytes
		}
	}
}

// sharing returns the share of an account, nil if it has none.
func (t *Table) sharing(a Account) *sharing {
	if len(t.shares) == 0 {
		return nil
	}
	at := sort.Search(len(t.shares), func(at int) bool { return t.shares[at].account >= a })
	if at == len(t.shares) || t.shares[at].account != a {
		return nil
	}
	return &t.shares[at]
}

// elder reports whether a comes before b, two waiters of one account.
func elder(a, b *entry) bool {
	if a.Priority != b.Priority {
		return a.Priority > b.Priority
	}
	return a.Age < b.Age
}

// order sorts the queue. The entries of one account already are in their order.
func (t *Table) order() {
	for i := range t.shares {
		s := &t.shares[i]
		s.sumBytes, s.first = s.usedBytes, nil
	}
	sharers := t.sharers[:0]
	for i := range t.queue {
		e := &t.queue[i]
		e.standing = standing{turn: e.Age}
		s := t.sharing(e.Account)
		if s == nil || e.Unready {
			continue
		}
		s.sumBytes += e.ChargedBytes
		e.fill = float64(s.sumBytes) / float64(s.shareBytes)
		e.borrows = s.sumBytes > s.shareBytes
		if s.first == nil {
			s.first = e
		}
		sharers = append(sharers, e)
	}
	t.dun()
	t.merge(sharers)
	sort.Sort((*byStanding)(&t.queue))
	for i := range t.shares {
		t.shares[i].first = nil // it has moved
	}
	clear(sharers)
	t.sharers = sharers
}

// byStanding sorts entries by their places. slices.SortFunc takes twice the time: it copies both entries, which are long, to
// compare them.
type byStanding []entry

func (q *byStanding) Len() int           { return len(*q) }
func (q *byStanding) Less(i, j int) bool { return before(&(*q)[i], &(*q)[j]) < 0 }
func (q *byStanding) Swap(i, j int)      { (*q)[i], (*q)[j] = (*q)[j], (*q)[i] }

// dun finds the waiters that are due whatever their rank.
func (t *Table) dun() {
	shareBytes, heldBytes := t.waiting()
	lag := t.lag
	if lag == 0 {
		lag = mostLag
	}
	for i := range t.shares {
		s := &t.shares[i]
		if s.first == nil {
			s.outrankedBytes, s.creditBytes = 0, 0
			continue
		}
		part, bytes := float64(s.shareBytes)/shareBytes, float64(s.first.Bytes)
		if s.creditBytes+part*heldBytes-float64(s.usedBytes) >= (1-part)*bytes && part < 1 {
			s.first.borrows, s.first.due = false, true
			continue
		}
		s.first.due = float64(s.outrankedBytes) >= float64(lag)*bytes/part
	}
}

// waiting returns the sums of the shares and of the memory of accounts that wait. Their first waiters are set.
func (t *Table) waiting() (shareBytes, heldBytes float64) {
	for i := range t.shares {
		if s := &t.shares[i]; s.first != nil {
			shareBytes += float64(s.shareBytes)
			heldBytes += float64(s.usedBytes)
		}
	}
	return shareBytes, heldBytes
}

// earn counts served bytes for accounts that wait: of each byte an account earns its proportion of their shares, and pays the part that it
// has of the memory that they have. So its credit is 0 if it has its proportion on average, over moments that are counted in bytes served. It
// is bounded by its share and its first request, so that old debts and old claims end. The first waiters are set, and the usage has the
// served bytes.
func (t *Table) earn(bytes int64) {
	shareBytes, heldBytes := t.waiting()
	if heldBytes == 0 {
		return
	}
	for i := range t.shares {
		if s := &t.shares[i]; s.first != nil {
			most := float64(s.shareBytes) + float64(s.first.Bytes)
			s.creditBytes += float64(bytes) * (float64(s.shareBytes)/shareBytes - float64(s.usedBytes)/heldBytes)
			s.creditBytes = max(-most, min(s.creditBytes, most))
		}
	}
}

// merge sets the turns of waiters with shares among waiters without: of the first of both the older is next.
func (t *Table) merge(sharers []*entry) {
	slices.SortFunc(sharers, func(a, b *entry) int {
		return cmp.Or(truth(a.borrows)-truth(b.borrows), cmp.Compare(b.Priority, a.Priority), ranked(a, b))
	})
	for i, e := range sharers[min(1, len(sharers)):] {
		if last := sharers[i]; last.borrows == e.borrows && last.Priority == e.Priority {
			e.turn = max(e.turn, last.turn)
		}
	}
}

// rankNew sets the standing of a request that has not arrived, and is charged. As the youngest of all it comes after all others
// that borrow as it does, however little its account has; once it waits it gets its proper place.
func (t *Table) rankNew(e *entry) {
	e.turn = e.Age
	s := t.sharing(e.Account)
	if s == nil {
		return
	}
	sumBytes := s.usedBytes
	for i := range t.queue {
		if have := &t.queue[i]; have.Account == e.Account && !have.Unready && have.Priority >= e.Priority {
			sumBytes += have.ChargedBytes
		}
	}
	e.fill = float64(sumBytes) / float64(s.shareBytes)
	e.borrows = sumBytes > s.shareBytes
}

// outrank counts a served waiter, whose account has its bytes, against the first waiters of other accounts with its priority that borrow, or
// do not, as it does. An account whose first waiter was served restarts its count.
func (t *Table) outrank(served *entry) {
	own := t.sharing(served.Account)
	if own == nil {
		return
	}
	wasFirst := true
	for i := range t.queue {
		e := &t.queue[i]
		s := t.sharing(e.Account)
		switch {
		case s == nil || e.Unready || e.ID == served.ID:
		case e.Account == served.Account:
			wasFirst = wasFirst && elder(served, e)
		case s.first == nil:
			s.first = e
			if served.borrows == e.borrows && e.Priority == served.Priority {
				s.outrankedBytes += served.Bytes
			}
		}
	}
	own.first = served
	t.earn(served.Bytes)
	for i := range t.shares {
		t.shares[i].first = nil
	}
	if wasFirst {
		own.outrankedBytes = 0
	}
}
