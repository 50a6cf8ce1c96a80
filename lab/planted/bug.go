package planted

import (
	"fmt"
	"slices"
	"strings"
)

// Edit replaces a text of a function, or of a file.
type Edit struct {
	// At is a function of a package by the name that stack traces have, from the module's root: "internal/pool/core.(*Core).climb",
	// "futures.First", "vram.Open" in the root; it may move to any file of its folder. What stands in no function, or in the
	// comment above one, is found by its file: "internal/pool/core/policy.go". So is what a package embeds: "monitor/page/static/page.css".
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

// Bugs are all that there are, in the order of the layers, from the ground up.
func Bugs() []Bug {
	return slices.Concat(
		driverBugs(),
		computeBugs(),
		foundationBugs(),
		poolBugs(),
		rootBugs(),
		mapBugs(),
		statsBugs(),
		aheadBugs(),
		budgetBugs(),
		movesBugs(),
		magazineBugs(),
		samplingBugs(),
		streamBugs(),
		useBugs(),
		captureBugs(),
		growthBugs(),
		waitBugs(),
		refusalBugs(),
		reclaimBugs(),
		deadlockBugs(),
		edgeBugs(),
		futureBugs(),
		dynamicBugs(),
		otherWayBugs(),
		foundBugs(),
		panicBugs(),
		callerBugs(),
		holderBugs(),
		ageBugs(),
		cudaBugs(),
		shareBugs(),
		adviceBugs(),
		sleepBugs(),
		hostBugs(),
		peerBugs(),
		tensorBugs(),
		ptxBugs(),
		matmulBugs(),
		kernelBugs(),
		storeBugs(),
		tuneBugs(),
		opsBugs(),
		resultBugs(),
		gradientBugs(),
		numberBugs(),
		interpBugs(),
		executionBugs(),
		warpgroupBugs(),
		writtenBugs(),
	)
}

// Named are the bugs whose names contain the word; all for "".
func Named(word string) []Bug {
	return slices.DeleteFunc(Bugs(), func(b Bug) bool { return !strings.Contains(b.Name, word) })
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
