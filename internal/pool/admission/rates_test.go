package admission

import (
	"container/heap"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// held is memory that an account has from one moment to another.
type held struct {
	since, until float64
	account      Account
	bytes        int64
}

type byEnd []held

func (h byEnd) Len() int           { return len(h) }
func (h byEnd) Less(i, j int) bool { return h[i].until < h[j].until }
func (h byEnd) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byEnd) Push(x any)        { *h = append(*h, x.(held)) }
func (h *byEnd) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// crowd are accounts that always want more: each of an account's clients waits for memory, holds it for a time, half or one and a half times
// of one in proportion to its bytes, and waits again.
type crowd struct {
	memory  int64
	shares  []int64 // by account
	clients int     // of each account
	least   int64   // bytes of a request
	most    int64
}

// play returns each account's part of the bytes that were served, and of bytes times the time for which they were held.
func (c crowd) play(t *testing.T, requests int) (bytes, byTime []float64) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var table Table
	var holding byEnd
	var now float64
	free, waiting, id := c.memory, map[uint64]Waiter{}, uint64(0)
	charged := make([]int64, len(c.shares))
	bytes, byTime = make([]float64, len(c.shares)), make([]float64, len(c.shares))
	tell := func() {
		var all []Usage
		for a, share := range c.shares {
			all = append(all, Usage{Account: Account(a), ChargedBytes: charged[a], ShareBytes: share})
		}
		table.SetUsage(all)
	}
	ask := func(a Account) {
		id++
		n := c.least + random.Int64N(c.most-c.least+1)
		w := Waiter{ID: id, Account: a, Bytes: n, ChargedBytes: n}
		charged[a] += n
		tell()
		table.Arrive(w)
		waiting[id] = w
	}
	for range c.clients {
		for a := range c.shares {
			ask(Account(a))
		}
	}
	for served := 0; served < requests; {
		for {
			tell()
			id, ok := table.Next()
			if !ok {
				break
			}
			w := waiting[id]
			if w.Bytes > free {
				table.Failed(id)
				continue
			}
			free -= w.Bytes
			table.Served(id)
			delete(waiting, id)
			heap.Push(&holding, held{now, now + float64(w.Bytes)*(0.5+random.Float64()), w.Account, w.Bytes})
			bytes[w.Account] += float64(w.Bytes)
			served++
		}
		require.NotEmpty(t, holding, "all wait")
		h := heap.Pop(&holding).(held)
		now = h.until
		byTime[h.account] += float64(h.bytes) * (h.until - h.since)
		free += h.bytes
		charged[h.account] -= h.bytes
		table.Changed()
		ask(h.account) // it tells
	}
	for _, parts := range [][]float64{bytes, byTime} {
		var sum float64
		for _, x := range parts {
			sum += x
		}
		for i := range parts {
			parts[i] /= sum
		}
	}
	return bytes, byTime
}

// Accounts that always want more have memory in proportion to their shares, also where a share is smaller than a request.
func TestAccountsHaveTheirShares(t *testing.T) {
	t.Parallel()
	means := []int64{1, 2, 3, 4, 6, 10, 30} // requests that memory has room for
	if testing.Short() {
		means = []int64{1, 10}
	}
	for _, shares := range [][]int64{{4, 2, 1}, {1, 1, 1}, {8, 1}} {
		var parts int64
		for _, s := range shares {
			parts += s
		}
		for _, mean := range means {
			for _, spread := range []int64{0, 60} {
				c := crowd{memory: 100 * mean, clients: 8 + int(mean), least: 100 - spread, most: 100 + spread}
				if mean == 1 {
					c.memory += spread
				}
				for _, s := range shares {
					c.shares = append(c.shares, c.memory*s/parts)
				}
				bytes, byTime := c.play(t, 3_000)
				for a, s := range shares {
					want := float64(s) / float64(parts)
					t.Logf("%v, memory for %d requests of %d to %d: account %d has %.2f of its share in bytes, %.2f in bytes and time",
						shares, mean, c.least, c.most, a, bytes[a]/want, byTime[a]/want)
					assert.InEpsilon(t, want, byTime[a], 0.1, "%v, memory for %d requests of %d to %d: account %d", shares, mean, c.least, c.most, a)
				}
			}
		}
	}
}
