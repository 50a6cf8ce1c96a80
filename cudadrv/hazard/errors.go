package hazard

import (
	"fmt"
	"strings"
)

// Error says that there were hazards.
type Error struct {
	Reports []Report // as Checker.Reports
	Count   uint64   // how many times hazards showed
}

// Error lists all reports, a paragraph each, after a line with their number.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "hazard: %d hazards of %d kinds and places", e.Count, len(e.Reports))
	for _, r := range e.Reports {
		b.WriteByte('\n')
		b.WriteString(r.String())
	}
	return b.String()
}
