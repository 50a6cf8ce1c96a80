// Package handler serves the profile of package heapprofile over HTTP, as net/http/pprof serves Go's. It is a
// package of its own, so that a program which only writes profiles is not linked with net/http.
//
//	mux.Handle("GET /debug/vram/heap", handler.New(device))
//
// # Words
//
// Query parameters are as in net/http/pprof: debug=1 answers with text, seconds=N with the difference between two profiles, N
// seconds apart. The handler registers itself nowhere.
//
// # Concurrency properties
//
// Any number of requests may be served at once.
package handler
