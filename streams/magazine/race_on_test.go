//go:build race

package magazine

// fewer is 1 where tests shall do less: the race detector makes them ten times slower, has nothing to find
// in the search of the model, which has one goroutine, and finds a race without the moment in which it harms.
const fewer = 1
