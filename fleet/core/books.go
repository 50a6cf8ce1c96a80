package core

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-vram/vram/fleet/ledger"
)

// Books are the records of a snapshot.
type Books struct {
	Revision int64
	Devices  []*Device // in the order of their names
	Gangs    []*Gang   // in the order of their tickets
	Holds    []*Hold   // in the order of devices, then of tickets
	Loads    map[string]Load
	// Unreadable are keys whose records cannot be read. A device with such a record is none here, and one with such a hold offers nothing: both
	// are granted to no gang.
	Unreadable []string

	stale   []ledger.Pair          // ready marks without their hold
	damaged map[string]ledger.Pair // the pairs of Unreadable
	ready   []ledger.Pair
	keys    []string // of the snapshot
}

// Reader makes books of snapshots. It keeps the records of the last snapshot, so that only changed ones are decoded. The zero value is
// ready. It is for one goroutine.
type Reader struct {
	last map[string]decoded
	next map[string]decoded
}

type decoded struct {
	mod, create int64
	record      any // nil: it cannot be read
}

// Read returns the books of a snapshot. The caller changes no record.
func (r *Reader) Read(s ledger.Snapshot) *Books {
	b := &Books{Revision: s.Revision, Loads: map[string]Load{}, damaged: map[string]ledger.Pair{}, keys: s.Keys}
	r.next = make(map[string]decoded, len(s.Pairs))
	closed := map[string]bool{} // devices with a hold that cannot be read
	for _, p := range s.Pairs {
		d, known := r.last[p.Key]
		if !known || d.mod != p.Mod || d.create != p.Create {
			d = decoded{p.Mod, p.Create, decode(p)}
		}
		r.next[p.Key] = d
		switch record := d.record.(type) {
		case *Device:
			b.Devices = append(b.Devices, record)
		case *Gang:
			b.Gangs = append(b.Gangs, record)
		case *Hold:
			hold := *record // Ready is of this snapshot
			b.Holds = append(b.Holds, &hold)
		case *Load:
			b.Loads[strings.TrimPrefix(p.Key, loadPrefix)] = *record
		case *readyMark:
			b.mark(p, record)
		default:
			b.Unreadable, b.damaged[p.Key] = append(b.Unreadable, p.Key), p
			if rest, is := strings.CutPrefix(p.Key, holdPrefix); is {
				name, _, _ := strings.Cut(rest, "/")
				closed[name] = true
			}
		}
	}
	r.last = r.next
	for i, d := range b.Devices {
		if closed[d.Name] {
			shut := *d
			shut.OfferBytes = 0
			b.Devices[i] = &shut
		}
	}
	return b
}

// covers reports whether the books have all pairs of some keys.
func (b *Books) covers(keys []string) bool {
	return len(b.keys) == 0 || slices.Equal(b.keys, keys) ||
		!slices.ContainsFunc(keys, func(key string) bool { return !ledger.Named(key, b.keys) })
}

// mark enters a ready mark. The pairs of holds come first.
func (b *Books) mark(p ledger.Pair, mark *readyMark) {
	device, ticket, _ := strings.Cut(strings.TrimPrefix(p.Key, readyPrefix), "/")
	hold := b.Hold(device, ticket)
	if hold == nil || hold.Fence != mark.Fence {
		b.stale = append(b.stale, p)
		return
	}
	hold.Ready = true
	b.ready = append(b.ready, p)
}

// decode returns the record of a pair; nil where it is none, or breaks a bound.
func decode(p ledger.Pair) any {
	family, name, _ := strings.Cut(p.Key, "/")
	switch family + "/" {
	case devicePrefix:
		d := &Device{}
		if json.Unmarshal(p.Value, d) == nil {
			if d.Name = name; d.Check() == nil {
				d.Incarnation, d.written, d.mod, d.lease = p.Create, d.OfferBytes, p.Mod, p.Lease
				return d
			}
		}
	case gangPrefix:
		g := &Gang{}
		if json.Unmarshal(p.Value, g) == nil {
			if g.Ticket = name; CheckName(name) == nil && g.Check() == nil && (g.Waits() || len(g.Granted) == len(g.Wants)) {
				g.Age, g.mod, g.lease = p.Create, p.Mod, p.Lease
				return g
			}
		}
	case holdPrefix:
		h := &Hold{}
		device, ticket, _ := strings.Cut(name, "/")
		if json.Unmarshal(p.Value, h) == nil && h.Bytes > 0 && h.Bytes <= MostBytes && CheckName(ticket) == nil {
			h.Device, h.Ticket, h.Fence = device, ticket, p.Mod
			return h
		}
	case loadPrefix:
		l := &Load{}
		if json.Unmarshal(p.Value, l) == nil {
			l.mod = p.Mod
			return l
		}
	case readyPrefix:
		m := &readyMark{}
		if json.Unmarshal(p.Value, m) == nil {
			return m
		}
	}
	return nil
}

// Device returns the device of that name; nil: there is none.
func (b *Books) Device(name string) *Device {
	i, found := b.number(name)
	if !found {
		return nil
	}
	return b.Devices[i]
}

// number returns where a device is in Devices.
func (b *Books) number(name string) (int, bool) {
	return slices.BinarySearchFunc(b.Devices, name, func(d *Device, name string) int { return cmp.Compare(d.Name, name) })
}

// Gang returns the gang with that ticket; nil: there is none.
func (b *Books) Gang(ticket string) *Gang {
	i, found := slices.BinarySearchFunc(b.Gangs, ticket, func(g *Gang, ticket string) int { return cmp.Compare(g.Ticket, ticket) })
	if !found {
		return nil
	}
	return b.Gangs[i]
}

// Hold returns a gang's hold of a device; nil: there is none.
func (b *Books) Hold(device, ticket string) *Hold {
	i, found := slices.BinarySearchFunc(b.Holds, HoldKey(device, ticket), func(h *Hold, key string) int { return cmp.Compare(HoldKey(h.Device, h.Ticket), key) })
	if !found {
		return nil
	}
	return b.Holds[i]
}

// HoldsOf returns the holds of a device's present life, the oldest grant first.
func (b *Books) HoldsOf(d *Device) (all []*Hold) {
	for _, h := range b.Holds {
		if h.Device == d.Name && h.Incarnation == d.Incarnation {
			all = append(all, h)
		}
	}
	slices.SortFunc(all, func(a, b *Hold) int { return cmp.Compare(a.Fence, b.Fence) })
	return all
}

// FreeBytes returns the bytes that a device offers and no hold has; below 0 where the offer was lowered.
func (b *Books) FreeBytes(d *Device) int64 {
	free := d.OfferBytes
	for _, h := range b.Holds {
		if h.Device == d.Name && h.Incarnation == d.Incarnation {
			free -= h.Bytes
		}
	}
	return free
}

// Queue returns the gangs that wait in the order of service.
func (b *Books) Queue() []*Gang {
	queue := slices.DeleteFunc(slices.Clone(b.Gangs), func(g *Gang) bool { return !g.Waits() })
	slices.SortFunc(queue, func(x, y *Gang) int {
		if x.due() != y.due() {
			if x.due() {
				return -1
			}
			return 1
		}
		if !x.due() && x.Priority != y.Priority {
			return cmp.Compare(y.Priority, x.Priority)
		}
		return cmp.Or(cmp.Compare(x.Age, y.Age), cmp.Compare(x.Ticket, y.Ticket))
	})
	return queue
}

// MostBypasses is how often younger gangs may take memory that a waiting gang could use. Not fewer: small gangs fill the gaps
// while a large one waits. Not more: each of them may last as long as a job.
const MostBypasses = 8

// due reports whether no younger gang may pass any more.
func (g *Gang) due() bool { return g.Bypassed >= MostBypasses }
