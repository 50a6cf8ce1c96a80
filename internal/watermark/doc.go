// Package watermark keeps the maximum of a value: since its last reset, and inside any number of scopes that
// begin and end independently. A reset does not affect the scopes, and a scope does not affect the maximum
// since the reset.
//
// # Words
//
// An epoch is the time between two events of a Mark: its creation, a reset, the begin of a scope. Raise
// updates only the present epoch, so that it is one comparison for any number of scopes. An event closes the
// epoch: it adds the epoch's maximum to all maxima that include it.
//
// # Concurrency properties
//
// A Mark belongs to one goroutine at a time. Package shared has one for many.
package watermark
