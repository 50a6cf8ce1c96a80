// Command service is an HTTP service that continues texts with GPT-2's decoder: on a GPU, or on the processor where there is
// none. The keys and values of each request are pages of vram's memory, which its tenant is charged with. More requests arrive
// than fit, and wait for memory, each tenant within its quota.
//
//	service [-addr 127.0.0.1:8080] [-model tiny|char|124m] [-type bfloat16] [-checkpoint FILE] [-tokenizer FOLDER] [-seed 1]
//	        [-batch 64] [-page 16] [-timeout 30s] [-idle 0s] [-linger 0s] [-deadline 10s]
//	        [-tenants gold=4,silver=2,bronze=1] [-hard] [-driver auto] [-device 0] [-limit 12GB]
//	        [-load] [-clients 64] [-duration 10s] [-equal]
//
//	POST /v1/completions   {"prompt": "func ", "max_tokens": 64, "stream": true}, with tenants X-Tenant: gold
//	GET  /healthz    200 while the process serves, 500 once the device or a part of the allocator has failed
//	GET  /readyz     200 while it accepts requests, 503 during shutdown
//	GET  /stats      the requests, the memory by use and by tenant, as JSON
//	GET  /metrics    the same and histograms of times and waits, for Prometheus
//	GET  /debug/vram/heap    the memory by the code that allocated it, with tenants, for go tool pprof; ?debug=1 as text
//
// # Requests
//
//	prompt           a text, or a list of tokens. Texts need a model whose tokens are bytes, or -tokenizer
//	max_tokens       of the answer; 16
//	temperature      0, the default, takes the most probable token
//	top_k            draws only so many of the most probable tokens; 0 for all
//	seed             of the draws: one seed has one answer
//	stop_token       ends the answer, which has it
//	stream           tokens as they are made, as server-sent events: data: {"token":97,"text":"a"}
//	timeout_seconds  until the request's deadline; -timeout, which it may not exceed
//
// The answer, and the last event but for "data: [DONE]", has finish_reason: length, stop, deadline, stopping or error.
//
// # Steps of a request
//
//  1. The body is read, bounded, and checked: an invalid one is 400 or 413, an unknown tenant 403.
//  2. If the weights sleep they are woken.
//  3. The pages for its prompt and its answer are one batch, all or nothing: it holds nothing while it waits, so that requests
//     cannot block each other, and nothing can be short later. The request whose tenant has the smallest part of its quota is
//     served first, and of one tenant the oldest. A request that can never be served is 507. If its deadline ends the wait it is
//     429 where its tenant's own requests had the memory, and 503 where others had it.
//  4. One goroutine prefills: it computes the keys and values of the prompt on a stream of its own, and the first token.
//  5. Another one makes steps, of up to -batch requests each: a step is one launch of a captured graph, and makes a token of each
//     request. Requests join and leave between two steps.
//  6. At the end, at the deadline, or when the client leaves, its pages are freed before the next step.
//
// A deadline before the first token is 504.
//
// # Tenants
//
// Each tenant has a share of the memory for caches in proportion to its weight, and may borrow unused memory
// (vram.Quota.ShareBytes). Tenants that always want more get memory, and with it tokens, in proportion to their weights. With
// -hard a tenant gets at most its share (vram.Quota.LimitBytes): one that wants more delays only itself, and an unused share
// stays unused. A tenant whose share fits few requests then gets less than its share, since its next request has to fit whole. Without
// -hard it gets its share over time, also where that is less than one request.
//
// Without -tenants all requests are equal and X-Tenant is refused.
//
// # Sleep
//
// With -idle the weights leave the GPU once no request was there for so long (package cuda/sleep), and come back for the next one,
// at the same addresses: the captured graphs stay.
//
// # Load
//
// With -load the program is its own client: each of -clients keeps one request in flight over HTTP, and the default limit has room
// for the caches of half of them. After -duration it stops as by a signal, with requests in flight. It prints each tenant's share
// of the tokens against its quota, the times to the first token and between tokens, and the failures by kind. A failed request,
// or memory beyond the limit, is exit code 1.
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
// A Service is safe for concurrent use. Requests move over channels from their handler to the prefill, and to the steps, and
// the one that has a request frees its memory; the sleeper has a turn, which a request takes when it comes and when it goes. Counters are
// atomic, and the allocator queues requests. Metrics are observed outside the allocator.
package main
