// Package archtest checks the rules of the module's structure: allowed imports, the places of locks, clocks, goroutines, cgo
// and package variables, comments, names and lengths of files. It has tests only; `go test ./internal/archtest` checks the
// whole module and the modules of go.work.
//
// The rules read all source files on disk and ignore build constraints, so they also bind files of other platforms and tags.
// Some bind shipped files only: a test file may import a higher layer, since a model test drives two layers at once, and may
// lock and keep variables.
//
// Each rule has a reason, which a failure prints with the place. For each a test plants a fault in a small module and requires
// that the rule finds it; a rule without such a fault fails the test.
//
// A new package gets its place in the table of layers, in houseLayers. The tests also compare docs/architecture.md and
// docs/glossary.md with the code: the picture of the packages, which -update redraws, and the functions and types that the
// pages name. Comments have a ceiling of counted words for each package in testdata/words.json, which -update lowers, and
// packages of convertedPackages have none of the glossary's old words.
package archtest
