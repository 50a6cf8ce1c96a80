package pool

import (
	"fmt"
	"strings"

	"github.com/go-vram/vram/internal/inventory"
	"github.com/go-vram/vram/internal/units"
)

// shared formats the part of the reserved bytes that is shared with other processes.
func (e *OutOfMemoryError) shared() string {
	if e.SharedBytes == 0 {
		return ""
	}
	return " (" + units.Bytes(e.SharedBytes) + " of it shared)"
}

// limitedBy names the source of the limit.
func (e *OutOfMemoryError) limitedBy() string {
	if e.LimitSource == "" {
		return ""
	}
	return " (" + e.LimitSource + ")"
}

// Report formats, in several lines, the request, the reason for its refusal, the memory of each stream and tenant, the largest
// live buffers, and all remedies.
func (e *OutOfMemoryError) Report() string {
	if e == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "out of memory: requested %s%s, of which %s were not found\n", units.Bytes(e.RequestedBytes), requester(e.Stream, e.Tag, e.Tenant), units.Bytes(e.MissingBytes))
	b.WriteString("why: " + e.why() + "\n")
	fmt.Fprintf(&b, "reserved from the driver: %s%s of a limit of %s%s", units.Bytes(e.ReservedBytes), e.shared(), units.Bytes(e.LimitBytes), e.limitedBy())
	if e.DriverBytes > 0 {
		fmt.Fprintf(&b, "; the driver has %s in all", units.Bytes(e.DriverBytes))
	}
	fmt.Fprintf(&b, "\nfree in the pool: %s, the longest range %s, %s of it in use by unfinished work\n",
		units.Bytes(e.FreeBytes), units.Bytes(e.LargestFreeBytes), units.Bytes(e.PendingBytes))
	b.WriteString("holders of memory:\n")
	e.reportHolders(&b)
	reportTenants(&b, e.Tenants)
	inventory.WriteLargest(&b, e.Largest)
	e.reportProcesses(&b)
	if all := e.Remedies(); len(all) > 0 {
		b.WriteString("what would help, the cheapest first:\n")
		for _, r := range all {
			fmt.Fprintf(&b, "  %v\n", r)
		}
	}
	if e.Cause != nil {
		fmt.Fprintf(&b, "the driver's error: %v\n", e.Cause)
	}
	return b.String()
}

// why returns the reason for the refusal.
func (e *OutOfMemoryError) why() string {
	switch {
	case e.Cause != nil:
		return "the driver has no more memory: other programs, or other allocators of this one, have the rest of the GPU's"
	case e.Waited:
		return "it waited, and nobody is left whose frees could serve it"
	case e.FreeBytes >= e.MissingBytes && e.PendingBytes > 0:
		return "enough is free, but work that has not finished still uses some of it, or it does not lie in one range"
	case e.FreeBytes >= e.MissingBytes:
		return "enough is free, but not in one range"
	default:
		return "too little is free, and the limit leaves too little room to grow"
	}
}

func (e *OutOfMemoryError) reportHolders(b *strings.Builder) {
	for _, h := range e.Streams {
		switch {
		case h.HeldBytes == 0 && h.UnpassedBytes == 0:
		case h.Reservation:
			fmt.Fprintf(b, "  %10s  a reservation\n", units.Bytes(h.HeldBytes))
		default:
			fmt.Fprintf(b, "  %10s  stream %d: live or in its magazines %s, free in it %s", units.Bytes(h.HeldBytes), h.Stream,
				units.Bytes(h.LiveBytes), units.Bytes(max(0, h.HeldBytes-h.LiveBytes)))
			for _, part := range []struct {
				bytes int64
				text  string
			}{
				{h.UncoveredBytes, "kept until its callers' next request or Trim"},
				{h.UnpassedBytes, "returned, in use by unfinished work"},
			} {
				if part.bytes > 0 {
					fmt.Fprintf(b, "; %s %s", units.Bytes(part.bytes), part.text)
				}
			}
			b.WriteByte('\n')
		}
	}
}

// reportTenants writes a line for each tenant, the largest first.
func reportTenants(b *strings.Builder, tenants []Holder) {
	if len(tenants) == 0 {
		return
	}
	sorted := append([]Holder(nil), tenants...)
	byBytes(sorted)
	b.WriteString("of that, in buffers of tenants:\n")
	for _, t := range sorted {
		fmt.Fprintf(b, "  %10s  tenant %q\n", units.Bytes(t.HeldBytes), t.Tenant)
	}
}

// Report formats, in several lines, the refused request, all holders of memory with their waits, the queue, and the largest
// live buffers.
func (e *DeadlockError) Report() string {
	if e == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "deadlock: the wait for %s was refused, since no holder of memory can proceed\n", units.Bytes(e.RequestedBytes))
	writeLines(&b, "who holds memory, of a limit of "+units.Bytes(e.LimitBytes), e.Holders)
	writeLines(&b, "who waits, in the order in which they would be served", e.Waiters)
	inventory.WriteLargest(&b, e.Largest)
	if q := e.Quota; q != nil {
		b.WriteString("it waited for its quota, and not for memory: " + q.figures() + "\nwhat would help: " + q.remedies() + "\n")
		return b.String()
	}
	b.WriteString("what would help: free what this goroutine holds and begin its step again, so that the others finish; or a higher LimitBytes\n")
	return b.String()
}

// Report formats, in several lines, the request, the one directly ahead of it, the holders of memory, and the largest live
// buffers.
func (e *WaitError) Report() string {
	if e == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "waited %s for %s%s: %v\n", units.Duration(e.Waited), units.Bytes(e.RequestedBytes), requester(e.Stream, e.Tag, e.Tenant), e.Err)
	switch {
	case e.Ahead != nil:
		fmt.Fprintf(&b, "its place in the queue was %d, directly after this request: %v\n", e.Position, e.Ahead)
	case e.Position == 1:
		b.WriteString("it was the first in the queue\n")
	}
	if e.Pending {
		b.WriteString("the request stays pending: Await waits for it again, and Cancel ends it\n")
	}
	if q := e.Quota; q != nil {
		b.WriteString("it waited for its quota, and not for memory: " + q.figures() + "\n")
		inventory.WriteLargest(&b, e.Largest)
		b.WriteString("what would help: " + q.remedies() + "; or a later deadline\n")
		return b.String()
	}
	writeLines(&b, "who holds memory", e.Holders)
	reportTenants(&b, e.Tenants)
	inventory.WriteLargest(&b, e.Largest)
	b.WriteString("what would help: frees by the streams above, a later deadline, a higher Priority, or a higher LimitBytes\n")
	return b.String()
}

// Report formats, in several lines, the request, the figures of the tenant, and the remedies.
func (e *QuotaError) Report() string {
	if e == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "over the quota of tenant %q: requested %s of a limit of %s\n", e.Tenant, units.Bytes(e.RequestedBytes), units.Bytes(e.Quota.LimitBytes))
	fmt.Fprintf(&b, "charged: %s, of that %s in buffers, and %s in its requests that wait\n", units.Bytes(e.ChargedBytes), units.Bytes(e.HeldBytes),
		units.Bytes(max(0, e.ChargedBytes-e.HeldBytes)))
	if e.Queued > 0 {
		fmt.Fprintf(&b, "before it in the queue for the quota: %s\n", units.Count(e.Queued, "request"))
	}
	if e.RequestedBytes <= e.Quota.LimitBytes {
		fmt.Fprintf(&b, "what would help: Request.Wait, for frees of the %s in buffers; or a Quota.LimitBytes of at least %s\n",
			units.Bytes(e.HeldBytes), units.AtLeast(e.ChargedBytes+e.RequestedBytes))
	} else {
		fmt.Fprintf(&b, "what would help: only a Quota.LimitBytes of at least %s\n", units.AtLeast(e.RequestedBytes))
	}
	b.WriteString("Device.LiveBuffers lists the tenant's buffers\n")
	return b.String()
}

// writeLines writes a title and a line for each.
func writeLines[T fmt.Stringer](b *strings.Builder, title string, all []T) {
	if len(all) == 0 {
		return
	}
	b.WriteString(title + ":\n")
	for _, x := range all {
		b.WriteString("  " + x.String() + "\n")
	}
}
