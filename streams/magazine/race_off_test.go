//go:build !race

package magazine

// fewer is 1 where tests shall do less.
const fewer = 0
