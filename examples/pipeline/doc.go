// Command pipeline trains with four pipeline stages on one device, or on several: the loop of the embedded recording
// pipeline_1f1b, with its sizes, order and times.
//
//	pipeline [-steps 300] [-speed 1] [-driver auto] [-device 0] [-footprint balanced|lean|fast] [-limit 12GB|0.9x]
//	         [-wait] [-ahead 3] [-devices 1]
//
// Each stage is a goroutine with its own stream. A step has eight micro-batches in the order 1F1B: a stage begins with one
// forward for each later stage, alternates one forward and one backward, and ends with the remaining backwards. Then its
// optimizer runs.
//
// # How a stage uses the allocator
//
//   - Buffers of an operation: Alloc and Free, in the recording's order. A forward's saved buffers live until
//     the backward of the same micro-batch.
//   - The buffer that an activation or a gradient will arrive in: a future (AllocAsync), ordered one micro-batch ahead.
//   - Parameters and the optimizer's buffers: batches, all or nothing.
//
// # Hand-over between stages
//
// A sender fills a buffer of its own stream and records an event after the work; buffer and event
// travel over a channel. The receiver's stream waits for the event, on the device, and copies into a buffer of its
// own. When the next operation has begun on the device the copy has finished, and the receiver frees the
// sender's buffer: no stream has work left that touches it.
//
// # Several devices
//
// With -devices n stage i runs on device -device + i mod n, each with the limit. A parcel from another device is copied on the
// receiver's stream, also after the sender's event, by a driver call that needs no access to the other device's memory. The
// report sums up the figures of all devices, peaks included.
//
// # When memory is short
//
// A limit of 0.9x is that fraction of the recording's live peak, 9.69 GiB. Without -wait a request that finds no memory ends
// the run. With it the stage waits for a free. Requests of backwards and of later stages have priority, since they free most. A
// forward allocates its saved buffers as a batch, so that no stage waits with half of them. A stage repeats a failed order when
// it needs the buffer, and drops received parcels before it waits. Stages use a vram.Handover and declare their streams
// exclusive (Stream.Exclusive), so that a wait that nobody can end is recognised: the stage gets a DeadlockError that lists the
// holders, and the run ends.
//
// Waiting helps if stages reach their peaks at the same time. It does not help if all stages must save more than the limit
// before anything is freed; -ahead bounds that. With -ahead 1 a stage keeps two micro-batches' activations at a time, with
// -ahead 0 one, and the stages run one after the other.
//
// # Time
//
// The work between two events of the recording occupies the stream for its recorded time. On the simulated device this is
// virtual time that follows the clock. On a GPU it is memsets of that length, and the stages' streams share the device. The
// first line of the output names the device. A stage queues at most two operations ahead of the running one, so the display
// follows the device.
//
// Environment variables (VRAM_*, see vram.ConfigFromEnv) configure the device; flags override them. On a terminal the stages
// are bars, elsewhere there is a line per second; NO_COLOR is respected. Exit codes: 0; 1 if the run failed; 2 for invalid
// flags or variables; 130 after an interrupt, which ends the run between two operations, returns all memory and prints the
// figures so far. A second interrupt ends at once.
package main
