package pool

import (
	"strconv"

	"github.com/go-vram/vram/internal/units"
)

// String formats the bounds that are set.
func (q Quota) String() string {
	text := "no limit"
	if q.LimitBytes > 0 {
		text = "limit " + units.Bytes(q.LimitBytes)
	}
	if q.ShareBytes > 0 {
		text += ", share " + units.Bytes(q.ShareBytes)
	}
	if q.Exclusive {
		text += ", exclusive"
	}
	return text
}

// String formats the tenant's memory and its quota.
func (s TenantStats) String() string {
	text := "tenant " + strconv.Quote(s.Name) + ": holds " + units.Bytes(s.HeldBytes)
	if s.ChargedBytes != s.HeldBytes {
		text += ", charged " + units.Bytes(s.ChargedBytes)
	}
	if s.Queued > 0 {
		text += ", " + strconv.Itoa(s.Queued) + " queued"
	}
	return text + ", " + s.Quota.String()
}

// String formats the tenant's figures.
func (t *Tenant) String() string {
	if !t.made() {
		return "no tenant"
	}
	return TenantStats{ // as Stats, without the counts
		Name: t.name, Quota: *t.quota.Load(), HeldBytes: t.held.Load(), ChargedBytes: t.charged.Load(), Queued: int(t.queued.Load()),
	}.String()
}

// String formats the reservation's size.
func (r *Reservation) String() string {
	switch {
	case !r.made():
		return "no reservation"
	case r.released.Load():
		return "reservation of " + units.Bytes(r.bytes) + ", released"
	default:
		return "reservation of " + units.Bytes(r.bytes)
	}
}

// String counts the waiting requests and those that have waited.
func (s WaitStats) String() string {
	text := strconv.Itoa(s.Waiting) + " waiting for " + units.Bytes(s.DemandBytes) + "; " + units.Count(s.Count, "wait") + " in all"
	if s.Longest > 0 {
		text += ", the longest that has ended took " + s.Longest.String()
	}
	return text + ", " + units.Count(s.Deadlocks, "deadlock")
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (t *Tenant) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// MarshalText implements encoding.TextMarshaler: the text of String.
func (r *Reservation) MarshalText() ([]byte, error) { return []byte(r.String()), nil }
