package core

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/go-vram/vram/fleet/ledger"
)

// Place returns the device that will serve a request of so many bytes soonest, and whether it has room for them now; nil where no device
// could ever. The device with the least missing memory comes first, then the one with the fewest requests and gangs that wait for it, then
// the one with the lowest pressure. Among equals each tenant has an order of its own, so that tenants spread and each finds its caches.
func (b *Books) Place(bytes int64, tenant string) (d *Device, now bool) {
	type option struct {
		device            *Device
		missing           int64
		waiting, pressure int
		draw              uint64
	}
	var options []option
	rooms, _ := b.room()
	for i, d := range b.Devices {
		if bytes > d.OfferBytes {
			continue
		}
		free := rooms[i]
		load, known := b.Loads[d.Name]
		if known {
			free = min(free, load.FreeBytes)
		}
		waiting := load.Waiting
		for _, g := range b.Gangs {
			if g.Waits() && g.couldUse(d) {
				waiting++
			}
		}
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(tenant + "/" + d.Name)) // never fails
		options = append(options, option{d, max(0, bytes-free), waiting, load.Pressure, mixed(hash.Sum64())})
	}
	if len(options) == 0 {
		return nil, false
	}
	best := slices.MinFunc(options, func(x, y option) int {
		return cmp.Or(cmp.Compare(x.missing, y.missing), cmp.Compare(x.waiting, y.waiting), cmp.Compare(x.pressure, y.pressure), cmp.Compare(x.draw, y.draw))
	})
	return best.device, best.missing == 0
}

// mixed spreads the differences of short texts over all bits: the finalizer of SplitMix64.
func mixed(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// Announce returns the transaction that makes a device without an owner known, or changes its offer; nil where the books have it. A device
// with an owner is left as it is, also where its record cannot be read.
func (b *Books) Announce(d Device) *ledger.Transaction {
	old := b.Device(d.Name)
	damaged := b.damaged[devicePrefix+d.Name]
	if damaged.Lease != 0 {
		return nil
	}
	d.Owned, d.lease, d.mod = false, 0, damaged.Mod
	if old != nil {
		if old.Owned || old.written == d.OfferBytes && old.Host == d.Host && old.Ordinal == d.Ordinal &&
			old.PageBytes == d.PageBytes && maps.Equal(old.Labels, d.Labels) {
			return nil
		}
		d.mod = old.mod
	}
	return &ledger.Transaction{If: []ledger.Compare{{Key: devicePrefix + d.Name, Mod: d.mod}}, Put: []ledger.Put{d.put()}}
}
