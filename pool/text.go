package pool

import (
	"fmt"

	"github.com/go-vram/vram/internal/units"
)

// String has the bounds that are set.
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

// String has the tenant's memory and its quota.
func (s TenantStats) String() string {
	text := fmt.Sprintf("tenant %q: holds %s", s.Name, units.Bytes(s.HeldBytes))
	if s.ChargedBytes != s.HeldBytes {
		text += fmt.Sprintf(", charged %s", units.Bytes(s.ChargedBytes))
	}
	if s.Queued > 0 {
		text += fmt.Sprintf(", %d queued", s.Queued)
	}
	return text + ", " + s.Quota.String()
}

// String has the tenant's figures.
func (t *Tenant) String() string {
	if !t.made() {
		return "no tenant"
	}
	return t.Stats().String()
}

// String has the reservation's size.
func (r *Reservation) String() string {
	switch {
	case !r.made():
		return "no reservation"
	case r.released.Load():
		return fmt.Sprintf("reservation of %s, released", units.Bytes(r.bytes))
	default:
		return "reservation of " + units.Bytes(r.bytes)
	}
}

// String counts the waiting requests and those that have waited.
func (s WaitStats) String() string {
	text := fmt.Sprintf("%d waiting for %s; %s in all", s.Waiting, units.Bytes(s.DemandBytes), units.Count(s.Count, "wait"))
	if s.Longest > 0 {
		text += fmt.Sprintf(", the longest that has ended took %v", s.Longest)
	}
	return text + ", " + units.Count(s.Deadlocks, "deadlock")
}
