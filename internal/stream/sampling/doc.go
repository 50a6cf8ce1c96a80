// Package sampling counts sampled allocations by the place that made them.
//
// # Words
//
// An allocation is sampled with a probability that is proportional to the length of its block, up to
// 1 (magazine.Share). Its weight is the inverse of that probability: for how many allocations alike
// it stands. A Site is a call stack with its labels: the stream, the tag and the tenant. A place is the calls of a stack that
// are shown (site.Stack.Frames): stacks that differ in the allocator's own calls alone are several sites, and one Record. A
// Register has the sites of a device and their totals, as they were counted and multiplied by the
// weights: the latter are estimates without bias of the totals of all allocations. A Sample is a
// sampled allocation until its free.
//
// # States of a sample
//
//	counted as allocated --End--> counted as freed, too
//
// What the free takes away is what the allocation has added: a site whose buffers are all freed has
// 0 bytes in use, whatever the weights were.
//
// # Bounds
//
// A register has SiteLimit sites. When a further place comes, the sites whose samples were all freed are retired: what they have
// counted goes to one site for each call stack, without labels. So the number of streams, tags and tenants that came and went has no
// bound. Where all sites have live samples, and for stacks beyond half of the limit, samples are counted together, by a site without
// labels and stack.
//
// # Concurrency properties
//
// All methods may be called from any goroutine. Add and End take no lock and do not wait: a site is
// entered by one compare-and-swap, and its totals are atomic words. One goroutine at a time retires sites; others that find no room
// then count together. Read looks up the names of all calls,
// some microseconds for each site; it is of one moment for each site only in so far as no more is freed
// than allocated.
package sampling
