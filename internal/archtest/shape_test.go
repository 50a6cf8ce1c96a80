package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// maxLineCount is the longest a file may be: a type with its documentation fits in 60 to 300 lines, so
// less would split ideas that belong together, and more would let a second one move in.
const maxLineCount = 500

func checkPackageComments(t *tree) []finding {
	var found []finding
	comments := map[string]int{} // by folder
	for _, s := range t.sources {
		comments[s.dir] += 0
		if s.file.Doc == nil {
			continue
		}
		comments[s.dir]++
		opening := "Package " + strings.TrimSuffix(s.file.Name.Name, "_test") + " "
		if s.file.Name.Name != "main" && !strings.HasPrefix(s.file.Doc.Text(), opening) {
			found = append(found, finding{t.place(s.file.Doc), fmt.Sprintf("the comment does not begin with %q", opening)})
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(comments)) {
		if comments[dir] == 0 {
			found = append(found, finding{dir, "the package has no comment"})
		}
	}
	return found
}

func checkFileLength(t *tree) []finding {
	var found []finding
	for _, s := range t.shipped() {
		if s.lineCount > maxLineCount && !ast.IsGenerated(s.file) {
			found = append(found, finding{s.path, fmt.Sprintf("%d lines, at most %d", s.lineCount, maxLineCount)})
		}
	}
	return found
}
