// Command service is a small HTTP service that allocates GPU memory with vram: it answers requests like a language model's.
// Their compute is a simulated kernel, their memory is allocated. More requests arrive than fit, and wait for memory, each
// tenant within its quota.
//
//	service [-addr 127.0.0.1:8080] [-workers 128] [-backlog 1024] [-timeout 30s] [-linger 0s] [-deadline 10s]
//	        [-tenants gold=4,silver=2,bronze=1] [-driver auto] [-device 0] [-limit 12GB]
//	        [-hard] [-load] [-clients 512] [-duration 10s] [-seed 1] [-equal]
//
//	POST /v1/infer   {"prompt_tokens": 512, "new_tokens": 64, "batch": 1}, with tenants X-Tenant: gold
//	GET  /healthz    200 while the process serves, 500 once a part of the allocator was quarantined
//	GET  /readyz     200 while it accepts requests, 503 during shutdown
//	GET  /stats      the memory by use, as JSON
//	GET  /metrics    the same and histograms of latencies and waits, for Prometheus
//	GET  /debug/vram/heap    the memory by the code that allocated it, for go tool pprof; ?debug=1 as text
//
// # Steps of a request
//
//  1. The body is read, bounded, and checked: an invalid one is 400 or 413, an unknown tenant 403.
//  2. It takes the next stream in turn, which it shares with others.
//  3. Its buffers are one batch, all or nothing: it holds nothing while it waits, so that requests cannot block each
//     other. The request whose tenant has the smallest part of its quota is served first, and of one tenant the oldest. A
//     request beyond the backlog does not wait: 429, as after a wait for the tenant's own requests. A request that can
//     never be served is 507.
//  4. Its kernel runs; its buffers are freed, which serves the next request; the answer is written.
//
// The request's context ends waiting when the client leaves or the timeout passes. Buffers that a kernel still
// uses are freed on their stream, in order. A timeout is 504.
//
// # Tenants
//
// Each tenant has a share of the limit in proportion to its weight, and may borrow unused memory (vram.Quota.ShareBytes).
// Tenants that always want more get memory, and with equal requests answers, in proportion to their weights. With -hard a
// tenant gets at most its share (vram.Quota.LimitBytes): one that wants more delays only itself, and an unused share stays
// unused. A tenant whose share fits few requests then gets less than its share, since its next request has to fit whole.
//
// Without -tenants all requests are equal and X-Tenant is refused.
//
// # Load
//
// With -load the program is its own client: each of -clients keeps one request in flight over HTTP, and the default limit is a
// quarter of their total need. After -duration it stops as by a signal, with requests in flight. It prints each tenant's share
// of the memory, in bytes times seconds, and of the answers, and the latencies. A failed request, or memory beyond the limit,
// is exit code 1.
//
// # Shutdown
//
//	serving --first signal--> lingering --linger over--> draining --last request answered--> closed (exit 0)
//	                              \________ second signal, or the deadline ________\--> closed (exit 1)
//
// While lingering, the service answers as before, but 503 on /readyz. While draining, it accepts no connections; requests that
// wait for memory get it and are answered. The second signal and the deadline cancel the requests in flight. The device is
// closed after the last handler has returned.
//
// # Concurrency
//
// A Service is safe for concurrent use, without locks: counters are atomic, and the allocator queues requests. Metrics are
// observed outside the allocator.
package main
