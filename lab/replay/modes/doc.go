// Package modes tests what recorded and made traces cost in each footprint mode: the memory that is reserved and the driver's time. A
// trace is played by one goroutine in virtual time, so that the figures are the same on each machine. It exports nothing.
package modes
