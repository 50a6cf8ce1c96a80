// Package ledgertest tests that a ledger keeps the promises of package ledger.
package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/fleet"
	"github.com/go-vram/vram/fleet/ledger"
)

// leaseTime is so long that no lease ends by itself, however busy the machine is.
const leaseTime = time.Minute

// Books opens the same books each time that it is called, as another process does. The test closes them.
type Books func() fleet.Ledger

// Run tests a ledger. Fresh makes empty books, which only the test uses.
func Run(t *testing.T, fresh func(t *testing.T) Books) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, open Books){
		"transactions": transactions, "prefixes": prefixes, "leases": leases, "close": closes, "waits": waits, "keys": keys, "snapshots": snapshots, "goroutines count": count,
	} {
		t.Run(name, func(t *testing.T) {
			books := fresh(t)
			test(t, func() fleet.Ledger {
				l := books()
				t.Cleanup(func() { assert.NoError(t, l.Close()) })
				return l
			})
		})
	}
}

func newLease(t *testing.T, l fleet.Ledger) fleet.Lease {
	t.Helper()
	e, err := l.Lease(t.Context(), leaseTime)
	require.NoError(t, err)
	require.NotZero(t, e.ID())
	return e
}

func put(key, text string, lease int64, compares ...ledger.Compare) ledger.Transaction {
	return ledger.Transaction{If: compares, Put: []ledger.Put{{Key: key, Value: []byte(text), Lease: lease}}}
}

func read(t *testing.T, l fleet.Ledger) ledger.Snapshot {
	t.Helper()
	s, err := l.Read(t.Context())
	require.NoError(t, err)
	return s
}

// Transactions compare and change keys, whole or not at all, and two opened ledgers see the same.
func transactions(t *testing.T, open Books) {
	t.Helper()
	a, b := open(), open()
	ctx := t.Context()
	first, err := a.Commit(ctx, put("k/a", "1", 0, ledger.Compare{Key: "k/a"}))
	require.NoError(t, err)
	_, err = b.Commit(ctx, put("k/a", "2", 0, ledger.Compare{Key: "k/a"}))
	assert.ErrorIs(t, err, ledger.ErrConflict)
	_, err = b.Commit(ctx, put("k/a", "2", 0, ledger.Compare{Key: "k/a", Mod: first}, ledger.Compare{Key: "k/b", Mod: first}))
	assert.ErrorIs(t, err, ledger.ErrConflict, "one of two compares")
	second, err := b.Commit(ctx, put("k/b", "2", 0, ledger.Compare{Key: "k/b"}))
	require.NoError(t, err)
	assert.Greater(t, second, first)
	third, err := a.Commit(ctx, ledger.Transaction{If: []ledger.Compare{{Key: "k/a", Mod: first}}, Delete: []string{"k/b", "none"}, Put: []ledger.Put{{Key: "k/a", Value: []byte("3")}}})
	require.NoError(t, err)
	assert.Equal(t, ledger.Snapshot{Revision: third, Pairs: []ledger.Pair{{Key: "k/a", Value: []byte("3"), Create: first, Mod: third}}}, read(t, b))
	same, err := b.Commit(ctx, ledger.Transaction{Delete: []string{"none"}})
	require.NoError(t, err)
	assert.Equal(t, third, same, "nothing changed")
	_, err = a.Commit(ctx, ledger.Transaction{Delete: []string{"k/a"}})
	require.NoError(t, err)
	again, err := b.Commit(ctx, put("k/a", "4", 0, ledger.Compare{Key: "k/a"}))
	require.NoError(t, err)
	assert.Equal(t, []ledger.Pair{{Key: "k/a", Value: []byte("4"), Create: again, Mod: again}}, read(t, a).Pairs, "another life of the key")
}

// A compare with a prefix looks at the pairs that there are, and at no other keys.
func prefixes(t *testing.T, open Books) {
	t.Helper()
	a := open()
	ctx := t.Context()
	first, err := a.Commit(ctx, put("k/a", "1", 0, ledger.Compare{Key: "k/", Prefix: true}))
	require.NoError(t, err, "there is none")
	second, err := a.Commit(ctx, put("k/b", "2", 0, ledger.Compare{Key: "k/", Prefix: true, Mod: first}))
	require.NoError(t, err)
	_, err = a.Commit(ctx, put("k/a", "3", 0, ledger.Compare{Key: "k/", Prefix: true, Mod: first}))
	assert.ErrorIs(t, err, ledger.ErrConflict)
	_, err = a.Commit(ctx, put("l", "3", 0, ledger.Compare{Key: "k/", Prefix: true, Mod: second}))
	require.NoError(t, err)
	_, err = a.Commit(ctx, put("l", "4", 0, ledger.Compare{Key: "k/", Prefix: true, Mod: second}))
	require.NoError(t, err, "l does not begin with k/")
	_, err = a.Commit(ctx, ledger.Transaction{Delete: []string{"k/b"}})
	require.NoError(t, err)
	_, err = a.Commit(ctx, put("k/a", "5", 0, ledger.Compare{Key: "k/", Prefix: true, Mod: first}))
	require.NoError(t, err, "deleted pairs do not count")
}

// The pairs of a lease end with it in one revision, and none is put under it later.
func leases(t *testing.T, open Books) {
	t.Helper()
	a, b := open(), open()
	ctx := t.Context()
	e, other := newLease(t, a), newLease(t, b)
	require.NotEqual(t, e.ID(), other.ID())
	_, err := a.Commit(ctx, put("k", "1", e.ID()))
	require.NoError(t, err)
	_, err = a.Commit(ctx, put("o", "1", other.ID()))
	require.NoError(t, err)
	at, err := b.Commit(ctx, put("l", "2", e.ID())) // a number is enough
	require.NoError(t, err)
	assert.Equal(t, []int64{e.ID(), e.ID(), other.ID()}, []int64{read(t, b).Pairs[0].Lease, read(t, b).Pairs[1].Lease, read(t, b).Pairs[2].Lease})
	require.NoError(t, e.Close())
	<-e.Done()
	require.NoError(t, e.Close())
	s := read(t, b)
	assert.Len(t, s.Pairs, 1)
	assert.Equal(t, at+1, s.Revision, "one revision")
	_, err = a.Commit(ctx, put("k", "1", e.ID()))
	assert.ErrorIs(t, err, ledger.ErrLeaseEnded)
	_, err = b.Commit(ctx, ledger.Transaction{Put: []ledger.Put{{Key: "m"}, {Key: "k", Lease: e.ID()}}, Delete: []string{"o"}})
	assert.ErrorIs(t, err, ledger.ErrLeaseEnded)
	assert.Equal(t, s, read(t, a), "nothing changed")
	_, err = a.Commit(ctx, put("o", "2", 0))
	require.NoError(t, err)
	require.NoError(t, other.Close())
	assert.Len(t, read(t, b).Pairs, 1, "a put without the lease takes the pair from it")
}

// Close ends the leases and every call.
func closes(t *testing.T, open Books) {
	t.Helper()
	a, b := open(), open()
	ctx := t.Context()
	e := newLease(t, a)
	at, err := a.Commit(ctx, put("k", "1", e.ID()))
	require.NoError(t, err)
	waited := make(chan error)
	go func() {
		var err error
		for err == nil { // a wait may return early
			err = a.Wait(ctx, at+10)
		}
		waited <- err
	}()
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	assert.ErrorIs(t, <-waited, ledger.ErrClosed)
	<-e.Done()
	require.NoError(t, e.Close())
	_, err = a.Read(ctx)
	assert.ErrorIs(t, err, ledger.ErrClosed)
	_, err = a.Commit(ctx, put("k", "1", 0))
	assert.ErrorIs(t, err, ledger.ErrClosed)
	_, err = a.Lease(ctx, leaseTime)
	assert.ErrorIs(t, err, ledger.ErrClosed)
	assert.ErrorIs(t, a.Wait(ctx, 0), ledger.ErrClosed)
	s := read(t, b)
	assert.Empty(t, s.Pairs)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	assert.ErrorIs(t, b.Wait(ended, s.Revision), context.Canceled)
	_, err = b.Read(ended)
	assert.ErrorIs(t, err, context.Canceled)
	_, err = b.Commit(ended, put("k", "1", 0))
	assert.ErrorIs(t, err, context.Canceled)
	_, err = b.Lease(ended, leaseTime)
	assert.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, s, read(t, b))
}

// A wait returns when there is a later revision: of a transaction, and of the end of a lease.
func waits(t *testing.T, open Books) {
	t.Helper()
	a, b := open(), open()
	ctx := t.Context()
	e := newLease(t, a)
	at, err := a.Commit(ctx, put("k", "1", e.ID()))
	require.NoError(t, err)
	require.NoError(t, b.Wait(ctx, at-1), "it is there")
	for name, change := range map[string]func(){
		"a transaction": func() {
			_, err := a.Commit(ctx, put("l", "1", 0))
			assert.NoError(t, err)
		},
		"the end of a lease": func() { assert.NoError(t, e.Close()) },
	} {
		before := read(t, b).Revision
		var group sync.WaitGroup
		group.Go(change)
		for read(t, b).Revision == before { // ends as soon as a wait has returned after the change
			require.NoError(t, b.Wait(ctx, before), name)
		}
		group.Wait()
	}
}

// A read of some keys has their pairs, also where they are more than a request can name, and a wait for them returns after each change.
func keys(t *testing.T, open Books) {
	t.Helper()
	a, b := open(), open()
	ctx := t.Context()
	e := newLease(t, a)
	var many []string
	for _, key := range []string{"d/a", "d/ab", "h/a/x", "h/a/y", "h/ab/x", "i"} {
		_, err := a.Commit(ctx, put(key, "1", e.ID()))
		require.NoError(t, err)
	}
	for i := range 250 {
		many = append(many, fmt.Sprint("none/", i))
	}
	few := []string{"i", "h/a/", "d/a", "h/a/x"}
	s, err := b.Read(ctx, append(many, few...)...)
	require.NoError(t, err)
	all := read(t, b)
	assert.Equal(t, all.Revision, s.Revision)
	assert.Equal(t, []ledger.Pair{all.Pairs[0], all.Pairs[2], all.Pairs[3], all.Pairs[5]}, s.Pairs)
	committed := func(change ledger.Transaction) func() error {
		return func() error {
			_, err := a.Commit(ctx, change)
			return err
		}
	}
	for i, change := range []func() error{committed(put("h/a/z", "2", 0)), committed(ledger.Transaction{Delete: []string{"d/a"}}), e.Close} {
		before, err := b.Read(ctx, few...)
		require.NoError(t, err)
		_, err = a.Commit(ctx, put("other", fmt.Sprint(i), 0))
		require.NoError(t, err)
		var group sync.WaitGroup
		group.Go(func() { assert.NoError(t, change()) })
		for after := before; slices.EqualFunc(before.Pairs, after.Pairs, func(x, y ledger.Pair) bool { return x.Key == y.Key }); { // ends as soon as a wait has returned after the change
			require.NoError(t, b.Wait(ctx, after.Revision, few...), "change %d", i)
			after, err = b.Read(ctx, few...)
			require.NoError(t, err)
		}
		group.Wait()
	}
}

// A snapshot is of one revision: two pairs that each transaction writes alike are alike. It is no older than the last transaction of its
// caller.
func snapshots(t *testing.T, open Books) {
	t.Helper()
	const writes = 100
	a, b := open(), open()
	var group sync.WaitGroup
	group.Go(func() {
		for i := range writes {
			text := fmt.Append(nil, i)
			at, err := a.Commit(t.Context(), ledger.Transaction{Put: []ledger.Put{{Key: "x", Value: text}, {Key: "y", Value: text}}})
			if !assert.NoError(t, err) {
				return
			}
			s, err := a.Read(t.Context())
			if !assert.NoError(t, err) || !assert.Equal(t, at, s.Revision) || !assert.Equal(t, text, s.Pairs[0].Value) {
				return
			}
		}
	})
	for last := int64(0); ; {
		s := read(t, b)
		require.GreaterOrEqual(t, s.Revision, last, "revisions rise")
		last = s.Revision
		if len(s.Pairs) > 0 {
			require.Len(t, s.Pairs, 2)
			require.Equal(t, s.Pairs[0].Value, s.Pairs[1].Value)
			require.Equal(t, s.Pairs[0].Mod, s.Pairs[1].Mod)
			if string(s.Pairs[0].Value) == fmt.Sprint(writes-1) || t.Failed() {
				break
			}
		}
	}
	group.Wait()
}

// Goroutines of several ledgers count one number up: no transaction is lost, and none happens twice. On a busy machine the outcome of a
// few is not known.
func count(t *testing.T, open Books) {
	t.Helper()
	const ledgers, each, mostUnknown = 4, 50, 1000
	var counted, unknown atomic.Int64
	var group sync.WaitGroup
	for range ledgers {
		l := open()
		group.Go(func() {
			for done := 0; done < each; {
				s, err := l.Read(t.Context())
				if !assert.NoError(t, err) {
					return
				}
				n := 0
				p, _ := s.Find("n")
				_, _ = fmt.Sscan(string(p.Value), &n)
				_, err = l.Commit(t.Context(), put("n", fmt.Sprint(n+1), 0, ledger.Compare{Key: "n", Mod: p.Mod}))
				switch {
				case err == nil:
					done++
					counted.Add(1)
				case !errors.Is(err, ledger.ErrConflict) && !assert.LessOrEqual(t, unknown.Add(1), int64(mostUnknown), err):
					return
				}
			}
		})
	}
	group.Wait()
	n, err := strconv.ParseInt(string(read(t, open()).Pairs[0].Value), 10, 64)
	require.NoError(t, err)
	assert.Equal(t, int64(ledgers*each), counted.Load())
	assert.GreaterOrEqual(t, n, counted.Load(), "a transaction is lost")
	assert.LessOrEqual(t, n, counted.Load()+unknown.Load(), "a transaction happened twice")
}
