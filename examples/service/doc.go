// Command service is a small HTTP service that holds its GPU memory through vram: it answers requests of a language
// model's kind, whose compute is a simulated kernel and whose memory is real to the allocator.
//
//	service [-addr 127.0.0.1:8080] [-workers 4] [-backlog 64] [-timeout 30s] [-linger 0s] [-deadline 10s]
//	        [-driver auto] [-device 0] [-limit 12GB]
//
//	POST /v1/infer   {"prompt_tokens": 512, "new_tokens": 64, "batch": 1}
//	GET  /healthz    200 while the process serves
//	GET  /readyz     200 while it wants requests, 503 once it is being stopped
//	GET  /stats      what the memory is doing, as JSON
//
// # The way of a request
//
//  1. The body is read, bounded, and checked: what cannot be is 400 or 413.
//  2. The request waits for a worker, a stream that one request uses at a time. More than the backlog do not wait: 429.
//  3. Its buffers are one batch, all or nothing: no request holds a part while it waits for the rest. What
//     does not fit now is 503 with Retry-After, what never could is 507.
//  4. Its kernel runs; its buffers are freed; the answer is written.
//
// The request's context goes along: where the client leaves or the timeout passes, waiting ends, an allocation
// that is under way is taken back, and buffers that a kernel still uses are freed on their stream, behind it.
//
// # Shutdown
//
//	serving --first signal--> lingering --linger over--> draining --last request answered--> closed (exit 0)
//	                              \________ second signal, or the deadline ________\--> closed (exit 1)
//
// Lingering, the service answers as before but says on /readyz that it wants no more requests. Draining, it accepts no
// connections. The second signal and the deadline cancel the requests in flight. The device is closed after
// the last handler has returned, whichever way it went.
//
// # Concurrency
//
// A Service may be used from any goroutine. A worker belongs to the request that took it. Nothing here
// locks: workers travel over a channel, counters are atomic.
package main
