// Package line numbers points in the order of a stream, and says how far the device has come by these numbers. It
// performs nothing: fences are taken and looked at by the package above it, and those who decide what waits for them
// see their numbers only.
//
// # Numbers
//
// Fences of a stream are numbered by when they were begun, from 1 on. A block that waits for uses on the stream names
// the number that is begun next when it is out of use (Next). To take a fence is to count that number up first (Begin)
// and to mark the stream's end then. So whoever read a number has submitted its work before the fence of that number
// was marked, and before each of a higher number: once the fence of a number has passed, so have the uses of all
// blocks that name it or a lower one, in whatever order the marks of several callers reached the stream. A number whose
// mark could not be taken is covered by the next one.
//
// Numbers only rise, save that the number of a fence which was lost is owed again (Lose). Any number of goroutines may use a Line and a Lines; no operation waits.
package line
