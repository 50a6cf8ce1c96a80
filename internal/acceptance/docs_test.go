//go:build !race

// These tests read sources: the race detector would only slow them.

package acceptance_test

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
)

// leftAligned removes spaces at the beginning and end of each line, and empty lines at both ends.
func leftAligned(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.Join(strings.Fields(lines[i]), " ") // comments are aligned otherwise elsewhere
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// untested returns the Go blocks of a page that no source contains.
func untested(page string, sources map[string]string) (blocks []string) {
	for _, part := range strings.Split(page, "```go\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		found := false
		for _, source := range sources {
			found = found || strings.Contains("\n"+source+"\n", "\n"+leftAligned(block)+"\n")
		}
		if !found {
			blocks = append(blocks, block)
		}
	}
	return blocks
}

// Every Go block of the docs is part of a test or of an example program, which a test runs.
func TestEveryGoBlockOfTheDocsIsTested(t *testing.T) {
	sources := filesOf(t, func(path string) bool {
		return strings.HasSuffix(path, "_test.go") && path != "internal/acceptance/docs_test.go" ||
			strings.HasPrefix(path, "examples") && filepath.Ext(path) == ".go"
	})
	for path, text := range sources {
		sources[path] = leftAligned(text)
	}
	for path, page := range pages(t) {
		for _, block := range untested(page, sources) {
			assert.Fail(t, "no test has this block", "%s:\n%s", path, block)
		}
	}
	assert.Len(t, untested("```go\nno(such, code)\n```\n", sources), 1)
}

// Every example program has a test that runs it.
func TestEveryExampleIsRun(t *testing.T) {
	programs, err := os.ReadDir(inModule("examples"))
	require.NoError(t, err)
	require.NotEmpty(t, programs)
	for _, program := range programs {
		if program.IsDir() && program.Name() != "internal" { // the shared packages have tests of their own
			tests, err := filepath.Glob(inModule("examples", program.Name(), "*_test.go"))
			require.NoError(t, err)
			assert.NotEmpty(t, tests, program.Name())
		}
	}
}

// Every link of a page to a file of the module leads to one, and to a heading that it has.
func TestEveryLinkOfTheDocsLeadsSomewhere(t *testing.T) {
	all := pages(t)
	link := regexp.MustCompile(`\]\(([^)\s]*)\)`)
	code := regexp.MustCompile("(?s)```.*?```") // in which Read[float32](x) is a call
	count := 0
	for from, page := range all {
		for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(page, ""), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			count++
			target, heading, _ := strings.Cut(match[1], "#")
			file := from
			if target != "" {
				file = filepath.Join(filepath.Dir(from), target)
				_, err := os.Stat(inModule(file))
				assert.NoError(t, err, "%s links to %s", from, match[1])
			}
			if heading != "" {
				assert.True(t, headings(all[file])[heading], "%s links to %s", from, match[1])
			}
		}
	}
	assert.Positive(t, count)
	assert.Equal(t, map[string]bool{"a-page": true, "whats-new-and-c": true}, headings("# A page\n\ntext # no\n\n### What's new, and `C`\n"))
}

// headings returns the anchors of a page's headings.
func headings(page string) map[string]bool {
	anchors := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		anchor := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(match[1]), "")
		anchors[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	return anchors
}

// Every example of the root belongs to something that its documentation has: a type that is an
// alias has no methods there, so the name of an example of a method is the type's, and the method's
// in lower case.
func TestEveryExampleIsShown(t *testing.T) {
	files := token.NewFileSet()
	var sources []*ast.File
	want := 0
	for path, text := range filesOf(t, func(path string) bool { return filepath.Dir(path) == "." && filepath.Ext(path) == ".go" }) {
		file, err := parser.ParseFile(files, path, text, parser.ParseComments)
		require.NoError(t, err)
		sources = append(sources, file)
		want += strings.Count(text, "\nfunc Example")
	}
	page, err := doc.NewFromFiles(files, sources, "github.com/go-vram/vram")
	require.NoError(t, err)
	shown := len(page.Examples)
	for _, of := range page.Types {
		shown += len(of.Examples)
		for _, f := range append(of.Funcs, of.Methods...) {
			shown += len(f.Examples)
		}
	}
	for _, f := range page.Funcs {
		shown += len(f.Examples)
	}
	assert.Equal(t, want, shown)
}

// The methods that the root's documentation links to are there, and its program is one that runs.
func TestTheRootsDocumentationHolds(t *testing.T) {
	types := map[string]reflect.Type{
		"Stream": reflect.TypeFor[*vram.Stream](), "Buffer": reflect.TypeFor[*vram.Buffer](),
		"Use": reflect.TypeFor[*vram.Use](), "Batch": reflect.TypeFor[*vram.Batch](),
	}
	link := regexp.MustCompile(`\[streams\.(\w+)\.(\w+)\]`)
	linked := 0
	for path, text := range filesOf(t, func(path string) bool {
		return filepath.Dir(path) == "." && filepath.Ext(path) == ".go" && !strings.HasSuffix(path, "_test.go")
	}) {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			linked++
			require.Contains(t, types, match[1], path)
			_, found := types[match[1]].MethodByName(match[2])
			assert.True(t, found, "%s links to %s", path, match[0])
		}
	}
	assert.Greater(t, linked, 20)

	text, err := os.ReadFile(inModule("doc.go"))
	require.NoError(t, err)
	_, use, found := strings.Cut(string(text), "// # Use\n//\n")
	require.True(t, found)
	use, _, _ = strings.Cut(use, "//\n")
	program, err := os.ReadFile(inModule("examples", "hello", "main.go"))
	require.NoError(t, err)
	assert.Contains(t, leftAligned(string(program)), leftAligned(strings.ReplaceAll(use, "//\t", "")))
}

// pageColumns bounds the lines of pages, so that a terminal and a review show them whole.
const pageColumns = 160

// wideLines returns the numbers of a page's lines over pageColumns, outside blocks of code, which show programs and their
// output.
func wideLines(page string) (numbers []int) {
	code := false
	for i, line := range strings.Split(page, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		}
		if !code && utf8.RuneCountInString(line) > pageColumns {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

// The README is a landing page: 900 words are what a reader takes in before the first try. A word has a letter or a digit;
// code counts.
func TestTheReadmeIsShort(t *testing.T) {
	words := strings.FieldsFunc(pages(t)["README.md"], unicode.IsSpace)
	words = slices.DeleteFunc(words, func(w string) bool {
		return !strings.ContainsFunc(w, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
	})
	assert.LessOrEqual(t, len(words), 900)
	assert.Greater(t, len(words), 400, "it is not cut off")
}

// No line of the pages for users and contributors is wider than a review shows it: tables hold facts, and paragraphs are text.
func TestNoLineOfTheDocsIsWide(t *testing.T) {
	checked := 0
	for path, page := range pages(t) {
		if dir := filepath.Dir(path); dir == "." || dir == "docs" {
			checked++
			assert.Empty(t, wideLines(page), path)
		}
	}
	assert.Greater(t, checked, 25)
	wide := strings.Repeat("é", pageColumns+1)
	assert.Equal(t, []int{5}, wideLines(wide[2:]+"\n```text\n"+wide+"\n```\n"+wide))
}

// unheld returns the first lines of a page's outputs (blocks of text) that neither a source prints nor an example's documented_test.go
// compares, and that are not declared an example of a run.
func unheld(page string, sources string, compared func(example string) bool) (outputs []string) {
	for section := range strings.SplitSeq(page, "\n## ") {
		parts := strings.Split(section, "```text\n")
		for i, part := range parts[1:] {
			output, _, _ := strings.Cut(part, "\n```")
			if strings.Contains(lastParagraph(parts[i]), "xample of a run") {
				continue
			}
			held := slices.ContainsFunc(regexp.MustCompile(`examples/(\w+)\)`).FindAllStringSubmatch(parts[0], -1), func(m []string) bool { return compared(m[1]) })
			for line := range strings.Lines(output) {
				if !held && !strings.Contains(sources, strings.TrimSpace(line)) {
					outputs = append(outputs, strings.TrimSpace(line))
					break
				}
			}
		}
	}
	return outputs
}

func lastParagraph(text string) string {
	text = strings.TrimSpace(text)
	return text[max(0, strings.LastIndex(text, "\n\n")):]
}

// Every printed output of the pages is held by a test, or says that it is an example of a run.
func TestEveryOutputOfTheDocsIsHeld(t *testing.T) {
	var sources strings.Builder
	for _, text := range filesOf(t, func(path string) bool { return strings.HasSuffix(path, "_test.go") }) {
		sources.WriteString(text)
	}
	compared := func(example string) bool {
		_, err := os.Stat(inModule("examples", example, "documented_test.go"))
		return err == nil
	}
	for path, page := range pages(t) {
		if dir := filepath.Dir(path); dir == "." || dir == "docs" {
			assert.Empty(t, unheld(page, sources.String(), compared), path)
		}
	}
	page := "An example of a run:\n\n```text\nfree\n```\n\n```text\nheld\n```\n\n```text\nloose\n```\n\n## [a](examples/a)\n\n```text\nby a\n```\n"
	assert.Equal(t, []string{"loose"}, unheld(page, "held", func(example string) bool { return example == "a" }))
}

// Every make target that a page's block names is one.
func TestEveryMakeTargetOfTheDocsExists(t *testing.T) {
	makefile, err := os.ReadFile(inModule("Makefile"))
	require.NoError(t, err)
	called := regexp.MustCompile("(?m)^make ([a-z-]+)|`make ([a-z-]+)")
	count := 0
	for path, page := range pages(t) {
		for _, match := range called.FindAllStringSubmatch(page, -1) {
			count++
			target := match[1] + match[2]
			assert.Regexp(t, fmt.Sprintf("(?m)^%s:", target), string(makefile), "%s calls make %s", path, target)
		}
	}
	assert.Positive(t, count)
}

// The table of conformance scenarios has every number that it must, and names tests that there are.
func TestTheConformanceTableHolds(t *testing.T) {
	page, err := os.ReadFile(inModule("docs", "conformance.md"))
	require.NoError(t, err)
	var tests strings.Builder
	for _, text := range filesOf(t, func(path string) bool {
		return filepath.Dir(path) == "internal/acceptance" && strings.HasSuffix(path, "_test.go")
	}) {
		tests.WriteString(text)
	}
	numbers := map[int]bool{}
	named := regexp.MustCompile("`(Test[A-Za-z]+)`")
	for line := range strings.Lines(string(page)) {
		var number int
		if _, err := fmt.Sscanf(line, "| %d |", &number); err != nil {
			continue
		}
		numbers[number] = true
		names := named.FindAllStringSubmatch(line, -1)
		assert.NotEmpty(t, names, line)
		for _, name := range names {
			assert.Contains(t, tests.String(), "func "+name[1]+"(t *testing.T)")
		}
	}
	for _, number := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 33, 34, 35, 36, 37} {
		assert.True(t, numbers[number], "scenario %d", number)
	}
}

// The error of a device's Close says which buffers leaked: nothing that shows how to use a device loses it.
func TestNobodyIsShownToLoseTheErrorOfClose(t *testing.T) {
	loses := regexp.MustCompile(`defer (dev|device|d|h)\.Close\(\)`)
	shown := filesOf(t, func(path string) bool {
		return filepath.Ext(path) == ".md" || filepath.Base(path) == "doc.go" || filepath.Base(path) == "example_test.go" ||
			strings.HasPrefix(path, "examples") && filepath.Ext(path) == ".go"
	})
	require.Contains(t, shown, "README.md")
	require.Contains(t, shown, filepath.Join("examples", "quickstart", "main.go"))
	for path, text := range shown {
		assert.Empty(t, loses.FindString(text), path)
	}
}
