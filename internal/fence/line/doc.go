// Package line numbers points in the order of a stream, and counts by these numbers how far the device has
// come. It has no effects: package fence records and queries fences, and code that decides which blocks wait
// for them sees only their numbers.
//
// # Numbers
//
// Fences of a stream are numbered in the order in which they begin, from 1 on. A block that waits for uses on
// the stream names the number of the next fence when it is out of use (Next). To record a fence is to
// increment that number first (Begin) and then to mark the stream's end. So a goroutine that read a number
// has submitted its work before the fence of that number, or of a higher one, was marked. Once the fence of a
// number has passed, so have the uses of all blocks that name it or a lower one, in any order in which the
// marks of several callers reached the stream. If the mark of a number could not be recorded, the next one
// covers it.
//
// Numbers only rise, except that the number of a lost fence is owed again (Lose). Line and Lines are safe for
// concurrent use; no operation waits.
package line
