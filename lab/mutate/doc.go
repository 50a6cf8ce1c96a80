// Package mutate measures the tests: it changes the source in many small ways, each alone, and counts the changes that a test
// notices. lab/planted has bugs that somebody thought of; this package finds bugs that nobody thought of.
//
// # Words
//
// A Mutant is one change of one function, or of a table outside functions: an Operator at a place. Operators imitate mistakes: a
// condition is negated, a statement is forgotten, two arguments change places, a bound is off by one. A Test program is the
// tests of one package, compiled by package trial. A test reaches a mutant if it evaluates the changed place.
//
// A mutant is Killed if a test that reaches it fails, or takes many times as long as without it; the second is counted as Hung
// too. It Survived if all tests that reach it pass, and is Unreached if none does: that is a survivor as well. A Mark is a
// statement, with its reason, that a mutant is equivalent: no test can tell it from the original. marks.go has them. The rate of
// a package is killed / (mutants - equivalent).
//
// # One build
//
// Plan lists the mutants of packages. A Schemata has the source of these packages with all chosen mutants in it, each under a
// switch:
//
//	if n < most {           becomes    if mutantLess(17, n, most) {
//	delete(m, key)          becomes    if !mutantOn(18) { delete(m, key) }
//
// The go command learns of it by an overlay, so that the tree stays as it is, and compiles each test program once. A process
// reads the number of its mutant from the environment, at the start. A place whose change does not compile is taken out: the
// type checker reports where the text is wrong, and the mutant there is dropped.
//
// # One run
//
// A test program is built when the first mutant needs it. Each of its tests runs once by itself with no mutant on. The process
// shares an array with this one in which it notes the places that it evaluates, so the run says which mutants the test reaches
// and how long it takes. A test that fails here is left out. Then for each mutant the tests that reach it run, its own package
// first and fast ones before slow ones, until one fails. users.go names the other packages whose tests run for a package.
//
// # Yields
//
// Operations of two goroutines that have no lock mostly run one after the other, also in tests with many goroutines, and the mutants
// that break such an operation survive. Yields writes the source with runtime.Gosched before and after uses of atomic variables and
// locks, at random: between a load and the write that depends on it another goroutine runs a whole operation, now and then. make race
// and make stress run such source; table does with -yields.
//
// # Results
//
// A Cache keeps results by the function's source. A kill stays valid as long as the function is the same and the test that
// killed exists. A survivor stays valid as long as the function and the test programs are the same; if some programs changed, it
// runs those alone. So a second run of the same mutants takes seconds, and a run after a change tries only the mutants that the
// change concerns.
//
// # On another machine
//
// carry.sh packs all that a run needs, carried.sh runs it on a machine without Go and network. The results come back as a file of the
// cache.
//
// # Concurrency properties
//
// A Run tries several mutants at a time, each in a process of its own. Nothing else here is for several goroutines.
package mutate
