// Command pipeline trains with four pipeline stages on one device, or on several: the loop of the embedded recording
// pipeline_1f1b, played with its sizes, its order and its times.
//
//	pipeline [-steps 300] [-speed 1] [-driver auto] [-device 0] [-footprint balanced|lean|fast] [-limit 12GB|0.9x]
//	         [-wait] [-ahead 3] [-devices 1]
//
// Each stage is a goroutine with a stream of its own. A step has eight micro-batches in the order 1F1B: a stage
// begins with as many forwards as there are stages behind it, goes on with one forward and one backward in turn, and
// ends with the backwards that are left. Then its optimizer runs.
//
// # How a stage uses the allocator
//
//   - Buffers of an operation: Alloc and Free, in the recording's order. What a forward saves lives until
//     the backward of the same micro-batch.
//   - The buffer that an activation or a gradient will arrive in: a future (AllocAsync), ordered one micro-batch ahead.
//   - Parameters and the optimizer's buffers: batches, all or nothing.
//
// # Hand-over between stages
//
// A sender fills a buffer of its own stream and records an event behind the work; buffer and event
// travel over a channel. The receiver's stream waits for the event, on the device, and copies into a buffer of its
// own. Once the operation behind the copy has begun on the device the copy is over, and the receiver frees the
// sender's buffer: no stream has work left that touches it.
//
// # Several devices
//
// With -devices n stage i runs on device i mod n of those from -device on; a limit is for each of them. What comes from a stage on
// another device is copied from there, on the receiver's stream, behind the sender's event as well. It is a copy of the driver's
// that needs no access to the other device's memory. The report's figures are those of all devices together; its peaks are sums.
//
// # Where memory is short
//
// A limit of 0.9x is that share of what lived at most when it was recorded, 9.69 GiB. Without -wait a request that finds no
// memory ends the run. With it the stage waits until another one frees some: requests of backwards and of later
// stages are served first, since they free most; what a forward leaves behind is a batch, so that no stage waits with half of it; what
// was ordered ahead is asked for again when it is needed; and before a stage waits, for memory or for its neighbour, it drops what was
// handed over to it.
// What stages send each other travels by a vram.Handover, and each stage's stream is its goroutine's alone (Stream.Exclusive), so that
// a wait which nobody can end is known for one: the stage gets a DeadlockError that says who holds what, and the run ends.
//
// Waiting helps where stages meet that need most at the same time. It does not help where all of them have saved what they
// must before anything is freed: how much that is -ahead says. With -ahead 1 a stage has two micro-batches' activations at a time,
// with -ahead 0 one, and the stages work one after the other.
//
// # Time
//
// The work between two events of the recording occupies the stream for as long as it took when it was recorded. Where
// the device is simulated this is virtual time that runs with the clock; no GPU is needed. On a GPU it is memsets of that
// length, which the stages' streams share the device for. The first line of the output says which it is. A stage queues
// at most two operations ahead of the one that runs, so what is shown is what happens on the device.
//
// Environment variables (VRAM_*, see vram.ConfigFromEnv) configure the device; flags go over them. On a
// terminal the stages are bars, elsewhere there is a line a second; NO_COLOR is respected. Exit codes: 0; 1
// where the run failed; 2 for flags or variables that cannot be; 130 after an interrupt, which ends the run
// between two operations, gives all memory back and prints the figures so far. A second interrupt ends at once.
package main
