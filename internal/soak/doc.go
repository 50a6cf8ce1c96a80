// Package soak allocates and frees on eight streams of the simulated device, in a mix that changes all the time, under a hard limit of
// 1.10 times what lives at most. No allocation may fail, and nothing may be held at the end: its tests play a few thousand
// operations, and as many as -ops says, with a table of how things stand as time goes by:
//
//	go test ./internal/soak -run TestSoak -timeout 0 -v -ops 10000000
//
// make soak does that.
package soak
