//go:build linux && (amd64 || arm64)

package fakecuda_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/go-vram/vram/cudadrv"
)

// The environment of a process that asks one part.
const (
	partVariable    = "FAKECUDA_TEST_PART"    // which part
	libraryVariable = "FAKECUDA_TEST_LIBRARY" // of which library
	journalVariable = "FAKECUDA_TEST_JOURNAL" // the file to write to
	lostVariable    = "FAKECUDA_TEST_LOST"    // calls that are not to be made, as lostText has them
)

// notMade is the result of a call that is not made: none of CUDA's, -1.
const notMade = ^uintptr(0)

// A journal says how far a process came: each call before it is made, and each answer. Its lines are
//
//	> NUMBER NAME of a call
//	= KEY: ANSWER
//	. at the end
type journal struct {
	file  *os.File
	table *sheet         // questions that hardware is not asked
	skip  map[int]string // calls that ended earlier processes, by number, and how
	calls int
	lost  string         // how the call that was made last ended an earlier process; "": it did not
	seen  map[string]int // how often each key was left out or answered
}

func openJournal(table *sheet) (*journal, error) {
	file, err := os.Create(os.Getenv(journalVariable))
	return &journal{file: file, table: table, skip: lostCalls(os.Getenv(lostVariable)), seen: map[string]int{}}, err
}

// call writes a call down, or reports false where it is not to be made.
func (j *journal) call(name string) bool {
	j.calls++
	j.write("> %d %s", j.calls, name)
	j.lost = j.skip[j.calls]
	return j.lost == ""
}

// prepared writes down that a call failed that questions need. They are asked all the same.
func (j *journal) prepared(name string, result cudadrv.Result) {
	switch {
	case j.lost != "":
		j.answer("needed, "+name, j.lost)
	case result != 0:
		j.answer("needed, "+name, result.String())
	}
}

// leftOut is the answer in the table, where the next question of that key is not asked of hardware.
func (j *journal) leftOut(key string) (answer string, left bool) {
	if !hardware || j.table == nil {
		return "", false
	}
	a, found := j.table.find(key, j.seen[key])
	return a.value, found && a.reason != ""
}

func (j *journal) answer(key, answer string) {
	j.seen[key]++
	j.write("= %s: %s", key, answer)
}

func (j *journal) end() { j.write(".") }

// write is not buffered: the next call may end the process.
func (j *journal) write(format string, args ...any) {
	if _, err := fmt.Fprintf(j.file, format+"\n", args...); err != nil {
		panic(err)
	}
}

// readJournal is the answers, the number of the last call, and whether the process came to the end.
func readJournal(name, content string, table *sheet) (s *sheet, reached int, ended bool) {
	s = &sheet{name: name, reasons: table}
	for line := range strings.Lines(content) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch kind {
		case ">":
			number, _, _ := strings.Cut(rest, " ")
			reached, _ = strconv.Atoi(number)
		case "=":
			key, value, _ := strings.Cut(rest, ": ")
			s.add(key, value)
		case ".":
			ended = true
		}
	}
	return s, reached, ended
}

// lostText writes calls and how they ended: "7=crash;12=crash".
func lostText(lost map[int]string) string {
	var text []string
	for _, call := range slices.Sorted(maps.Keys(lost)) {
		text = append(text, fmt.Sprintf("%d=%s", call, lost[call]))
	}
	return strings.Join(text, ";")
}

func lostCalls(text string) map[int]string {
	lost := map[int]string{}
	for item := range strings.SplitSeq(text, ";") {
		number, why, _ := strings.Cut(item, "=")
		if call, err := strconv.Atoi(number); err == nil {
			lost[call] = why
		}
	}
	return lost
}
