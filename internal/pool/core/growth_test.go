package core

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lengths adds the lengths of all lists and maps that a value reaches to the sums by path.
func lengths(v reflect.Value, path string, to map[string]int, seen map[any]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if at := v.UnsafePointer(); !v.IsNil() && !seen[at] {
			seen[at] = true
			lengths(v.Elem(), path, to, seen)
		}
	case reflect.Interface:
		if !v.IsNil() {
			lengths(v.Elem(), path, to, seen)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			lengths(v.Field(i), path+"."+v.Type().Field(i).Name, to, seen)
		}
	case reflect.Map:
		to[path] += v.Len()
		for _, key := range v.MapKeys() {
			lengths(v.MapIndex(key), path, to, seen)
		}
	case reflect.Slice, reflect.Array:
		if to[path] += v.Len(); v.Type().Elem().Kind() >= reflect.Array { // else of numbers
			for i := range v.Len() {
				lengths(v.Index(i), path, to, seen)
			}
		}
	default:
	}
}

// No list and no map of a pool grows with the number of clients that ever were, whatever they did.
func TestNothingGrowsWithClientsThatAreGone(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	token := uint64(100)
	next := func() uint64 { token++; return token }
	live := func(id, other Client) { // two clients come, do all that there is to do, and go
		s.do(Join{Client: id})
		s.do(Join{Client: other, Adopted: true})
		set := id + 1000
		s.do(Join{Client: set, Reserves: true})
		s.do(Return{Client: 1, Runs: []Run{{First: 0, Pages: 4}}, Fence: Fence(id), Sent: 1, Stirred: true})
		s.do(Refill{Client: set, Token: next(), Pages: 1, Bytes: pageBytes})
		s.do(Refill{Client: id, Token: next(), Pages: 2, Bytes: 2 * pageBytes, From: set})
		waits := waitOf(other, next(), 3)
		s.do(waits)
		s.do(Block{Client: other, Token: waits.Token, Number: 1, Blocked: true})
		s.do(Suspend{Client: id, Number: 1, Waits: [][]Client{{1, other}}, FreedBy: []Client{1, other}})
		s.do(Suspend{Client: 1, Number: uint64(id), FreedBy: []Client{id, other}})
		s.do(Exclude{Client: other, Excluded: true})
		s.do(Warm{Token: next(), Runs: []uint32{1}})
		s.do(Trim{Token: next()})
		s.do(Tick{})
		s.do(Withdraw{Client: other, Token: waits.Token})
		s.do(Apart(other))
		s.do(Refill{Client: other, Token: next(), Pages: 1, Bytes: pageBytes})
		s.do(Sleep(other, next()))
		s.do(Wake(other, next()))
		s.do(Unreserve{Client: set})
		for _, leaves := range []Client{id, other} {
			s.do(Return{Client: leaves, Runs: s.shelf[leaves], Fence: 1, Sent: uint64(len(s.shelf[leaves])), Final: true})
			s.do(Leave{Client: leaves, Synced: true})
		}
		s.do(Refill{Client: 1, Token: next(), Pages: 4, Bytes: 4 * pageBytes})
		s.do(Tick{})
		require.NoError(t, s.core.Check())
		require.Len(t, s.core.clients.ids, 3)
	}
	sizes := func() map[string]int {
		all := map[string]int{}
		lengths(reflect.ValueOf(s.core), "core", all, map[any]bool{})
		return all
	}
	for id := Client(10); id < 30; id += 2 {
		live(id, id+1)
	}
	before := sizes()
	for id := Client(30); id < 70; id += 2 {
		live(id, id+1)
	}
	after := sizes()
	for path, n := range after {
		assert.LessOrEqual(t, n, before[path]+8, "%s", path)
	}
	assert.Greater(t, len(after), 20)
}
