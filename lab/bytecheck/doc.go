// Package bytecheck uses a device through vram, under load, and looks at every byte: on a GPU, on a fake of the
// driver that has real memory, or on the simulated device with real bytes.
//
// # Words
//
// A House is a device opened through vram, and the checker's own device on the same context: with it the checker submits
// memsets and copies to the streams that vram made. A Load sets the amount of work; a worker is one goroutine of it. The
// content of a buffer is the expected value of its bytes: runs of equal values. A reading is a copy of a whole buffer to
// pinned host memory, queued on the buffer's stream.
//
// # Checks
//
// Each buffer is filled with values that its neighbours hardly have, when it is allocated; some are copied over others of the
// same stream or of another one: with events between, or with a use that is announced (RecordStream, Use) and nothing else;
// some are handed over to another stream (Transfer) and written there. Before each Free a reading of the buffer is queued,
// often followed by work that overwrites it; then it is freed at once, while all that work still waits its turn. The bytes are
// compared when the reading has come. So a difference is shown by
//
//   - two live buffers that overlap: the later one's values are in the first one's reading;
//   - memory that is handed out before earlier work on it has finished: old work writes over new values, or new work over
//     an old buffer before its reading, or before another stream has copied it;
//   - a handle that is unmapped, or mapped elsewhere, below a live buffer: residents live as long as the load and are
//     read again and again;
//   - requests for zeroed memory that is not zero.
//
// A misaligned address is a *PlaceError, a wrong byte is a *ByteError. A request that is refused for lack of memory is
// counted, and the worker frees something.
//
// # Concurrency properties
//
// Run may be called once at a time for each House; its goroutines have ended when it returns. A worker shares its
// streams with others and its buffers with nobody.
//
// # On a GPU
//
// One binary, no other files:
//
//	CGO_ENABLED=0 go test -c -tags gpu -o bin/bytecheck.test ./lab/bytecheck
//	bin/bytecheck.test -test.v -test.run Hardware -duration 20s -bytes 17179869184
//	bin/bytecheck.test -test.v -test.run HardwareMemoryReturns -fill
//	compute-sanitizer --tool memcheck --error-exitcode 1 bin/bytecheck.test -test.v -test.run Hardware -duration 5s -bytes 1073741824
//
// -duration is for each load, -bytes bounds the live bytes of all buffers together, -fill fills the card by plain allocations
// before memory runs out. No other program may use the GPU: the free memory must be the same at the start and at the end.
package bytecheck
