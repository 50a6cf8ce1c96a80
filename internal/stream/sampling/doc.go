// Package sampling counts sampled allocations by the place that made them.
//
// # Words
//
// An allocation is sampled with a probability that is proportional to the length of its block, up to 1
// (magazine.Share). Its weight is the inverse of that probability: the number of similar allocations that it
// represents. A Site is a call stack with its labels: the stream, the tag and the tenant. A place is the
// shown calls of a stack (site.Stack.Frames): stacks that differ only in the allocator's own calls are
// several sites, and one Record. A Register has the sites of a device and their totals, as counted and
// multiplied by the weights: the latter are unbiased estimates of the totals of all allocations. A Sample is
// a sampled allocation until its free.
//
// # States of a sample
//
//	counted as allocated --End--> counted as freed, too
//
// The free subtracts exactly as much as the allocation added: a site whose buffers are all freed has 0 bytes
// in use, for any weights.
//
// # Bounds
//
// A register has SiteLimit sites. To make room for another place, it retires the sites whose samples were all
// freed: their counts go to one site for each call stack, without labels. So the number of former streams,
// tags and tenants is unbounded. If all sites have live samples, and for stacks beyond half of the limit,
// samples are counted together, by a site without labels and stack.
//
// # Concurrency properties
//
// All methods may be called from any goroutine. Add and End take no lock and do not wait: a site is entered
// by one compare-and-swap, and its totals are atomic words. One goroutine at a time retires sites; others
// without room then count together. Read looks up the names of all calls, some microseconds for each site. It
// reads the sites at different moments, and never less allocated than freed.
package sampling
