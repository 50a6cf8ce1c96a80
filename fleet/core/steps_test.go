package core

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/fleet/ledger"
)

// pair runs an owner of device a and a requester against one store.
func pair(t *testing.T) (*store, *Owner, *Requester) {
	t.Helper()
	s := newStore(t)
	o := NewOwner(Device{Name: "a", OfferBytes: 8}, 1)
	require.NoError(t, s.apply(o.Step(s.books()).Commit))
	r := NewRequester("t", 2, Request{Policy: Pack, Wants: bytesEach(5)}, Settings{ReadyAfter: time.Second, AvoidFor: time.Minute})
	require.NoError(t, s.apply(r.Step(1, s.books()).Commit))
	require.NoError(t, s.apply(r.Step(1, s.books()).Commit))
	return s, o, r
}

// A grant is complete when the owner is ready, is answered once, and ends with the device.
func TestAGrantFromRequestToEnd(t *testing.T) {
	s, o, r := pair(t)
	step := r.Step(2, s.books())
	assert.Equal(t, None, step.Event, "the owner has not answered")
	assert.Equal(t, time.Second+2, step.Wake)
	owned := o.Step(s.books())
	require.Len(t, owned.Reserve, 1)
	assert.Nil(t, owned.Commit, "the reservation is not made yet")
	old := s.books()
	require.NoError(t, s.apply(o.Step(s.books()).Commit))
	step = r.Step(3, s.books())
	assert.Equal(t, Granted, step.Event)
	assert.Equal(t, int64(5), step.Holds[0].Bytes)
	assert.Equal(t, None, r.Step(4, s.books()).Event)
	assert.Equal(t, RequesterStep{}, r.Step(5, old), "an old snapshot")
	assert.Equal(t, o.Fence("t"), step.Holds[0].Fence)

	require.NoError(t, s.apply(&ledger.Transaction{Delete: []string{"device/a", "ready/a/t", "load/a"}})) // its owner died
	assert.Equal(t, Lost, r.Step(6, s.books()).Event)
	assert.Equal(t, None, r.Step(7, s.books()).Event)
	ended := o.Step(s.books())
	assert.True(t, ended.Ended)
	assert.Len(t, ended.Release, 1)
}

// A device that cannot reserve deletes the hold and lowers its offer; the gang waits again at its age.
func TestARefusedHoldIsWithdrawn(t *testing.T) {
	s, o, r := pair(t)
	age := s.books().Gang("t").Age
	require.Len(t, o.Step(s.books()).Reserve, 1)
	o.Refused("t")
	require.NoError(t, s.apply(o.Step(s.books()).Commit))
	assert.Zero(t, s.books().Device("a").OfferBytes)
	require.NoError(t, s.apply(r.Step(2, s.books()).Commit))
	step := r.Step(3, s.books())
	assert.Nil(t, step.Commit)
	assert.Equal(t, NoDevices, step.Verdict.Reason)
	assert.Equal(t, age, s.books().Gang("t").Age)
	o.Offer(8, Load{})
	require.NoError(t, s.apply(o.Step(s.books()).Commit))
	require.NoError(t, s.apply(r.Step(4, s.books()).Commit))
	require.Len(t, o.Step(s.books()).Reserve, 1)
	require.NoError(t, s.apply(o.Step(s.books()).Commit))
	assert.Equal(t, Granted, r.Step(5, s.books()).Event)
}

// A gang withdraws from an owner that does not answer, avoids it for a time, and then asks it again.
func TestASilentOwnerIsAvoided(t *testing.T) {
	s, o, r := pair(t)
	assert.Nil(t, r.Step(2, s.books()).Commit)
	require.NoError(t, s.apply(r.Step(2+time.Second, s.books()).Commit))
	assert.Empty(t, s.books().Holds)
	step := r.Step(3*time.Second, s.books())
	assert.Equal(t, NoDevices, step.Verdict.Reason)
	assert.Equal(t, 2+time.Second+time.Minute, step.Wake)
	require.NoError(t, s.apply(r.Step(step.Wake, s.books()).Commit))
	require.NoError(t, s.apply(r.Step(step.Wake, s.books()).Commit))
	again := r.Step(step.Wake, s.books())
	assert.Nil(t, again.Commit, "the owner has its time again")
	assert.Equal(t, step.Wake+time.Second, again.Wake)
	require.Len(t, o.Step(s.books()).Reserve, 1)
}

// A device refuses holds beyond its offer, and holds of an earlier life.
func TestTheDeviceDecides(t *testing.T) {
	s, o, _ := pair(t)
	require.Len(t, o.Step(s.books()).Reserve, 1)
	d := s.books().Device("a")
	s.put(HoldKey("a", "more"), &Hold{Bytes: 4, Incarnation: d.Incarnation})
	s.put(HoldKey("a", "early"), &Hold{Bytes: 1, Incarnation: d.Incarnation - 1})
	step := o.Step(s.books())
	assert.Empty(t, step.Reserve)
	assert.Contains(t, step.Commit.Delete, HoldKey("a", "more"))
	assert.Equal(t, int64(5), o.HeldBytes())
	assert.Zero(t, o.Fence("early"))
	assert.Zero(t, o.Fence("more"))
	other := NewOwner(Device{Name: "a", OfferBytes: 8}, 9)
	assert.True(t, other.Step(s.books()).Taken)
}

// A device reserves nothing for a hold of an old snapshot, nor for one with a fence below the last, as a ledger that went back would have.
func TestOldHoldsAreRefused(t *testing.T) {
	s, o, r := pair(t)
	require.Len(t, o.Step(s.books()).Reserve, 1)
	old := s.books()
	require.NoError(t, s.apply(o.Step(s.books()).Commit))
	require.Equal(t, Granted, r.Step(2, s.books()).Event)
	early := *old
	early.Revision, early.Holds = old.Revision-1, nil
	assert.Empty(t, o.Step(&early).Release, "the grant is newer")
	s.end("t")
	require.Len(t, o.Step(s.books()).Release, 1)
	assert.Empty(t, o.Step(old).Reserve, "the grant has ended")
	assert.Zero(t, o.HeldBytes())
	again := s.books()
	again.Revision++
	again.Holds = old.Holds
	step := o.Step(again)
	assert.Empty(t, step.Reserve, "the fence is not above the last")
	assert.Contains(t, step.Commit.Delete, HoldKey("a", "t"))
}

// The event says what has ended a complete grant: the gang's own lease, or a device, which may be back in another life.
func TestWhatEndsAGrant(t *testing.T) {
	for name, x := range map[string]struct {
		event Event
		end   func(t *testing.T, s *store)
	}{
		"the gang's lease": {Ended, func(_ *testing.T, s *store) { s.end("t") }},
		"the device is gone": {Lost, func(t *testing.T, s *store) {
			t.Helper()
			require.NoError(t, s.apply(&ledger.Transaction{Delete: []string{"device/a", "ready/a/t", "load/a"}}))
		}},
		"the device is back": {Lost, func(t *testing.T, s *store) {
			t.Helper()
			require.NoError(t, s.apply(&ledger.Transaction{Delete: []string{"device/a", "load/a"}}))
			require.NoError(t, s.apply(NewOwner(Device{Name: "a", OfferBytes: 8}, 9).Step(s.books()).Commit))
		}},
		"the hold is dropped": {Lost, func(t *testing.T, s *store) {
			t.Helper()
			require.NoError(t, s.apply(&ledger.Transaction{Delete: []string{HoldKey("a", "t"), "ready/a/t"}}))
		}},
	} {
		s, o, r := pair(t)
		require.Len(t, o.Step(s.books()).Reserve, 1, name)
		require.NoError(t, s.apply(o.Step(s.books()).Commit), name)
		require.Equal(t, Granted, r.Step(2, s.books()).Event, name)
		x.end(t, s)
		assert.Equal(t, x.event, r.Step(3, s.books()).Event, name)
		assert.Equal(t, None, r.Step(4, s.books()).Event, name)
	}
}

// The end of a device releases what was reserved, and not a hold that was refused.
func TestTheEndReleasesWhatIsReserved(t *testing.T) {
	s, o, _ := pair(t)
	require.Len(t, o.Step(s.books()).Reserve, 1)
	s.put(HoldKey("a", "more"), &Hold{Bytes: 4, Incarnation: s.books().Device("a").Incarnation})
	require.Empty(t, o.Step(s.books()).Reserve, "it does not fit")
	require.NoError(t, s.apply(&ledger.Transaction{Delete: []string{"device/a"}}))
	step := o.Step(s.books())
	require.Len(t, step.Release, 1)
	assert.Equal(t, "t", step.Release[0].Ticket)
	assert.Zero(t, o.HeldBytes())
	assert.Zero(t, o.Fence("t"))
	assert.Equal(t, OwnerStep{}, o.Step(s.books()), "it has ended")
}

// A requester of the package fleet waits for an owner for some seconds, and avoids a silent one for half a minute.
func TestTheSettingsOfTheFleet(t *testing.T) {
	assert.Equal(t, Settings{ReadyAfter: 5 * time.Second, AvoidFor: 30 * time.Second}, DefaultSettings())
}

// A device with an owner is not announced by others.
func TestAnOwnedDeviceIsNotAnnounced(t *testing.T) {
	s, _, _ := pair(t)
	assert.Nil(t, s.books().Announce(Device{Name: "a", OfferBytes: 99, Host: "other"}))
	announced := s.books().Announce(Device{Name: "b", OfferBytes: 9})
	require.NoError(t, s.apply(announced))
	assert.Nil(t, s.books().Announce(Device{Name: "b", OfferBytes: 9}), "the books have it")
	require.NoError(t, s.apply(s.books().Announce(Device{Name: "b", OfferBytes: 8})))
	assert.Equal(t, int64(8), s.books().Device("b").OfferBytes)
	assert.Equal(t, int64(8), s.books().Device("a").OfferBytes)
	for name, other := range map[string]Device{
		"labels": {Labels: map[string]string{"gpu": "h200"}}, "pages": {PageBytes: 4}, "host": {Host: "c"}, "ordinal": {Ordinal: 1},
	} {
		other.Name, other.OfferBytes = "b", 8
		if before := s.books().Announce(Device{Name: "b", OfferBytes: 8}); before != nil {
			require.NoError(t, s.apply(before), name)
		}
		require.NotNil(t, s.books().Announce(other), name)
		require.NoError(t, s.apply(s.books().Announce(other)), name)
		assert.Nil(t, s.books().Announce(other), name)
	}
}

// A gang that has waited and is gone is not announced again: somebody has ended it.
func TestAGangThatIsDeletedWhileItWaits(t *testing.T) {
	s := newStore(t)
	r := NewRequester("t", 2, Request{Policy: Pack, Wants: bytesEach(5)}, Settings{ReadyAfter: time.Second, AvoidFor: time.Minute})
	require.NoError(t, s.apply(r.Step(1, s.books()).Commit))
	require.Equal(t, NoDevices, r.Step(2, s.books()).Verdict.Reason)
	s.end("t")
	step := r.Step(3, s.books())
	assert.Equal(t, Ended, step.Event)
	assert.Nil(t, step.Commit)
}

// Each change of a report is compared with the hold that it answers, also where there are more than one transaction has.
func TestAReportOfManyHolds(t *testing.T) {
	s := newStore(t)
	o := NewOwner(Device{Name: "a", OfferBytes: 1000}, 1)
	require.NoError(t, s.apply(o.Step(s.books()).Commit))
	d := s.books().Device("a")
	const many = 2*mostCompares + 50
	for i := range many {
		s.put(HoldKey("a", fmt.Sprint("t", i)), &Hold{Bytes: 1, Incarnation: d.Incarnation})
	}
	for _, h := range o.Step(s.books()).Reserve {
		if h.Fence%3 == 0 {
			o.Refused(h.Ticket)
		}
	}
	answered := 0
	for answered < many {
		commit := o.Step(s.books()).Commit
		require.NotNil(t, commit, "%d of %d holds are answered", answered, many)
		assert.LessOrEqual(t, len(commit.If), mostCompares)
		compared := map[string]bool{}
		for _, c := range commit.If {
			compared[c.Key] = true
		}
		for _, p := range commit.Put {
			if ticket, found := strings.CutPrefix(p.Key, readyKey("a", "")); found {
				assert.True(t, compared[HoldKey("a", ticket)], ticket)
				answered++
			}
		}
		for _, key := range commit.Delete {
			assert.True(t, compared[key], key)
			answered++
		}
		require.NoError(t, s.apply(commit))
	}
	assert.Equal(t, many, answered)
}

// An owner, and who announces a device without one, write what differs from the ledger's records, and rest then, also where a record cannot
// be read. A record of a device that has a lease may be an owner's: it stays.
func TestAnUnreadableRecordIsAnsweredOnce(t *testing.T) {
	offer := Device{Name: "a", OfferBytes: 8}
	for _, key := range []string{"device/a", "device/b", "gang/t", "hold/a/", "hold/a/t", "load/a", "ready/a/t", "other"} {
		for _, lease := range []int64{0, 7} {
			for _, owned := range []bool{true, false} {
				s := newStore(t)
				o := NewOwner(offer, 1)
				transactions := func() (n int) {
					for {
						commit := s.books().Announce(offer)
						if owned {
							commit = o.Step(s.reader.Read(s.s.Of(o.Keys()...))).Commit
						}
						if commit == nil {
							return n
						}
						require.NoError(t, s.apply(commit), key)
						require.Less(t, n, 10, "%s: %+v", key, commit)
						n++
					}
				}
				require.Positive(t, transactions())
				require.NoError(t, s.apply(&ledger.Transaction{Put: []ledger.Put{{Key: key, Value: []byte("junk"), Lease: lease}}}))
				want := 0
				if owned && key == "load/a" || !owned && key == "device/a" && lease == 0 {
					want = 1
				}
				assert.Equal(t, want, transactions(), "%s of lease %d, owned %t", key, lease, owned)
				assert.Equal(t, owned && key == "device/a", o.ended, key)
				late := NewOwner(offer, 2).Step(s.books())
				assert.True(t, late.Taken, key)
				assert.Nil(t, late.Commit, key)
			}
		}
	}
}
