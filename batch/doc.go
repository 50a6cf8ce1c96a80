// Package batch plans allocations that are wanted together. It is pure: it knows lengths, not memory, and
// the caller, a stream, does what the plan says.
//
// # Words
//
//   - A Plan groups up to Width requests by the length of the block that serves them, so that a group
//     costs one look at a magazine, or one search of the heap and one carve of the range found, instead of
//     one for each request. Within a group requests keep their order, so that blocks which are carved
//     side by side belong to requests that the caller named side by side: what is freed together merges
//     into one range again.
//   - Order puts the longest blocks first. What is short fits the rests of what is long; the other way
//     round it splits the ranges that the long ones need.
//   - A Packing says which runs of whole pages hold the blocks that are missing, so that one message asks
//     the pool for all of them, and the pool gives all or nothing.
//
// # Cost
//
// Grouping is a hash table of two cache lines on the caller's stack; it allocates nothing. Order is an
// insertion sort of the groups, of which real batches have few.
//
// # Concurrency
//
// A Plan and a Packing belong to one goroutine at a time.
package batch
