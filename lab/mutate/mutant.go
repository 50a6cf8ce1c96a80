package mutate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Mutant is one change of the source.
type Mutant struct {
	Package  string // from the module's root
	Function string // as a stack trace names it: "(*Core).climb"; "" outside functions
	Operator Operator
	Text     string // the changed line, or the line that is dropped: with Package, Function and Operator it names the mutant
	Nth      int    // of the mutants with that name, from 0
	File     string // from the module's root
	Line     int
	Before   string // the line as it is
	After    string // the line as the mutant has it
	Hash     string // of the function's source

	file  *source
	wraps []wrap
}

// A wrap puts texts before and after a part of a file, and replaces a token in it. Parts of the wraps of a file contain each
// other or are disjoint.
type wrap struct {
	begin, end    int
	before, after string // with `number` for the mutant's number
	token         [2]int // a range that is replaced by a comma; none if empty
}

// Key names the mutant in the cache.
func (m *Mutant) Key() string {
	return fmt.Sprintf("%s | %s | %s | %s | %d", m.Package, m.Function, m.Operator, m.Text, m.Nth)
}

// Place returns the file and line.
func (m *Mutant) Place() string { return fmt.Sprintf("%s:%d", m.File, m.Line) }

// describe fills in the texts of a mutant that replaces a range of its file by another text.
func (m *Mutant) describe(begin, end int, replacement string) {
	text := m.file.text
	first := strings.LastIndexByte(text[:begin], '\n') + 1
	last := len(text)
	if i := strings.IndexByte(text[end:], '\n'); i >= 0 {
		last = end + i
	}
	m.Before = oneLine(text[first:last])
	m.After = oneLine(text[first:begin] + replacement + text[end:last])
	m.Text = m.After
	if strings.HasPrefix(string(m.Operator), "drop ") && m.Operator != DropError {
		m.Text = m.Before
	}
}

// oneLine joins lines, and cuts the result to the width of a screen.
func oneLine(text string) string {
	const most = 160
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
}

func hashOf(texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		_, _ = fmt.Fprintf(h, "%d %s", len(text), text) // a hash returns no errors
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
