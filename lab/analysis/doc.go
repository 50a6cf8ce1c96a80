// Package analysis describes a recorded trace: which sizes it asks for, how long they live, whether its steps repeat, whether
// it grows, how its streams work, and which buffers make its peak. It plays nothing: replays are lab/advice's.
//
// # Words
//
// Bytes are requested bytes, before any rounding. A lifetime is counted in events of the trace, from the allocation to the
// free. A buffer that is freed within shortEvents is short-lived; one that lives no longer than a step (without steps: than a
// tenth of the trace) belongs to its step; one that lives longer is long-lived; one that is never freed is held. Churn is the
// sum of all allocated bytes, over the peak live bytes. A run is a number of successive allocations, or of successive frees,
// on one stream. The floor of a part of the trace is its least live bytes.
//
// # Steps
//
// Training loops repeat, though not to the byte: one allocation more or less shifts all that follows. So steps are found by
// anchors, short sequences of sizes that occur at nearly equal distances over at least half of the trace. The distance for
// which most anchors speak is the length of a step, and the anchor that occurs most often marks where steps begin. How much of
// a step comes again is the share of its allocations whose size and stream the next step has, too.
//
// # Growth
//
// A trace grows where the floor rises from step to step (without steps: from tenth to tenth) in the whole second half, and in
// most of the first: a leak, or a cache without a bound. Weights that are loaded at the start raise the floor of the first
// parts only.
//
// # Concurrency properties
//
// Of is a pure function of a trace, which it only reads.
package analysis
