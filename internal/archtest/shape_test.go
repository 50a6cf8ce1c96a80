package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// maxLineCount bounds the lines of a file, so that a reader can scroll it.
const maxLineCount = 1000

// rootFiles lists the files of the root package.
func rootFiles() []string {
	return []string{
		"doc.go", "device.go", "stream.go", "config.go", "env.go", "events.go", "stats.go", "inspect.go", "set.go", "errors.go",
		"example_test.go", "house_test.go",
	}
}

func checkRootFiles(t *tree) []finding {
	var found []finding
	for _, s := range t.sources {
		if s.dir == rootDir && !slices.Contains(rootFiles(), s.path) {
			found = append(found, finding{s.path, "the root has ten files and two tests; tests of the exported interface belong to internal/acceptance"})
		}
	}
	return found
}

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
