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

// Nothing is left of a client that is gone, in any order of its return of memory, its end, and the end of its fence.
func TestNothingIsLeftOfAClientThatIsGone(t *testing.T) {
	t.Parallel()
	type steps = []func(s *shop, id Client)
	returns := func(s *shop, id Client) {
		s.do(Return{Client: id, Runs: s.shelf[id], Fence: 1, Sent: uint64(len(s.shelf[id])), Final: true})
		s.shelf[id] = nil
	}
	passes := func(s *shop, id Client) { s.core.passed(Passed{Client: id, Fence: 1}) }
	leaves := func(s *shop, id Client) { s.do(Leave{Client: id}) }
	leavesSynced := func(s *shop, id Client) { s.do(Leave{Client: id, Synced: true}) }
	for name, all := range map[string]steps{
		"all passes before it leaves": {returns, passes, leaves},
		"all passes later":            {returns, leaves, passes},
		"it returns last":             {leaves, returns, passes},
		"it leaves synced":            {returns, leavesSynced},
		"it returns synced":           {leavesSynced, returns},
	} {
		s := openShop(t)
		s.do(Return{Client: 1, Runs: []Run{{First: 0, Pages: 6}}, Sent: 1})
		sizes := func() (sum int) {
			all := map[string]int{}
			lengths(reflect.ValueOf(s.core), "core", all, map[any]bool{})
			for _, n := range all {
				sum += n
			}
			return sum
		}
		live := func(id Client) {
			s.do(Join{Client: id})
			s.do(Refill{Client: id, Token: 100 + uint64(id), Pages: 3, Bytes: 3 * pageBytes})
			require.NotEmpty(t, s.shelf[id], name)
			for _, step := range all {
				step(s, id)
			}
			require.NoError(t, s.core.Check())
		}
		live(10)
		before := sizes()
		for id := Client(11); id < 20; id++ {
			live(id)
		}
		assert.Equal(t, before, sizes(), name)
	}
}

// Messages that name a client or a request that there is not do nothing, and no request advances by them.
func TestMessagesThatNameNobodyDoNothing(t *testing.T) {
	t.Parallel()
	for _, m := range []Message{
		Leave{Client: 9},
		Unreserve{Client: 9},
		Unreserve{Client: 1},
		Withdraw{Client: 9, Token: 99},
		Withdraw{Client: 2, Token: 1},
		Ready{Client: 9, Token: 99},
		Ready{Client: 2, Token: 1},
		Block{Client: 9, Token: 99, Number: 9, Blocked: true},
		Block{Client: 2, Token: 1, Number: 9, Blocked: true},
		Suspend{Client: 9, Number: 9, Waits: [][]Client{nil}},
		Offered{Client: 9, Token: 99, Taken: true},
		Offered{Client: 2, Token: 1, Taken: true},
		Offered{Client: 2, Token: 99, Taken: true},
		Return{Client: 9, Stirred: true, Sent: 1},
		Return{Client: 9, Runs: []Run{{First: 0, Pages: 1}}, Sent: 1},
		Exclude{Client: 9, Excluded: true},
		Apart(9),
	} {
		s := openShop(t)
		s.do(waitAs(99, 4))
		state := func() map[string]int {
			all := map[string]int{}
			lengths(reflect.ValueOf(s.core), "core", all, map[any]bool{})
			return all
		}
		before, text := state(), s.core.String()
		s.core.fx.reset()
		assert.False(t, s.core.take(m), "%T%+v", m, m)
		assert.True(t, s.core.fx.Empty(), "%T%+v", m, m)
		assert.Equal(t, before, state(), "%T%+v", m, m)
		assert.Equal(t, text, s.core.String(), "%T%+v", m, m)
		require.NoError(t, s.core.Check())
	}
}
