// Package soak allocates and frees on eight streams of the simulated device, in a mix that changes all the time, under a hard
// limit of 1.10 times the peak live bytes. No allocation may fail, and nothing may be held at the end: its tests play a few
// thousand operations, and with -ops any number, with a table of the figures over time:
//
//	go test ./lab/soak -run TestSoak -timeout 0 -v -ops 10000000
//
// make soak does that. TestService is a service that opens and closes streams, tenants, tags and graphs for as long as -service
// says, and holds that neither the Go heap nor the number of goroutines grows:
//
//	go test ./lab/soak -run TestService -timeout 0 -v -service 10m
//
// make soak-service does that.
package soak
