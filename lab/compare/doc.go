// Package compare plays a trace with two configurations, in turns, and puts their figures side by side.
//
// # Words
//
// A Setup is a configuration as the command line has it, "footprint=lean,limit=8GB". A side is a setup with the figures of its
// replays. A repetition is a replay of each side, the first setup first: ABAB, so that a machine that is slow for a while is
// slow for both.
//
// # Figures
//
// Times are real; a time is the median over the repetitions, with the least and the most. Driver calls and their time, bytes
// and hits are from the last repetition, peaks from all. Ratios are the second side's figure over the first one's.
//
// Two sides whose figures are all the same but for the real times are identical: their settings had no effect. Some settings
// need more than the trace: waits need kernels (Options.Lag), a release and a bound of the pool's cache need pauses
// (Options.Rest).
//
// # Concurrency properties
//
// Run blocks until its replays are done, or its context ends.
package compare
