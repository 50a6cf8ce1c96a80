// Package batch plans allocations that are requested together. It is pure: it knows lengths, not memory, and the caller, a
// stream, carries out the plan.
//
// # Words
//
//   - A Plan groups up to Width requests by the length of the block that serves them, so that a group costs one look at a
//     magazine, or one search of the heap and one carve of the range found, instead of one for each request. Within a group
//     requests keep their order, so that adjacent blocks belong to adjacent requests of the caller: blocks that are freed
//     together merge into one range again.
//   - Order puts the longest blocks first. Short blocks fit into the remainders of long ones; the reverse order splits the ranges
//     that long blocks need.
//   - A Packing lists the runs of whole pages that hold the missing blocks, so that one message asks the pool for all of them, and
//     the pool gives all or nothing.
//
// # Cost
//
// Grouping is a hash table of two cache lines on the caller's stack; it allocates nothing. Order is an insertion sort of the
// groups; real batches have few.
//
// # Concurrency
//
// A Plan and a Packing belong to one goroutine at a time.
package batch
