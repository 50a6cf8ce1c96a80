// Package archtest holds the rules of the house that a machine can check: which package may import
// which, where locks, clocks, goroutines, cgo and package variables may stand, and what every package
// and file owes its reader. It has tests only; `go test ./internal/archtest` checks the whole module,
// and those below it that go.work names.
//
// The rules read the source as it stands on disk, whatever its build constraints, so a file that only
// another platform or tag compiles obeys them too. They bind what is shipped: test files may look
// upwards, for a model test drives two layers at once, and may lock and keep variables.
//
// Each rule names its reason, which a failure prints beside the place. Each is shown to fail by a small
// house of its own with one fault planted in it; a rule without such a fault fails the test.
//
// A new package gets its place in the table of layers, in houseLayers. Its tests also hold docs/architecture.md and docs/glossary.md
// against the code: the picture of the packages, which -update draws anew, every function and type that the pages name, and the
// words that packages of convertedPackages do not use any more.
package archtest
