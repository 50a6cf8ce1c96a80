// Package snapshot writes memory snapshots in the format of PyTorch's torch.cuda.memory._snapshot, for the viewer at
// pytorch.org/memory_viz and the functions of torch/cuda/_memory_viz.py.
//
// # Words
//
// A Segment is a range of device addresses that is held from the driver, a Block a part of one with one state. A Trace is the
// history of a device: Events in the order in which they happened, the newest last. A Stack is a place in the program, the
// innermost Frame first. Requested bytes are the bytes of the program's request; a block may have more.
//
// # Consistency
//
// The blocks of a segment are adjacent and cover it. The segments of a snapshot are the state after the last event, so that
// the viewer can take the events back one by one: the last event of a live block is its allocation, a free that was requested
// and has not completed has a pending block, mapped memory is a segment. A viewer that finds a contradiction stops with an
// error. A history may begin late: a block may have been allocated before it.
//
// Check finds contradictions. Events and segments that were read at different moments from a running program rarely fit to the
// last event: Fit removes the contradicting events.
//
// # Concurrency properties
//
// A Snapshot is a plain value, and the package keeps none: Write, Check and Fit may be called for different snapshots at the
// same time.
package snapshot
