// Package advice says how to configure vram for a recorded trace, from replays on the simulated device: which footprint mode, which buffers to map
// ahead, which limit is enough, whether a bound for the streams' caches, lanes or batches would help.
//
// # Words
//
// A Trial is a replay with one configuration, four rounds on one device: the first is cold, in the last the allocator has settled.
// Driver time is modelled after calls that were measured on an H200; it and the bytes are the same on every machine, within a handle. A Race
// is two ways to call the allocator, one round of each in turn, in real time.
//
// # Gains
//
// Nothing is recommended by reasoning alone: each Recommendation compares the trial with the change to the one without, and where
// the figures do not show a gain it says to leave things as they are, with the same figures. Real time counts as gained where a way is
// faster by a tenth in the median and in its best round, and faster in all but one of the rounds.
//
// # Concurrency properties
//
// Of blocks until its replays are done, or its context ends. It starts nothing that outlives it.
package advice
