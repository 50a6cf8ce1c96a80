// Package fence marks points in the order of a stream and says whether the device has got there.
//
// A fence is taken after the blocks that it covers were taken out of use, never before. Same-stream
// reuse needs none. Events take marks; a Timeline numbers them for those who share fences.
//
// A record of an event costs 190 ns on an H200, a query 200 ns, and events are kept for the next
// fence, so that creating them is paid once. A word of page-locked memory that the stream writes would be looked at for
// 0.3 ns, but the write costs 1.7 µs, which pays only for a mark that is looked at eight times
// (docs/decisions/005-fences.md).
package fence
