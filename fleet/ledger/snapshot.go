package ledger

import (
	"cmp"
	"slices"
	"strings"
)

// Pair is a key with its value.
type Pair struct {
	Key    string `json:"key"`
	Value  []byte `json:"value"`
	Create int64  `json:"create"` // the revision that made the key
	Mod    int64  `json:"mod"`    // the revision that last wrote it
	Lease  int64  `json:"lease"`  // 0: none
}

// Snapshot is all pairs, or the pairs of some keys, at one revision, in the order of their keys.
type Snapshot struct {
	Revision int64    `json:"revision"`
	Pairs    []Pair   `json:"pairs"`
	Keys     []string `json:"-"` // that have their pairs here, as Named has them; none: all
}

// Compare is a condition of a transaction. Without Prefix the pair with that key has the revision Mod; 0: there is none. With Prefix no
// pair whose key begins with Key was written after the revision Mod; deleted pairs do not count.
type Compare struct {
	Key    string
	Prefix bool
	Mod    int64
}

// Put writes a pair.
type Put struct {
	Key   string
	Value []byte
	Lease int64 // that the pair is bound to; 0: none
}

// Transaction writes and deletes pairs if all compares hold. No key is written twice, nor written and deleted.
type Transaction struct {
	If     []Compare
	Put    []Put
	Delete []string // keys; one that has no pair is ignored
}

// Named reports whether a key is one of some: one that ends with a slash stands for all that begin with it. Without any it is.
func Named(key string, keys []string) bool {
	return len(keys) == 0 || slices.ContainsFunc(keys, func(of string) bool {
		return key == of || strings.HasSuffix(of, "/") && strings.HasPrefix(key, of)
	})
}

// Of returns the pairs of some keys, as Named has them.
func (s Snapshot) Of(keys ...string) Snapshot {
	if len(keys) == 0 {
		return s
	}
	part := Snapshot{Revision: s.Revision, Keys: keys}
	for _, key := range slices.Compact(slices.Sorted(slices.Values(keys))) {
		for i, _ := s.search(key); i < len(s.Pairs) && Named(s.Pairs[i].Key, []string{key}); i++ {
			part.Pairs = append(part.Pairs, s.Pairs[i])
		}
	}
	return part.Sorted()
}

// Sorted returns the pairs in the order of their keys, each once.
func (s Snapshot) Sorted() Snapshot {
	slices.SortFunc(s.Pairs, func(x, y Pair) int { return cmp.Compare(x.Key, y.Key) })
	s.Pairs = slices.CompactFunc(s.Pairs, func(x, y Pair) bool { return x.Key == y.Key })
	return s
}

// Find returns the pair with a key.
func (s Snapshot) Find(key string) (Pair, bool) {
	i, found := s.search(key)
	if !found {
		return Pair{}, false
	}
	return s.Pairs[i], true
}

func (s Snapshot) search(key string) (int, bool) {
	return slices.BinarySearchFunc(s.Pairs, key, func(p Pair, key string) int { return cmp.Compare(p.Key, key) })
}

// Holds reports whether the compare holds.
func (s Snapshot) Holds(c Compare) bool {
	i, found := s.search(c.Key)
	if !c.Prefix {
		return found && s.Pairs[i].Mod == c.Mod || !found && c.Mod == 0
	}
	for ; i < len(s.Pairs) && strings.HasPrefix(s.Pairs[i].Key, c.Key); i++ {
		if s.Pairs[i].Mod > c.Mod {
			return false
		}
	}
	return true
}

// Apply returns the state after a transaction; s stays as it is. Live reports whether a lease lives. A transaction that changes nothing
// makes no revision. Errors: ErrConflict, ErrLeaseEnded.
func (s Snapshot) Apply(t Transaction, live func(lease int64) bool) (Snapshot, error) {
	for _, c := range t.If {
		if !s.Holds(c) {
			return s, ErrConflict
		}
	}
	for _, p := range t.Put {
		if p.Lease != 0 && !live(p.Lease) {
			return s, ErrLeaseEnded
		}
	}
	next := Snapshot{Revision: s.Revision + 1, Pairs: slices.Clone(s.Pairs)}
	changed := len(t.Put) > 0
	for _, p := range t.Put {
		pair := Pair{Key: p.Key, Value: p.Value, Create: next.Revision, Mod: next.Revision, Lease: p.Lease}
		if i, found := next.search(p.Key); found {
			pair.Create = next.Pairs[i].Create
			next.Pairs[i] = pair
		} else {
			next.Pairs = slices.Insert(next.Pairs, i, pair)
		}
	}
	for _, key := range t.Delete {
		if i, found := next.search(key); found {
			next.Pairs, changed = slices.Delete(next.Pairs, i, i+1), true
		}
	}
	if !changed {
		return s, nil
	}
	return next, nil
}

// Leases returns the leases that pairs are bound to, each once.
func (s Snapshot) Leases() (all []int64) {
	for _, p := range s.Pairs {
		if p.Lease != 0 {
			all = append(all, p.Lease)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Expire returns the state without the pairs of leases that have ended; s itself where all live.
func (s Snapshot) Expire(live func(lease int64) bool) Snapshot {
	ended := slices.DeleteFunc(s.Leases(), live)
	if len(ended) == 0 {
		return s
	}
	left := slices.DeleteFunc(slices.Clone(s.Pairs), func(p Pair) bool { return slices.Contains(ended, p.Lease) })
	return Snapshot{Revision: s.Revision + 1, Pairs: left}
}
