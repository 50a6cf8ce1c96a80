// Package trial runs the tests of a package with files of the module replaced, and says how they end. lab/planted and lab/mutate
// choose the changes; this package has what both do with one.
//
// The go command learns of the changed files by an overlay, so that the tree stays as it is. Tests are compiled once, and each
// run is a process with bounds of time and memory.
package trial
