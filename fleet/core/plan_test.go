package core

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/fleet/ledger"
)

// store is a ledger of one test: every lease lives.
type store struct {
	t      *testing.T
	s      ledger.Snapshot
	reader Reader
}

func newStore(t *testing.T) *store {
	t.Helper()
	return &store{t: t, s: ledger.Snapshot{Revision: 1}}
}

func (s *store) books() *Books { return s.reader.Read(s.s) }

func (s *store) apply(t *ledger.Transaction) error {
	require.NotNil(s.t, t)
	next, err := s.s.Apply(*t, func(int64) bool { return true })
	s.s = next
	return err
}

func (s *store) put(key string, record any) {
	require.NoError(s.t, s.apply(&ledger.Transaction{Put: []ledger.Put{{Key: key, Value: value(record), Lease: 1}}}))
}

// devices makes devices as "name=bytes@host,label".
func (s *store) devices(all ...string) {
	for _, text := range all {
		name, rest, _ := strings.Cut(text, "=")
		d := &Device{Name: name}
		rest, label, labeled := strings.Cut(rest, ",")
		_, err := fmt.Sscanf(strings.ReplaceAll(rest, "@", " "), "%d %s", &d.OfferBytes, &d.Host)
		require.NoError(s.t, err)
		if labeled {
			d.Labels = map[string]string{"kind": label}
		}
		s.put(devicePrefix+name, d)
	}
}

func (s *store) gang(ticket string, priority int, policy Policy, wants ...Want) {
	r := Request{Wants: wants, Priority: priority, Policy: policy}
	require.NoError(s.t, r.Check())
	s.put(gangPrefix+ticket, &Gang{Request: r})
}

func (s *store) plan(ticket string) Verdict { return s.books().Plan(s.books().Gang(ticket)) }

// grant carries a plan out.
func (s *store) grant(ticket string) {
	v := s.plan(ticket)
	require.NotNil(s.t, v.Devices, ticket)
	require.NoError(s.t, s.apply(s.books().grant(s.books().Gang(ticket), v)))
}

func (s *store) end(ticket string) {
	t := &ledger.Transaction{Delete: []string{gangPrefix + ticket}}
	for _, h := range s.books().Holds {
		if h.Ticket == ticket {
			t.Delete = append(t.Delete, HoldKey(h.Device, h.Ticket))
		}
	}
	require.NoError(s.t, s.apply(t))
}

func bytesEach(all ...int64) (wants []Want) {
	for _, n := range all {
		wants = append(wants, Want{Bytes: n})
	}
	return wants
}

// Pack takes few hosts and the tightest devices, spread many hosts and the emptiest.
func TestPackAndSpread(t *testing.T) {
	s := newStore(t)
	s.devices("a=8@x", "b=4@x", "c=9@y", "d=5@y")
	s.gang("pack", 0, Pack, bytesEach(3, 4)...)
	assert.Equal(t, []string{"a", "b"}, s.plan("pack").Devices, "the larger want takes the tightest device, the other stays on its host")
	s.end("pack")
	s.gang("spread", 0, Spread, bytesEach(3, 4)...)
	assert.Equal(t, []string{"a", "c"}, s.plan("spread").Devices)
}

// The host of a want's device counts for the next want, whichever device of the fleet it is.
func TestTheHostOfAnyDeviceCounts(t *testing.T) {
	for first := range 4 {
		for mate := range 4 {
			if mate == first {
				continue
			}
			for _, x := range []struct {
				policy Policy
				bytes  int // the first want has the tightest device, or the emptiest
				same   bool
			}{{Pack, 4, true}, {Spread, 12, false}} {
				s := newStore(t)
				var names []string
				for i := range 4 {
					bytes, host := 8, "x"
					if i == first {
						bytes = x.bytes
					}
					if i == first || i == mate {
						host = "y"
					}
					names = append(names, string(rune('a'+i)))
					s.devices(fmt.Sprintf("%s=%d@%s", names[i], bytes, host))
				}
				s.gang("g", 0, x.policy, bytesEach(4, 3)...)
				on := s.plan("g").Devices
				require.Len(t, on, 2)
				assert.Equal(t, names[first], on[0])
				assert.Equal(t, x.same, on[1] == names[mate], "%s, the first is %d, on the host of %d", x.policy, first, mate)
			}
		}
	}
}

// A want gets the device that it names, or one with all its labels.
func TestNamesAndLabels(t *testing.T) {
	s := newStore(t)
	s.devices("a=8@x,h100", "b=8@x,h200", "c=8@x")
	s.gang("g", 0, Pack, Want{Bytes: 1, Labels: map[string]string{"kind": "h200"}}, Want{Bytes: 1, Device: "c"}, Want{Bytes: 1})
	assert.Equal(t, []string{"b", "c", "a"}, s.plan("g").Devices)
	s.gang("h", 0, Pack, Want{Bytes: 1, Labels: map[string]string{"kind": "h200", "zone": "1"}})
	assert.Equal(t, NoDevices, s.plan("h").Reason)
}

// Wants change places where that alone serves all of them, each on a device of its own.
func TestAMatchingIsFoundWhereThereIsOne(t *testing.T) {
	s := newStore(t)
	s.devices("a=5@x,k", "b=5@x")
	s.gang("g", 0, Pack, bytesEach(5)[0], Want{Bytes: 4, Labels: map[string]string{"kind": "k"}})
	assert.Equal(t, []string{"b", "a"}, s.plan("g").Devices)
	s.gang("two", 0, Pack, bytesEach(1, 1, 1)...)
	assert.Equal(t, NoDevices, s.plan("two").Reason, "each want has a device of its own")
}

// A gang gets all of its devices or none, and waits for those that hold them.
func TestAllOrNothing(t *testing.T) {
	s := newStore(t)
	s.devices("a=8@x", "b=8@x")
	s.gang("one", 0, Pack, Want{Bytes: 5, Device: "a"})
	s.grant("one")
	s.gang("both", 0, Pack, bytesEach(4, 4)...)
	assert.Equal(t, Verdict{Reason: Memory, Holders: []string{"one"}}, s.plan("both"))
	s.end("one")
	s.grant("both")
	assert.Equal(t, int64(4), s.books().FreeBytes(s.books().Device("b")))
}

// Priority decides before age. A gang that fits has its memory set aside while others plan.
func TestOrder(t *testing.T) {
	s := newStore(t)
	s.devices("a=8@x")
	s.gang("first", 0, Pack, bytesEach(5)...)
	s.gang("second", 0, Pack, bytesEach(5)...)
	s.gang("small", 0, Pack, bytesEach(3)...)
	s.gang("urgent", 1, Pack, bytesEach(6)...)
	assert.Equal(t, Verdict{Reason: Turn, Before: []string{"urgent"}}, s.plan("first"))
	v := s.plan("urgent")
	assert.Equal(t, []string{"a"}, v.Devices)
	assert.Equal(t, []string{"first", "second", "small"}, v.Passed, "older ones have no place any more")
	s.end("urgent")
	assert.Nil(t, s.plan("second").Devices)
	assert.Equal(t, []string{"first"}, s.plan("second").Before)
	v = s.plan("small")
	assert.Equal(t, []string{"a"}, v.Devices, "it fits next to the memory set aside for the first")
	assert.Equal(t, []string{"second"}, v.Passed, "the first is not passed: it still fits")
}

// A large gang is passed at most MostBypasses times; then its devices are closed to others, also to urgent ones, and no other device.
func TestBypassesAreBounded(t *testing.T) {
	s := newStore(t)
	s.devices("a=8@x,k", "b=8@y")
	s.gang("holder", 0, Pack, Want{Bytes: 2, Device: "a"})
	s.grant("holder")
	s.gang("large", 0, Pack, Want{Bytes: 8, Device: "a"})
	for i := range MostBypasses {
		small := fmt.Sprintf("small%d", i)
		s.gang(small, i%2, Pack, Want{Bytes: 1, Device: "a"})
		assert.Equal(t, []string{"large"}, s.plan(small).Passed)
		s.grant(small)
		s.end(small)
		s.gang("other"+small, 1, Pack, Want{Bytes: 1, Device: "b"})
		assert.Empty(t, s.plan("other"+small).Passed, "it takes nothing that the large one could use")
		s.grant("other" + small)
		s.end("other" + small)
	}
	assert.Equal(t, MostBypasses, s.books().Gang("large").Bypassed)
	s.gang("urgent", 9, Pack, Want{Bytes: 1, Device: "a"})
	assert.Equal(t, Verdict{Reason: Turn, Before: []string{"large"}, Holders: []string{"holder"}}, s.plan("urgent"))
	s.gang("elsewhere", 0, Pack, Want{Bytes: 1, Device: "b"})
	assert.NotNil(t, s.plan("elsewhere").Devices)
	s.end("holder")
	s.grant("large")
}

// Of any two gangs those that were passed too often come first, the oldest before the others; then priority decides, then age, then the ticket.
// One that has its grant is not in the order.
func TestTheOrderOfAnyTwoGangs(t *testing.T) {
	var all []Gang
	for bypassed := MostBypasses - 1; bypassed <= MostBypasses+1; bypassed++ {
		for priority := range 2 {
			for age := range int64(2) {
				all = append(all, Gang{Request: Request{Priority: priority}, Bypassed: bypassed, Age: age})
			}
		}
	}
	first := func(x, y *Gang) bool {
		if late, other := x.Bypassed >= MostBypasses, y.Bypassed >= MostBypasses; late != other {
			return late
		} else if !late && x.Priority != y.Priority {
			return x.Priority > y.Priority
		}
		return x.Age < y.Age || x.Age == y.Age && x.Ticket < y.Ticket
	}
	for _, x := range all {
		for _, y := range all {
			x.Ticket, y.Ticket = "x", "y"
			want := []*Gang{&x, &y}
			if !first(&x, &y) {
				want = []*Gang{&y, &x}
			}
			granted := Gang{Ticket: "a", Granted: []string{"d"}}
			require.Equal(t, want, (&Books{Gangs: []*Gang{&y, &granted, &x}}).Queue(), "%+v, %+v", x, y)
			require.Equal(t, want, (&Books{Gangs: []*Gang{&x, &y}}).Queue(), "%+v, %+v", x, y)
		}
	}
}

// A gang that waits for devices that are not there keeps memory from nobody, however often it was passed.
func TestAGangWithoutDevicesBlocksNobody(t *testing.T) {
	s := newStore(t)
	s.devices("a=8@x")
	s.put(gangPrefix+"far", &Gang{Request: Request{Wants: []Want{{Bytes: 1, Device: "a"}, {Bytes: 1, Device: "gone"}}, Policy: Pack}, Bypassed: MostBypasses})
	s.gang("near", 0, Pack, bytesEach(8)...)
	v := s.plan("near")
	assert.Equal(t, []string{"a"}, v.Devices)
	assert.Empty(t, v.Passed)
	assert.Equal(t, NoDevices, s.plan("far").Reason)
}

// A grant on books that have changed fails: another gang, or another offer.
func TestAGrantComparesItsBooks(t *testing.T) {
	for name, change := range map[string]func(*store){
		"gang":  func(s *store) { s.gang("new", 1, Pack, bytesEach(8)...) },
		"offer": func(s *store) { s.devices("a=7@x") },
		"twice": func(s *store) { s.grant("g") },
	} {
		s := newStore(t)
		s.devices("a=8@x")
		s.gang("g", 0, Pack, bytesEach(8)...)
		b := s.books()
		grant := b.grant(b.Gang("g"), b.Plan(b.Gang("g")))
		change(s)
		assert.ErrorIs(t, s.apply(grant), ledger.ErrConflict, name)
	}
}

// The largest grant fits a transaction of etcd, with its defaults: 128 compares, 128 changes, 1.5 MiB.
func TestTheLargestGrantIsATransactionOfEtcd(t *testing.T) {
	long := func(prefix string, i int) string {
		return prefix + strings.Repeat("x", MostName-8) + fmt.Sprintf("%04d", i)
	}
	s := newStore(t)
	labels := map[string]string{}
	for len(labels) < 8 {
		labels[long("name", len(labels))] = long("text", len(labels))
	}
	large := func(bytes int64) (r Request) {
		r.Policy, r.Holder = Spread, long("h", 0)
		for i := range MostWants {
			r.Wants = append(r.Wants, Want{Bytes: bytes, Device: long("d", i)})
		}
		for i := range r.Wants { // as many labels as the bound allows
			r.Wants[i].Labels = labels
			if r.Check() != nil {
				r.Wants[i].Labels = nil
				break
			}
		}
		require.NoError(t, r.Check())
		return r
	}
	for i := range MostWants {
		d := &Device{OfferBytes: MostBytes, Labels: labels, Host: long("h", i)}
		s.put(devicePrefix+long("d", i), d)
		s.put(HoldKey(long("d", i), "holder"), &Hold{Bytes: 1, Incarnation: s.s.Revision})
	}
	for i := range mostPassed + 2 {
		s.put(gangPrefix+long("g", i), &Gang{Request: large(MostBytes)})
	}
	s.put(gangPrefix+"small", &Gang{Request: large(MostBytes / 2)})
	v := s.plan("small")
	require.Len(t, v.Devices, MostWants)
	require.Len(t, v.Passed, mostPassed)
	grant := s.books().grant(s.books().Gang("small"), v)
	assert.LessOrEqual(t, len(grant.If), 128)
	assert.LessOrEqual(t, len(grant.Put)+len(grant.Delete), 128)
	const each = 64 // bytes of an operation without its key and value
	bytes := 0
	for _, c := range grant.If {
		bytes += each + len(c.Key)
	}
	for _, p := range grant.Put {
		bytes += each + len(p.Key) + len(p.Value)
	}
	assert.Less(t, bytes, 3<<19)
	assert.Greater(t, bytes, 3<<19/2, "the gangs are small")
	require.NoError(t, s.apply(grant))
}

// Records from outside are not believed: one that breaks a bound is none, and a device with an unreadable hold is granted to no gang.
func TestUnreadableRecords(t *testing.T) {
	s := newStore(t)
	s.devices("a=8@x", "b=8@x")
	for key, text := range map[string]string{
		"device/c":  `{"offer_bytes":-1}`,
		"device/d":  `{"offer_bytes":9e18}`,
		"device/€":  `{"offer_bytes":1}`,
		"gang/none": `{"wants":[]}`,
		"gang/less": `{"wants":[{"bytes":1},{"bytes":1}],"policy":"pack","granted":["a"]}`,
		"gang/€":    `{"wants":[{"bytes":1}],"policy":"pack"}`,
		"gang/same": `{"wants":[{"bytes":1,"device":"a"},{"bytes":1,"device":"a"}],"policy":"pack"}`,
		"hold/a/t":  `{"bytes":-4}`,
		"load/a":    `[`,
		"other":     `{}`,
	} {
		require.NoError(t, s.apply(&ledger.Transaction{Put: []ledger.Put{{Key: key, Value: []byte(text)}}}))
	}
	s.gang("g", 0, Spread, bytesEach(8)...)
	assert.Equal(t, []string{"b"}, s.plan("g").Devices)
	assert.Len(t, s.books().Unreadable, 10)
	assert.Nil(t, s.books().Device("c"))
	s.gang("h", 0, Spread, bytesEach(8, 8)...)
	assert.Equal(t, NoDevices, s.plan("h").Reason)
}

// A hold has any bytes that a want can have.
func TestHoldsAtTheirBounds(t *testing.T) {
	for bytes, is := range map[int64]bool{-1: false, 0: false, 1: true, MostBytes: true, MostBytes + 1: false} {
		record := decode(ledger.Pair{Key: HoldKey("a", "t"), Value: value(&Hold{Bytes: bytes})})
		assert.Equal(t, is, record != nil, "%d bytes", bytes)
	}
}

// A record that has not changed is decoded once.
func TestAReaderKeepsWhatHasNotChanged(t *testing.T) {
	s := newStore(t)
	s.devices("a=8@x", "b=8@x")
	s.gang("g", 0, Pack, bytesEach(1)...)
	for range 3 {
		before := s.books()
		s.devices("b=9@x")
		after := s.books()
		assert.Same(t, before.Device("a"), after.Device("a"))
		assert.Same(t, before.Gang("g"), after.Gang("g"))
		assert.NotSame(t, before.Device("b"), after.Device("b"))
		assert.EqualValues(t, 9, after.Device("b").OfferBytes)
		s.devices("b=8@x")
	}
}

// Requests that the books cannot have are refused.
func TestRequestsAreChecked(t *testing.T) {
	for _, r := range []Request{
		{Policy: Pack},
		{Policy: Pack, Wants: make([]Want, MostWants+1)},
		{Policy: "near", Wants: bytesEach(1)},
		{Policy: Pack, Wants: bytesEach(0)},
		{Policy: Pack, Wants: bytesEach(MostBytes + 1)},
		{Policy: Pack, Wants: []Want{{Bytes: 1, Device: "a/b"}}},
		{Policy: Pack, Wants: bytesEach(1), Priority: MostPriority + 1},
		{Policy: Pack, Wants: bytesEach(1), Holder: strings.Repeat("x", MostName+1)},
		{Policy: Pack, Wants: []Want{{Bytes: 1, Labels: map[string]string{"": "x"}}}},
	} {
		assert.Error(t, r.Check(), "%+v", r)
	}
}

// A device gives whole pages, so that it can serve all holds that fit its offer.
func TestHoldsAreWholePages(t *testing.T) {
	s := newStore(t)
	s.put(devicePrefix+"a", &Device{OfferBytes: 8, PageBytes: 4})
	s.gang("one", 0, Pack, bytesEach(1)...)
	s.grant("one")
	s.gang("two", 0, Pack, bytesEach(5)...)
	assert.Equal(t, Memory, s.plan("two").Reason)
	s.gang("three", 0, Pack, bytesEach(4)...)
	s.grant("three")
	assert.Zero(t, s.books().FreeBytes(s.books().Device("a")))
	assert.Equal(t, int64(4), s.books().Hold("a", "one").Bytes)
}

// A placement takes the device with room, without a queue and at low pressure, and keeps tenants on their devices among equals.
func TestPlace(t *testing.T) {
	s := newStore(t)
	s.devices("a=8@x", "b=8@x", "c=4@x")
	place := func(bytes int64, tenant string) string {
		d, _ := s.books().Place(bytes, tenant)
		if d == nil {
			return ""
		}
		return d.Name
	}
	all := map[string]int{}
	for i := range 100 {
		tenant := fmt.Sprint(i)
		all[place(5, tenant)]++
		assert.Equal(t, place(5, tenant), place(5, tenant))
	}
	assert.Len(t, all, 2)
	assert.Greater(t, min(all["a"], all["b"]), 25, "tenants are spread")
	assert.Empty(t, place(9, "t"))
	s.put(loadPrefix+"a", &Load{FreeBytes: 8, Pressure: 1})
	s.put(loadPrefix+"b", &Load{FreeBytes: 8})
	assert.Equal(t, "b", place(5, "t"))
	s.put(loadPrefix+"b", &Load{FreeBytes: 8, Waiting: 3})
	assert.Equal(t, "a", place(5, "t"))
	s.put(loadPrefix+"a", &Load{FreeBytes: 2})
	d, now := s.books().Place(5, "t")
	assert.Equal(t, "b", d.Name, "it waits for less")
	assert.True(t, now)
	s.gang("g", 0, Spread, Want{Bytes: 8, Device: "b"})
	s.grant("g")
	d, now = s.books().Place(5, "t")
	assert.Equal(t, "a", d.Name)
	assert.False(t, now, "no device has room")
}

// Of two equal devices a placement takes the one for which fewer gangs wait: those that could use it, and have no grant.
func TestAPlacementAvoidsQueues(t *testing.T) {
	for _, queued := range []string{"a", "b"} {
		for _, waiting := range [][]string{{"waits"}, {"before"}, {"before", "waits", "x"}} { // before and after the tickets of the others
			s := newStore(t)
			s.devices("a=8@x", "b=8@x", "c=4@x")
			other := map[string]string{"a": "b", "b": "a"}[queued]
			s.gang("granted", 0, Pack, Want{Bytes: 8, Device: other})
			s.grant("granted")
			s.gang("full", 0, Pack, Want{Bytes: 8, Device: queued})
			s.grant("full")
			for _, ticket := range waiting {
				s.gang(ticket, 0, Pack, Want{Bytes: 8, Device: queued})
			}
			for i := range 20 {
				d, now := s.books().Place(5, fmt.Sprint(i))
				assert.Equal(t, other, d.Name)
				assert.False(t, now)
			}
		}
	}
}

// A gang that waits for memory is given the tickets that hold it, each once, and no others.
func TestTheHoldersThatAGangWaitsFor(t *testing.T) {
	s := newStore(t)
	s.devices("a=8@x", "b=8@y", "c=8@z")
	s.gang("first", 0, Pack, Want{Bytes: 3, Device: "a"}, Want{Bytes: 3, Device: "b"})
	s.grant("first")
	s.gang("second", 0, Pack, Want{Bytes: 4, Device: "a"})
	s.grant("second")
	s.gang("elsewhere", 0, Pack, Want{Bytes: 8, Device: "c"})
	s.grant("elsewhere")
	s.gang("waits", 0, Pack, Want{Bytes: 8, Device: "a"}, Want{Bytes: 8, Device: "b"})
	v := s.plan("waits")
	assert.Equal(t, Memory, v.Reason)
	assert.Empty(t, v.Devices)
	assert.ElementsMatch(t, []string{"first", "second"}, v.Holders)
}

// The gangs that a grant passes are counted from the oldest on, in any order of their priorities.
func TestTheOldestGangsArePassedFirst(t *testing.T) {
	s := newStore(t)
	s.devices("a=8@x", "b=2@x")
	s.gang("full", 0, Pack, Want{Bytes: 2, Device: "a"})
	s.grant("full")
	var ages []string
	for i := range mostPassed + 5 {
		name := fmt.Sprint("g", i)
		s.gang(name, (i*7)%5, Pack, Want{Bytes: 8, Device: "a"})
		ages = append(ages, name)
	}
	s.gang("small", 9, Pack, Want{Bytes: 1, Device: "a"})
	assert.Equal(t, ages[:mostPassed], s.plan("small").Passed)
}

// The bounds of a device's figures are themselves figures that a device can have.
func TestDevicesAreChecked(t *testing.T) {
	for _, d := range []Device{
		{}, {OfferBytes: MostBytes}, {PageBytes: MostPageBytes}, {Host: strings.Repeat("x", MostName)}, {Incarnation: 1 << 62}, {Ordinal: 1 << 30},
	} {
		d.Name = "a"
		assert.NoError(t, d.Check(), "%+v", d)
	}
	for _, d := range []Device{
		{OfferBytes: -1},
		{OfferBytes: MostBytes + 1},
		{PageBytes: -1},
		{PageBytes: MostPageBytes + 1},
		{Host: strings.Repeat("x", MostName+1)},
		{Labels: map[string]string{"": "x"}},
	} {
		d.Name = "a"
		assert.Error(t, d.Check(), "%+v", d)
	}
	assert.Error(t, (&Device{Name: "a/b"}).Check())
}
