// Package fleet reserves GPU memory across processes and machines: on several devices at once, all or nothing, in a fair order.
//
// # Words
//
// A fleet is the processes that share a ledger (package ledger). A member is a process that has made devices known with Join; it owns
// them. A gang is a request for memory on one or more devices; its ticket is its name. A hold is bytes of a device that the ledger has
// granted to a gang, and its fence the number of that grant: fences rise. A grant is complete when every owner has made its hold a
// vram.Reservation, which requests of its process draw down. A lease is the life of a holder in the ledger: members and gangs have one
// each, and all that they have put into the ledger ends with it.
//
// # States of a gang
//
//  1. It waits: the ledger has its request, and its age.
//  2. It is granted: the ledger has its holds, and the owners reserve.
//  3. It is complete: Reserve returns the Grant.
//  4. It ends: by Grant.Release, by the end of Reserve's context, or by the end of its lease. The owners release the memory that was not drawn.
//
// From 2 it returns to 1, at its old age, where a device is gone, refuses, or does not answer for five seconds. From 3 a lost device
// closes Grant.Done.
//
// # Promises
//
//   - The holds of a device never exceed its offer, at the moment of each grant; and a device reserves no more than it has.
//   - A gang gets all of its wants or none; it holds nothing while it waits.
//   - Each Reserve has one result: a Grant, or an error after which nothing is held.
//   - Gangs are served by priority, then by age. Younger ones take memory that a waiting gang could use at most eight times
//     (core.MostBypasses), of the sixty oldest that wait; then it comes first.
//   - The device decides: its owner reserves only for holds of the newest ledger that it has seen, with a fence above all before, and
//     Member.Claim asks the ledger again. A holder that was paused or doubled gets nothing from an old grant.
//   - When a process dies, by kill -9 too, all that it held comes back within the time below.
//
// # Stated times
//
// With the ledger of one host (package directory): a lease ends with its process, others notice within 0.2 seconds, and the memory is
// granted again within one second where an owner has to release it. With the ledger of many machines (package etcd): within LeaseTime and
// two seconds, and twice as much where the cluster elects a leader in that time.
//
// # Not promised
//
//   - Memory that requests have drawn stays with their buffers until these are freed: no process can free another's. The device
//     offers it again then: within 50 milliseconds if that is less than ten seconds after the gang's end, else within a second.
//   - Nothing is preempted: a gang of high priority waits for the memory that others hold.
//   - A stopped process (SIGSTOP) lives: on one host it keeps its memory, and its turn. It stops nobody who wants other devices, and
//     never the ledger.
//   - A device without an owner (Plain) is counted, and enforced by the limit that its user obeys.
//
// # Sizes
//
// An owner reads the keys of its device alone, and a granted gang its own. So the messages of a gang, and of a member that joins or leaves, do
// not rise with the members: a gang of N devices takes 2N+3 transactions from its request to its end, and about 4N reads. Three things rise:
//
//   - A gang that waits reads all devices, gangs and holds, and plans, after each change of these: with 10,000 devices 0.9 MB and 20 ms of its
//     processor. So G gangs that are requested at once take up to the square of G such reads, and as many transactions that come too late:
//     with 10,000 devices 32 gangs are granted after 590 reads, with 247 MB and 5 s of processors together.
//   - The ledger sends each change to each member: with 1,000 members 10,000 messages for a gang of four.
//   - Each owner looks at its keys once a second: 10,000 reads a second for as many devices, and four renewals of each lease in its life.
//
// By simulation of package core a fleet of 10,000 devices of 1,000 members works, for some gangs a second. It ends at the transactions and
// reads that a second of the ledger serves, and where tens of gangs wait whose devices change all the time. A gang has at most 64 wants
// (core.MostWants), since all of it is one transaction.
//
// # Failures
//
// Processes stop, crash and come back at any moment. Messages to the ledger are lost, late, doubled and overtake each other. Clocks differ:
// no decision compares times of two processes. The ledger itself keeps its promises (package ledger); while it cannot be reached nothing is
// granted, and grants stay as long as their leases. Package core has the protocol as a pure core, and a simulation of all this.
package fleet
