// Package futures provides values that may arrive later.
//
// It is for a producer, such as an actor, that answers most requests at once and some later. An
// immediate answer costs nothing beyond the value. Any number of goroutines can wait for a later
// answer, and chain, gather and cancel answers, without a lock.
//
// # Words
//
//   - A Future is the asking side: a value that is there, or a reference to a promise. It is copied
//     freely; all copies name one answer.
//   - A Promise is the producing side. It is completed once.
//   - To complete is to give the answer, a value or an error. The first completion wins.
//   - To cancel is to complete from the asking side, with an error, because the answer is not
//     wanted any more.
//   - A Host takes the place of the Go scheduler for a promise and the futures made from it: waits
//     and callbacks are its own.
//   - A producer that loses keeps its value: Complete returns false.
//
// # States of a promise
//
//	pending --claim--> claimed --publish--> complete
//
// Claim is one compare-and-swap, and the only place where completions compete: Complete, Cancel and
// a callback that is about to run all go through it. Publish writes value and error, seals the
// stack of observers and the gate at which waiters park, and notifies both. A claimed promise is
// published a few instructions later, or when the callback that claimed it returns. A promise never
// goes back and is never reused: an old Future stays valid forever.
//
// # Lifecycle of a request that cannot be answered at once
//
//  1. The producer makes a promise, or embeds one in its request, and hands out its Future.
//  2. The asking side waits (Await, Done), chains (Then) or gathers (All, First).
//  3. Either the producer completes, and the value is delivered; or the asking side cancels, the
//     promise is complete with that error, and the function given to OnCancel is called.
//  4. To a producer that comes too late Complete returns false, and it keeps the value.
//
// # Concurrency properties
//
//  1. One winner: of all completions of a promise exactly one returns true, and all holders see its
//     answer.
//  2. No wake-up is lost: a wait that begins before, during or after the completion ends.
//  3. Nothing is lost: at every moment of a cancellation a value is either delivered or still the
//     producer's.
//  4. The end of a wait's context ends that wait only; the request and other waiters stay.
//  5. Functions of the caller never run on the goroutine that completes: they run where they were
//     handed over when the answer is there already, else on a goroutine of their own.
//  6. A callback that has begun is delivered: from then on its future cannot be canceled.
//  7. A function that panics, or ends its goroutine, completes its future with a *PanicError.
//
// Not promised: an order among waiters, or among the callbacks of one promise.
//
// # Cost
//
// A Future that is complete from the start allocates nothing and is one word longer than its value;
// up to three words of value it travels in registers. That is why an error lives in the promise and
// not in the Future.
//
// On a two-core Xeon, medians of three runs (go test -bench . ./futures), where a compare-and-swap
// and an OR take 25 ns; a pending source counts with its promise, its completion and the wait for
// the result:
//
//	                                                     ns      heap allocations
//	Done and Await                                       3.3     0
//	promise, Complete, Await                             75      1
//	promise, Cancel                                      70      1
//	request and answer by another goroutine              507     1  (by a bare channel 689, 1)
//	Then, source complete                                9.7     0
//	Then, source pending: a goroutine runs the function  604     3
//	All of 2 complete, of 64                             40, 894 1
//	All of 64 pending                                    10042   68
//	First of complete ones                               6       0
//	First of 64 pending                                  9229    67
//
// From Complete until the waiter runs, median in ns, compared with a bare channel in the same run, by how
// long it had waited:
//
//	waited    Await   channel
//	5 µs      205     277
//	20 µs     213     1681  (up to 3787 and 12936 while others used the machine)
//	100 µs    14190   13490
//
// Await probes, yielding, for as long as a wake-up takes, and then parks. An idle processor goes to
// sleep some microseconds later, and to wake it is a system call of the scheduler's, for any kind
// of wait. Probing for 200 µs instead would make the last line 262 ns and burn a processor while a
// driver is at work. A completer that stays busy afterwards keeps a waiter on its own processor
// waiting, unless another one is awake: all completers of this module park.
package futures
