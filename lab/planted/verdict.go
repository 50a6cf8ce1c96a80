package planted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Verdict is the result of planting a bug.
type Verdict uint8

// The verdicts.
const (
	Broken  Verdict = iota // an edit does not apply, the result does not build, or the tests ended without a verdict
	Missed                 // the tests pass
	Expired                // the tests ran out of time
	Found                  // a test failed
	Skipped                // no time was left
)

// String returns a word.
func (v Verdict) String() string {
	return [...]string{"broken", "missed", "out of time", "found", "skipped"}[v]
}

// event is a line of go test -json.
type event struct {
	Action string
	Test   string
	Output string
}

// judge reads the output and errors of go test -json, and its exit. test is the first failed test: of subtests the innermost.
func judge(said []byte, complained string, ended error) (v Verdict, test, detail string) {
	var output strings.Builder
	expired := false
	tests := 0
	for line := range bytes.Lines(said) {
		var e event
		if json.Unmarshal(line, &e) != nil {
			continue // the go command has no events for all that it says
		}
		output.WriteString(e.Output)
		// testing says so when it ends the process; the tests at work then fail with it.
		expired = expired || strings.HasPrefix(e.Output, "panic: test timed out after")
		switch {
		case e.Test == "":
		case e.Action == "fail" && test == "":
			test = e.Test
		case e.Action == "run":
			tests++
		}
	}
	detail = tail(output.String() + complained)
	switch {
	case expired:
		return Expired, "", detail
	case test != "":
		return Found, test, ""
	case ended == nil && tests > 0:
		return Missed, "", ""
	case ended == nil:
		return Broken, "", "no test has that name"
	default:
		return Broken, "", fmt.Sprintf("%s%v", detail, ended)
	}
}

// tail returns the end of a text: a screen of it.
func tail(text string) string {
	const most = 2000
	if len(text) <= most {
		return text
	}
	return "…" + text[len(text)-most:]
}
