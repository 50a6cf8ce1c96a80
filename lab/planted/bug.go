package planted

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Edit replaces a text of a function, or of a file.
type Edit struct {
	// At is a function of a package by the name that stack traces have, from the module's root:
	// "internal/pool/core.(*Core).climb", "futures.First", "vram.Open" in the root; it may move to any file of its folder. A
	// text outside functions, or in the comment above one, is found by its file: "internal/pool/core/policy.go". So is an
	// embedded file: "monitor/page/static/page.css".
	At  string
	Old string // occurs there exactly once
	New string
}

// Bug is a defect that tests must find.
type Bug struct {
	Name    string
	Package string // whose tests find it, from the module's root
	Run     string // which of them: the pattern of go test's -run
	Tags    string // the build tags that they are built with; "" for none
	Edits   []Edit
}

// Promise is a promise of the design, and bugs that break it.
type Promise struct {
	Says string
	Bugs []Bug
}

// Promises returns the list.
func Promises() []Promise {
	return []Promise{
		exclusiveMemory(),
		fencedMemory(),
		oneAnswer(),
		balancedBooks(),
		oneOwner(),
		warmPath(),
		caughtMisuse(),
		nothingSilent(),
		undisturbedCaptures(),
		boundedObjects(),
		servedWaiters(),
		heldLimits(),
		pricedFootprint(),
		orderedLaunches(),
		graphMemory(),
		foundHazards(),
		foundFaults(),
		checkedText(),
		preparedKernels(),
		namedPrecision(),
		cleanDrivers(),
	}
}

// Bugs returns the bugs of all promises.
func Bugs() (all []Bug) {
	for _, p := range Promises() {
		all = append(all, p.Bugs...)
	}
	return all
}

// Named returns the bugs whose names contain the word; all for "".
func Named(word string) []Bug {
	return slices.DeleteFunc(Bugs(), func(b Bug) bool { return !strings.Contains(b.Name, word) })
}

// Touched returns the bugs that edit a package of the files, or whose tests are in one. Files are named from the module's root.
func Touched(bugs []Bug, files []string) (touched []Bug) {
	changed := map[string]bool{}
	for _, file := range files {
		changed[path.Dir(file)] = true
	}
	for _, b := range bugs {
		edits := slices.ContainsFunc(b.Edits, func(e Edit) bool { return changed[e.dir()] })
		if edits || changed[b.Package] {
			touched = append(touched, b)
		}
	}
	return touched
}

// dir returns the folder of the edit.
func (e Edit) dir() string {
	if dir, _, ok := splitAnchor(e.At); ok {
		return dir
	}
	return path.Dir(e.At)
}

// EditError says that an edit does not apply.
type EditError struct {
	Bug   string
	At    string
	Old   string
	Count int // of its occurrences; it must be 1
}

// Error names the bug, the place and the text.
func (e *EditError) Error() string {
	return fmt.Sprintf("planted: %s: %q occurs %d times in %s, want once", e.Bug, e.Old, e.Count, e.At)
}
