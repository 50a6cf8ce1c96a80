// Package advice says how to configure vram for a recorded trace, from replays on the simulated device: which footprint mode,
// which buffers to map ahead, which limit, which bounds of caches, waits on the device, a shorter ReleaseAfter, batches.
//
// # Words
//
// A Trial is a replay with one configuration, four rounds on one device: the first is cold, in the last the allocator has
// settled. Driver time is modelled after calls that were measured on an H200; it and the bytes are the same on every machine,
// within a handle. A Race is two ways to call the allocator, one round of each in turn, in real time. A quiet stretch is the
// part of a recording in which at most half of the peak lives.
//
// # Gains and prices
//
// Each Recommendation compares the trial with the change to the one without, and has the gains and the costs, as shares of the
// peak and of the recording's time. It recommends a change whose gain exceeds its cost by a percent: a percent of the time
// counts as ten of the memory, and a first round as one of a hundred. A warm-up need only make the first round shorter by a
// percent of the recording, and cost nothing after it. Real time counts as gained where a way is faster by a tenth in the
// median and in its best round, and faster in all but one of the rounds.
//
// # One configuration
//
// Each change is tried on top of the accepted ones. The whole is then tried without each of them, and one that is not worth
// its price there is dropped; Report.Together is the trial of the rest. A limit must also hold with a goroutine for each
// stream. Waits are tried with kernels before the frees, ReleaseAfter and PoolCacheBytes in a quiet stretch that is played
// slowly: Together shows them in other figures than the row has.
//
// # Concurrency properties
//
// Of blocks until its replays are done, or its context ends. It starts nothing that outlives it.
package advice
