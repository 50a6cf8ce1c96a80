//go:build !exhaustive

package magazine

// fewer is 1 where the searches of the models shall begin fewer operations: a part of the states, in seconds. What the
// searches are held against, TestSearchFindsMistakes, they find in fewer.
const fewer = 1
