//go:build linux && (amd64 || arm64)

package fakecuda_test

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

var record = flag.String("record", "", "write the driver's answers to this file instead of comparing them")

//go:embed testdata/answers.txt
var answers string

// A part of the questions is asked by a process of its own: a driver that crashes there, hangs or fails its context
// does so to this part alone.
type part struct {
	name  string
	stage int // objects that exist before
	ask   func(q *questions)
}

// The stages: nothing, cuInit, and the primary context made current.
const (
	bare = iota
	started
	current
)

func parts() []part {
	return []part{
		{"before", bare, askBefore},
		{"devices", started, askDevices},
		{"memory", current, askMemory},
		{"virtual", current, askVirtual},
		{"streams", current, askStreams},
		{"capture", current, askCapture},
		{"contexts", current, askContexts},
		{"without", current, askWithout},
		{"kernels", current, askKernels},
		{"graphs", current, askGraphs},
		{"peers", current, askPeers},
	}
}

// crashing is a part whose second and fourth questions, one of them in preparation, end the process.
func crashing() part {
	const nowhere = 8 // an address without memory
	return part{"crashing", bare, func(q *questions) {
		q.ask("first", "cuDriverGetVersion", q.out())
		q.ask("second", "cuDriverGetVersion", nowhere)
		q.ask("third", "cuDriverGetVersion", q.out())
		q.ok("cuDriverGetVersion", nowhere)
		q.ask("fifth", "cuInit", 1)
	}}
}

// TestAnswers compares the answers of the driver, mainly to mistakes, with testdata/answers.txt. The same questions go
// to the fake and, with -tags gpu, to the machine's real driver: where that answers otherwise, fix the fake. A line that
// begins with a star is not asked of the real driver, for the reason that it ends with: there
// the fake is stricter on purpose. Every difference is printed; a question that ends the process, or that is not
// answered in time, is one. -record FILE writes the answers.
func TestAnswers(t *testing.T) {
	if name := os.Getenv(partVariable); name != "" {
		askPart(t, name)
		return
	}
	open(t) // where there is something to ask
	want := readTable(t, answers)
	var got []*sheet
	for _, p := range parts() {
		got = append(got, answersOf(t, p.name, want[p.name]))
	}
	if *record != "" {
		require.NoError(t, os.WriteFile(*record, []byte(tableOf(got)), 0o644))
		return
	}
	var differing []string
	for _, sheet := range got {
		differing = append(differing, sheet.differences(want[sheet.name])...)
	}
	if len(differing) > 0 {
		t.Errorf("%d answers differ:\n%s", len(differing), strings.Join(differing, "\n"))
	}
	require.Len(t, want, len(got), "the parts of the table")
}

// askPart asks the questions of one part, in its own process.
func askPart(t *testing.T, name string) {
	t.Helper()
	q := newQuestions(t)
	var err error
	q.journal, err = openJournal(readTable(t, answers)[name])
	require.NoError(t, err)
	for _, p := range append(parts(), crashing()) {
		if p.name != name {
			continue
		}
		if p.stage >= started {
			q.ok("cuInit", 0)
		}
		if p.stage >= current {
			q.ok("cuDevicePrimaryCtxRetain", uintptr(unsafe.Pointer(&q.context)), 0)
			q.ok("cuCtxSetCurrent", q.context)
		}
		p.ask(q)
	}
	q.journal.end()
}

// mostLost is how many calls of a part may end the process before the rest of it is given up: each costs the start of
// another one.
const mostLost = 30

// answersOf asks a part in new processes until one comes to the end. A call that ends a process is not made by the next.
func answersOf(t *testing.T, name string, table *sheet) *sheet {
	t.Helper()
	lost := map[int]string{}
	for {
		path := filepath.Join(t.TempDir(), "journal")
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAnswers$", "-test.timeout=30s")
		command.Env = append(os.Environ(), partVariable+"="+name, libraryVariable+"="+library,
			journalVariable+"="+path, lostVariable+"="+lostText(lost))
		output, failure := command.CombinedOutput()
		content, err := os.ReadFile(path)
		require.NoError(t, err, "%s", output)
		sheet, reached, ended := readJournal(name, string(content), table)
		if ended {
			require.NoError(t, failure, "%s", output)
			return sheet
		}
		why := "crash"
		switch {
		case strings.Contains(string(output), "test timed out"):
			why = "no answer in 30 seconds"
		case strings.Contains(string(output), "undefined symbol"):
			why = "no such function"
		}
		if _, again := lost[reached]; again || len(lost) == mostLost {
			sheet.add("given up", fmt.Sprintf("at call %d: %s", reached, why))
			return sheet
		}
		lost[reached] = why
	}
}
