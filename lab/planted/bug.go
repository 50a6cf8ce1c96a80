package planted

import (
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
	Edits   []Edit
}

// Promise is a promise of the design, and bugs that break it.
type Promise struct {
	Says string
	Bugs []Bug
}

// Named returns the bugs whose names contain the word; all for "". Errors: *SyntaxError.
func Named(word string) (bugs []Bug, err error) {
	promises, err := Promises()
	for _, p := range promises {
		for _, b := range p.Bugs {
			if strings.Contains(b.Name, word) {
				bugs = append(bugs, b)
			}
		}
	}
	return bugs, err
}

// Touched returns the bugs that edit a package of the files, or whose tests are in one. Files are named from the module's root.
func Touched(bugs []Bug, files []string) (touched []Bug) {
	changed := map[string]bool{}
	for _, file := range files {
		changed[path.Dir(file)] = true
	}
	for _, b := range bugs {
		edits := slices.ContainsFunc(b.Edits, func(e Edit) bool {
			dir, _ := splitAnchor(e.At)
			return changed[dir]
		})
		if edits || changed[b.Package] {
			touched = append(touched, b)
		}
	}
	return touched
}
