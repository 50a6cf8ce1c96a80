// Package memory keeps the books of one device's memory: what exists, in what state it is, and what driver calls change it. It
// decides nothing about requests: the package above reports who gets what.
//
// # Words
//
// The arena is the reserved address space of the device, counted in pages of the driver's granularity (2 MiB on an H200). A client
// is a stream. Every page of the arena is in one of four states:
//
//	hole  --job--> busy --Lend, Free--> free or lent
//	free  --Lend--> lent --Free--> free --job--> busy --job--> hole
//
// A hole is address space only. A free page is mapped and no client has it; a lent one belongs to one client. A busy page is part of
// the job in flight. A free run is a maximal sequence of free pages with the same tag: the client that returned it, and that
// client's fence at that time. A run is clean once its fence has passed.
//
// A handle is a physical allocation that is mapped over a run of pages and can only be unmapped whole. Reserved bytes are those of
// all handles that exist, mapped or not.
//
// # Jobs
//
// A Job is a list of driver calls. A plan (PlanFill, PlanShrink, PlanClose) makes its pages busy; Finish enters what was done. A
// job ends at the first operation that fails: what it made, moved or took out goes back to the driver by a rollback
// (Outcome.Undo), and free pages that were part of it are free again, each under the tag that it had. A handle that a rollback
// cannot give back is lost: it counts as reserved, and its pages stay busy where it is mapped.
//
// A window that takes pages under the tags of other clients begins with an Await for each of them, so that the client has the pages
// only after its stream was made to wait; where that fails nothing has changed.
//
// # Sleep
//
// The handles of a client's pages can lose their physical memory while the pages stay lent (PlanSleep), and get new memory at the same
// place (PlanWake): see sleep.go. Sleeping bytes are those of handles without memory; they are not reserved.
//
// # Plain segments
//
// Without address space a segment is a handle that AllocPlain makes at once, FreePlain ends, and nothing moves. It takes page
// numbers with a hole on either side, so that no run reaches over two segments; holes are never filled.
//
// # Invariants (Check)
//
// Every page has one state. Pages that are free or lent are covered by a mapped handle, or, if lent, by one
// that is asleep. The sum of the bytes of all handles is
// reserved. Free runs and runs of holes are maximal and are exactly those in the indexes, but for the holes at the end of the arena.
package memory
