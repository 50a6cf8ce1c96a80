// Package planted is a list of bugs, and a way to see that tests find them. Each bug is a change of the source that the go
// command is told of by an overlay: nothing of it is in the shipped code.
//
// # Words
//
// A Bug is one defect by name: the edits that make it, the package whose tests must find it, and which tests those are. An Edit
// replaces a text that occurs exactly once in a function, or in a file where it stands in no function. To plant a bug is to
// make the edited files in a folder of their own and to run the tests with them in the place of the files of the module, or of
// one below it that go.work names. A Verdict says what came of it.
//
// # What counts
//
// A bug is Found where a test that has a name fails by itself: an assertion, a panic, a hang that the test notices. It is not
// found by a build that fails, by tests that run out of time, or by a process that dies without a failing test. The same
// tests, with nothing planted, pass: Runner.PlantAll runs them first.
//
// The tests of this package, which are quick, see to it that every edit still applies, that the result is correct Go of
// the right types, and that names are told apart. `make planted` plants all of them and prints who found what. Bugs that the
// tests of one package find are in one program: each function that some bug changes begins with a switch, and a variable of
// the environment selects the bug of a run. Bugs that change more than functions, and those that are not found so, are planted
// alone, two at a time.
//
// # Adding one
//
// Five lines in the list of the part that it is in:
//
//	{
//		Name: "generation not bumped", Package: "internal/stream/magazine", Run: "TestDoubleFree",
//		Edits: []Edit{{"internal/stream/magazine.freed", "return word + generationStep", "return word"}},
//	},
//
// The name says what is wrong, as a sentence about the code would. The first text of an Edit is the function, as a stack trace
// names it, so that the bug follows its function from file to file. Old is short, and long enough to occur once in it; Run is
// anchored, and as narrow as finds the bug in a second or two. A bug that seeds are searched for is in lab/simulation, which
// finds it in every run of its own tests; what it plants itself, at seams that no edit is needed for, is listed
// in its TestPlantedDefectsAreFound, and faults of the layers in that of internal/archtest.
//
// # Concurrency properties
//
// A Runner keeps no state: several bugs may be planted at a time, each in a folder of its own.
package planted
