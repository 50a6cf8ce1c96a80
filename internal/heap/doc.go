// Package heap keeps the free and used ranges of one owner and finds a range of a wanted length: about best
// fit, split, coalesce, each in a number of steps that does not depend on the number of ranges, except for
// one search described below.
//
// # Words
//
// A unit is 512 bytes, the allocator's rounding step; offsets and lengths are in units from the start of the
// device's arena. A page is the unit of exchange between pool and stream. A run is a sequence of contiguous
// whole pages that the heap was granted. Blocks, each free or used, tile it without gaps between two edges of
// no length, which stop coalescing. Adjoining runs are one run.
//
// # Structure
//
// Blocks are nodes in one pointer-free array, linked by index in address order. Free blocks are also linked
// into Bins by length: 16 bins for each doubling, a bitmap over the bins and a word over the bitmap (the
// two-level scheme of TLSF, Masmano et al., ECRTS 2004). A search visits up to eight blocks of the bin of the
// wanted length, and then up to four of the next bin that is not empty, where every block fits. Only without
// such a bin, so that the longest free block exceeds the wanted length by at most 6 %, it visits the rest of
// the first; later searches skip a bin that was searched without success (Bins.Fit). Binning by the top five
// bits, the first always set, was measured to be as good as exact best fit on real traces.
//
// The package is not safe for concurrent use. It reads no clock and uses no driver.
package heap
