// Package admission orders the requests that wait for memory, and detects when no wait can end any more. It knows neither pages
// nor streams: the pool's core finds out whether memory serves a request, and reports it.
//
// # Words
//
// A waiter is a request that was refused and waits. An account holds memory or waits for some: it is a stream or a tenant. A
// waiter is blocked while a caller waits for its answer and does nothing else; an account waits while one of its waiters is
// blocked. An account of several callers never waits: see Waiter.Blocked. An account is suspended while it waits for something
// else that only other accounts bring about; it may name those. To try a waiter is to search memory for it by every means that
// the pool has.
//
// # States of a waiter
//
//	unready --Ready--> untried --Next--> trying --Served--> gone
//	                      ^                 |
//	                      '--Changed--    Failed
//	                      |          \      |
//	                      '------------ tried
//	any --Remove--> gone
//
// A waiter is unready while the quota of its account does not allow it. Changed reports new memory: tried waiters are untried
// again, and a trial that began before the change and fails does not count. One waiter is tried at a time.
//
// # The order
//
// Waiters whose account is within its share come before waiters that borrow. Among equals the higher priority comes first,
// then, without shares, the older waiter. With shares the next is the waiter whose account will have the smallest part of its
// share, in the account's own order. Of the first waiter with a share and the first without, the older is next. So shares are
// rights up to their bytes, and weights within and beyond them: accounts that always want more have memory in proportion to
// their shares. The caller sets the usage of accounts by SetUsage before each call that depends on it. Next returns the first
// untried waiter that may be tried:
//
//   - The first of all may always be tried.
//   - Another may be tried while every waiter before it has failed, and passes them if it is served. The later waiters that pass a
//     waiter of n bytes get n bytes in all, and no more: that is the bound. So a large request lets small ones use memory that it
//     cannot use yet, and gets all new memory once they have had as much as it wants itself.
//   - A waiter that borrows passes none within its share.
//   - Unready waiters hold up no other, and none passes them.
//
// A share that has room for few requests, or for none, cannot be met at one moment. So an account also has a credit: of each byte that is served
// to accounts with shares, an account that waits earns its proportion of the shares of all that wait, and pays the part that it has of their
// memory. If its credit covers the bytes that its first waiter adds to its part, that waiter is within its share and comes before the others. So
// memory for one request goes to each account in proportion to its share. Moments are counted in bytes served, not in time: where memory has
// room for one request, an account whose requests last longer has more of the time. The credit is bounded by the share and one request, and
// is 0 when the account waits for nothing.
//
// An account that has had much of its share for long would never be first. So let its first waiter be of n bytes, and its share
// one part in k of the shares of all accounts that wait. Once other accounts with shares, of the same priority, borrowing or
// not as it does, have been served 16 k n bytes since its first waiter was served last, it comes before them.
//
// A later waiter of higher priority comes before earlier ones, and passes none of them. So among waiters of one priority none
// starves while memory comes back; a stream of higher priorities starves lower ones, by design.
//
// # Standstill
//
// Call Stuck when every waiter that may be tried has failed. An account is runnable if it neither waits nor is suspended. A
// suspended account will be runnable if for each thing that it waits for, an account that may bring it about is or will be
// runnable; if it has named none, any account that holds memory or waits for some may. Accounts that neither hold memory nor
// want any count only where they are named; so do accounts that are gone, which are runnable. While an account that holds
// memory, or was handed some of it, is or will be runnable, its frees will change things. Otherwise no free will come:
//
//  1. Lift: the bound and the rule for borrowers hold up no waiter until memory changes. A waiter that is served then ends the
//     standstill.
//  2. Confirm: the pool collects all freed memory from every stream, and waits for every fence. That is exact: it finds every free
//     that a goroutine made before it began to wait.
//  3. Deadlock: Stuck names the youngest blocked waiter whose account holds memory, or, if all of those are suspended, the
//     youngest blocked one. If no account holds memory, Hopeless names the first waiter: nothing will ever come back for it.
//
// Each arrival, each change and each waiter that blocks or unblocks restarts these steps.
//
// # Bounds
//
// Work per call is linear in the waiters, and n log n where shares change their order. A waiter that has left leaves nothing
// but the bytes that count as having passed the waiters before it, and its account.
package admission
