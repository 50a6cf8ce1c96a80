// Package heap keeps the free and used ranges of one owner and finds a range of a wanted length: about best
// fit, split, coalesce, each in a bounded number of steps however many ranges there are, but for one
// search that is named below.
//
// # Words
//
// A unit is 512 bytes, the allocator's rounding step; offsets and lengths are counted in units from
// the start of the device's arena. A page is the step in which pool and stream exchange memory. A run
// is a sequence of whole pages side by side that the heap was granted; it is tiled without gaps by
// blocks, each free or used, between two edges of no length that stop coalescing. Runs that touch are
// one run.
//
// # Structure
//
// Blocks are nodes in one pointer-free array, linked by index in address order. Free blocks are also
// linked into Bins by length: 16 bins for each doubling, a bitmap over the bins and a word over the
// bitmap (the two-level scheme of TLSF, Masmano et al., ECRTS 2004). A search looks at up to eight
// blocks of the bin that the wanted length falls into, and then at up to four of the next bin that is
// not empty, where every block fits. Only where that bin does not exist, so that the longest free block
// is at most 6 % longer than what is wanted, if at all, it looks at the rest of the first; a bin that was
// searched without success is known to the searches that follow (Bins.Fit). Binning by the top five bits, the first always set,
// was measured to be as good as exact best fit on real traces.
//
// Nothing here is safe for use by several goroutines at once, reads a clock or knows what a driver is.
package heap
