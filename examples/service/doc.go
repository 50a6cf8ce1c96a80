// Command service is a small HTTP service that holds its GPU memory through vram: it answers requests of a language
// model's kind, whose compute is a simulated kernel and whose memory is real to the allocator. More requests than
// have room come in, and wait for memory, each tenant within its quota.
//
//	service [-addr 127.0.0.1:8080] [-workers 128] [-backlog 1024] [-timeout 30s] [-linger 0s] [-deadline 10s]
//	        [-tenants gold=4,silver=2,bronze=1] [-driver auto] [-device 0] [-limit 12GB]
//	        [-hard] [-load] [-clients 512] [-duration 10s] [-seed 1] [-equal]
//
//	POST /v1/infer   {"prompt_tokens": 512, "new_tokens": 64, "batch": 1}, with tenants X-Tenant: gold
//	GET  /healthz    200 while the process serves, 500 once a part of the allocator was quarantined
//	GET  /readyz     200 while it wants requests, 503 once it is being stopped
//	GET  /stats      what the memory is doing, as JSON
//	GET  /metrics    the same and histograms of latencies and waits, for Prometheus
//	GET  /debug/vram/heap    which code holds the memory, for go tool pprof; ?debug=1 as text
//
// # The way of a request
//
//  1. The body is read, bounded, and checked: what cannot be is 400 or 413, a tenant that is not known 403.
//  2. It takes the next stream in turn, which it shares with others.
//  3. Its buffers are one batch, all or nothing: it holds nothing while it waits, so that requests cannot block each
//     other. All wait for memory: first whose tenant has the smallest part of its own, and of one tenant the oldest. More
//     than the backlog do not wait: 429; so is the end of a wait for the tenant's own requests. What could never be served is 507.
//  4. Its kernel runs; its buffers are freed, which lets the next one go on; the answer is written.
//
// The request's context goes along: where the client leaves or the timeout passes, waiting ends, and
// buffers that a kernel still uses are freed on their stream, behind it. A timeout is 504.
//
// # Tenants
//
// Each tenant has a right to its part of the limit, as its weight is to the sum of the weights, and may borrow what the others leave
// (vram.Quota.ShareBytes). Those that always want more have memory as their weights are to each other, and as many answers where requests
// are equal. With -hard a tenant has its part and no more (vram.Quota.LimitBytes): one that asks for more makes nobody wait but itself, and
// one that asks for nothing leaves its part unused. One whose part has room for few requests gets less than it then, since its next one
// has to fit whole.
//
// Without -tenants all requests are equal and X-Tenant is refused.
//
// # Load
//
// With -load the program is its own client: -clients keep a request each in flight over HTTP, and the limit is, if none is named, a
// quarter of what they need at once. After -duration it is stopped as by a signal, with the requests in flight. It
// prints for each tenant what share of the memory it had, in bytes times seconds, and of the answers, and how long requests took. A request that
// failed, or memory beyond the limit, is exit code 1.
//
// # Shutdown
//
//	serving --first signal--> lingering --linger over--> draining --last request answered--> closed (exit 0)
//	                              \________ second signal, or the deadline ________\--> closed (exit 1)
//
// Lingering, the service answers as before but says on /readyz that it wants no more requests. Draining, it accepts no
// connections; requests that wait for memory get it and are answered. The second signal and the deadline cancel the requests in
// flight. The device is closed after the last handler has returned, whichever way it went.
//
// # Concurrency
//
// A Service may be used from any goroutine. Nothing here locks: counters are atomic, and who waits for memory is the
// allocator's business. Metrics are observed outside the allocator.
package main
