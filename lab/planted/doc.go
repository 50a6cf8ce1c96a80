// Package planted is a list of bugs, and a way to see that tests find them. Each bug is a change of the source that the go
// command learns of by an overlay: shipped code has none of them. Package trial builds and runs the tests.
//
// # Words
//
// A Promise is a sentence of the design with the bugs that break it, one file of the list each. A Bug is one defect by name:
// the edits that make it, the package whose tests must find it, and the pattern of those tests. An Edit replaces a text that
// occurs exactly once in a function, or in a file outside functions. To plant a bug is to write the edited files to a temporary
// folder and to run the tests with them instead of the files of the module, or of a module that go.work names. A Verdict is the
// result.
//
// # Verdicts
//
// A bug is Found when a named test fails by itself: an assertion, a panic, a hang that the test notices. A build that fails,
// tests that run out of time, and a process that dies without a failing test do not count. The same tests must pass with
// nothing planted: Runner.PlantAll runs them first. Tests run in their short form, so that `make test` finds each bug, but for
// random tests, which run as often as in the long form.
//
// The tests of this package are quick. They check that every edit still applies, that the result is correct Go of the right
// types, and that names differ. `make planted` plants all bugs, `make check` the bugs of packages that changed.
//
// # Adding one
//
// The list has at most 200 bugs, for it must stay affordable to plant all of them. A bug belongs in it when it breaks a promise
// in a way that none of the others does; past the bound it replaces a weaker one. Six lines in the file of the promise:
//
//	bug: generation not bumped
//	package: internal/stream/magazine
//	run: ^TestDoubleFree
//	edit: internal/stream/magazine.freed
//	-return word + generationStep
//	+return word
//
// An empty line comes before each bug. A bug has one edit or more, and a text as many lines as it needs: newlines are between
// them only, so that a last line with the sign alone ends the text with a newline. Without lines of + the old text is deleted.
//
// The name states the fault, as a sentence about the code would. An edit names the function as a stack
// trace does, so that the bug follows its function from file to file. The old text is short, and long enough to occur once in
// it; run is anchored, and as narrow as finds the bug in a second or two. A bug that only a search by seeds finds belongs to
// TestPlantedDefectsAreFound of lab/simulation, a fault of the layers to the tests of internal/archtest.
//
// # Concurrency properties
//
// A Runner keeps no state: several bugs may be planted at a time, each in a folder of its own.
package planted
