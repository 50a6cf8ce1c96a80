//go:build !exhaustive

package magazine

// fewer is 1 if the searches of the models begin fewer operations: a part of the states, in seconds. It
// suffices for TestSearchFindsMistakes.
const fewer = 1
