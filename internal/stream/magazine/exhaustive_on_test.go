//go:build exhaustive

package magazine

// fewer is 1 where the searches of the models shall begin fewer operations.
const fewer = 0
