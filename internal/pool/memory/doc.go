// Package memory keeps the books of one device's memory: which pages and handles exist, their states, and the driver calls that
// change them. It makes no decisions about requests: package core does.
//
// # Words
//
// The arena is the reserved address space of the device, counted in pages of the driver's granularity (2 MiB on an H200). A
// client is a stream. Every page of the arena is in one of four states:
//
//	hole  --job--> busy --Lend, Free--> free or lent
//	free  --Lend--> lent --Free--> free --job--> busy --job--> hole
//
// A hole is address space only. A free page is mapped and no client has it; a lent one belongs to one client. A busy page is
// part of the job in flight. A free run is a maximal sequence of free pages with the same tag: the client that returned it, and
// that client's fence at that time. A run is clean once its fence has passed.
//
// A handle is a physical allocation that is mapped over a run of pages and can only be unmapped whole. Reserved bytes are the
// bytes of all handles that exist, mapped or not.
//
// # Jobs
//
// A Job is a list of driver calls. A plan (PlanFill, PlanShrink, PlanClose) makes its pages busy; Finish enters the result. A
// job ends at the first operation that fails: a rollback (Outcome.Undo) gives the handles that it made, moved or unmapped back
// to the driver, and its free pages are free again, each under its old tag. A handle that a rollback cannot give back is lost:
// it counts as reserved, and its pages stay busy while it is mapped.
//
// A window that takes pages under the tags of other clients begins with an Await for each of them, so that the client gets the
// pages only after its stream was made to wait. If that fails nothing has changed.
//
// # Sleep
//
// PlanSleep releases the physical memory of a client's handles while their pages stay lent. PlanWake makes new memory at the
// same addresses: see sleep.go. Sleeping bytes are the bytes of handles without memory; they are not reserved.
//
// # Plain segments
//
// Without address space a segment is a handle that AllocPlain makes and FreePlain frees; it never moves. It takes page numbers
// with a hole on either side, so that no run spans two segments; holes are never filled.
//
// # Invariants (Check)
//
// Every page has one state. Free and lent pages are covered by a mapped handle, or, if lent, by one that sleeps. Holes and busy
// pages are no client's. Reserved bytes are the sum over all handles. Free runs and runs of holes are maximal and are exactly the
// entries of the indexes, except for the holes at the end of the arena.
package memory
