// Package core decides for a fleet: which waiting gang gets memory on which devices, and which holds a device's owner grants. It performs
// nothing: a snapshot of the ledger and the time go in, a transaction and actions come out. It has no goroutine, clock or context, so
// that a simulation can reach every state. Package fleet has the words.
//
// # The keys
//
//	device/NAME        Device: its offer and labels; bound to its owner's lease, or to none where it has no owner
//	gang/TICKET        Gang: a request, and where it was granted; bound to the requester's lease
//	hold/NAME/TICKET   Hold: bytes of a device for a gang; bound to the requester's lease. Its Mod is the fence
//	load/NAME          Load: figures of a device, for placement alone; bound to its owner's lease
//	ready/NAME/TICKET  the fence of a hold that the owner has made a reservation for; bound to the owner's lease
//
// # How a gang is granted
//
// Books.Plan is a pure function of the books and a gang. Each requester plans for its own gang, and commits the grant in one
// transaction: the holds, the gang, and one more bypass for each gang that is passed. It compares the devices and all gangs, and so
// their holds, with those that were planned from: the grant is made on these books, or not at all.
//
// The owner of each device sees the hold, reserves the memory and writes ready. When all are ready the grant is complete. An owner that
// cannot reserve deletes the hold and lowers its offer in one transaction; the requester then withdraws the other holds, and the gang
// waits again at its old age.
//
// Everything is decided from the newest snapshot alone: a requester or an owner remembers only its answer and its holds,
// so a message that is lost, late or doubled does no harm. Snapshots older than the newest that was seen are ignored.
//
// # The order of gangs
//
// Gangs that were passed MostBypasses times come first, the oldest before the others. Then priority decides, then age, which is the
// revision that made the gang's key. A gang that fits now, in this order, has its devices set aside while later ones plan. One that does
// not fit may be passed, and its count rises if the later one takes memory of a device that it could use; the devices that a gang with
// MostBypasses could use are closed to all later ones. So a gang is passed at most MostBypasses times.
package core
