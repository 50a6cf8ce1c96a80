// Package admission decides in which order requests that wait for memory get it, and when no wait can end any more. It
// knows neither pages nor streams: whether memory serves a request the pool's core finds out, and says so.
//
// # Words
//
// A waiter is a request that was refused and goes on waiting. An account is who holds memory and who waits: a stream, or a
// tenant. A waiter is blocked while somebody waits for its answer and does nothing else; an account waits while one of its
// waiters is blocked. An account of several
// callers never waits: see Waiter.Blocked. An account is suspended while it waits for something else that only other accounts bring
// about, of which it may say which. To try a waiter is to search memory for it by every means that the pool has.
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
// A waiter is unready while the quota of its account does not allow it. Changed says that memory came that was not there
// before: whoever was tried is untried again, and a trial that began before the change and fails counts for nothing.
// One waiter is tried at a time.
//
// # The order
//
// Waiters whose account is within its share come before those that borrow; of those the higher priority comes first. Of those
// the older comes first, where their accounts have no shares, and else the one whose account will have the smallest part of its share,
// served in the account's own order. Of the first of either kind the older is next. So shares are rights up to their bytes, and
// weights within and beyond them: accounts that always want more have memory in proportion to their shares. What accounts have SetUsage says,
// before each call that depends on it. Next gives the first that is untried and may be tried:
//
//   - The first of all may always be.
//   - Another one may be tried while everybody before it waits in vain, and passes them if it is served. Let those behind a
//     waiter of n bytes that pass it have n bytes in all, and no more: that is the bound. So a large request lets small
//     ones use what it cannot use yet, and gets all that comes once they have had as much as it wants itself.
//   - Who borrows passes nobody who is within its share.
//   - Unready waiters hold nobody up, and nobody passes them.
//
// Who has much of its share for long would never be first. So let the first waiter of an account be of n bytes, and its share one
// part in k of the shares of all accounts that wait: once other accounts with shares, of its priority and within their shares or not as it
// is, have been served 16 k n bytes since the account's first was served last, it comes before them.
//
// A higher priority that arrives later is before, and passes nobody. So among waiters of one priority nobody starves as long as
// memory comes back; a stream of higher priorities starves the lower ones, and that is what they mean.
//
// # When nothing goes on
//
// Stuck is asked when every waiter that may be tried was tried in vain. An account goes on that neither waits nor is suspended. A
// suspended one will go on, too, if for each thing that it waits for one of those that may bring it about goes on, or will; where
// it has not said which, that is any account that holds memory or waits for some. Accounts that neither hold memory nor want any count only
// where they are named. While any account goes on, or will, that holds memory or was handed some of it, its frees will change things. Otherwise no free will come:
//
//  1. Lift: the bound, and what borrowers must not do, hold nobody back any more, until memory changes. Who then is
//     served ends the standstill.
//  2. Confirm: the pool has every stream give up what was freed before, and waits for every fence. That is exact: a free
//     that a goroutine made before it began to wait is found by then.
//  3. Deadlock: the youngest blocked waiter whose account holds memory is named, or if those are all suspended the youngest
//     blocked one. Where no account holds anything, Hopeless names the first: nothing will ever come back for it.
//
// Each arrival, each change and each waiter that blocks or unblocks begins this anew.
//
// # Bounds
//
// Work per call is linear in the waiters, and n log n where shares put them in another order. Nothing else is kept: a waiter that is gone leaves no trace but in how much passed
// those before it, and before its account.
package admission
