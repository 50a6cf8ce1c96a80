// Package meter wraps a cudadrv.Device and counts its calls and their time, by function and in sum.
//
// The time is modelled time where the device is cudadrv.Modelled, so that figures from the simulator
// speak of the hardware that it models, and wall-clock time otherwise.
//
// # Concurrency properties
//
// All methods may be called from any goroutine. Counting takes no lock and no heap allocation: atomic additions around each
// call. Figures are read one by one during calls, so that a sum and its parts may be a call apart; they agree when no call is
// in progress.
package meter
