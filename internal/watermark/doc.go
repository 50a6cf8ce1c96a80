// Package watermark keeps the maximum of a value: since its last reset, and inside any number of
// scopes that begin and end on their own. A reset leaves the scopes alone, and a scope leaves the
// maximum since the reset alone.
//
// # Words
//
// An epoch is the time between two events of a Mark: its making, a reset, the begin of a scope.
// Raise knows the present epoch alone, so that it is one comparison, whatever scopes there are. An
// event closes the epoch: it passes the maximum of it to all that it belongs to.
//
// # Concurrency properties
//
// A Mark belongs to one goroutine at a time. The package shared below has one for many.
package watermark
