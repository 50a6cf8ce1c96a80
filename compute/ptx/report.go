package ptx

import (
	"fmt"
	"strings"
)

// CheckError is a finding of Check.
type CheckError struct {
	Pos         Pos    // in the text of PTX; zero of a tree that a program made
	File        string // of the source: by .loc, or of the program that built the kernel; "" where neither names it
	Line        int    // in that file
	Function    string // "" outside of functions
	Instruction string // as text; "" where the finding is not about one
	Message     string
	// Lacking says that the finding is about a thing that this package does not know, and that the driver may take. A
	// loader then refuses the function at its launch, and not the module.
	Lacking bool
}

// Error names the place, the function, the instruction and the mistake.
func (e *CheckError) Error() string {
	var b strings.Builder
	b.WriteString("ptx: ")
	if e.Pos != (Pos{}) {
		fmt.Fprintf(&b, "%v: ", e.Pos)
	}
	if e.File != "" {
		fmt.Fprintf(&b, "%s:%d: ", e.File, e.Line)
	}
	if e.Function != "" {
		fmt.Fprintf(&b, "%s: ", e.Function)
	}
	if e.Instruction != "" {
		fmt.Fprintf(&b, "%s: ", e.Instruction)
	}
	b.WriteString(e.Message)
	return b.String()
}

// reporter collects findings about a module.
type reporter struct {
	module      *Module
	findings    []error
	function    *Function // the current one, or nil
	instruction *Instruction
	places      map[*Instruction]place // of instructions that a Kernel made
	begun       map[*Function]place    // of those kernels
}

// report adds a finding at a place; the function and the instruction are the current ones.
func (c *reporter) report(pos Pos, format string, args ...any) {
	c.add(&CheckError{Pos: pos, Message: fmt.Sprintf(format, args...)})
}

// reportLacking adds a finding about something that the driver may take.
func (c *reporter) reportLacking(pos Pos, format string, args ...any) {
	c.add(&CheckError{Pos: pos, Message: fmt.Sprintf(format, args...), Lacking: true})
}

func (c *reporter) add(e *CheckError) {
	if c.function != nil {
		e.Function = c.function.Name
		e.File, e.Line = c.begun[c.function].file, c.begun[c.function].line
	}
	if i := c.instruction; i != nil {
		e.Instruction = i.String()
		if i.Source != nil {
			e.File, e.Line = c.module.File(i.Source.File), i.Source.Line
		}
		if at, ok := c.places[i]; ok {
			e.File, e.Line = at.file, at.line
		}
	}
	c.findings = append(c.findings, e)
}

// has reports whether the module's version and architecture have a feature. A feature of a variant is in no other architecture.
func (c *reporter) has(n needs) bool {
	t := c.module.Target
	if n.gone && t.SM >= volta.sm && !c.module.Version.Before(volta.version) {
		return false
	}
	return !c.module.Version.Before(n.version) && (n.variant == "" && t.SM >= n.sm || t.SM == n.sm && t.Variant == n.variant)
}

// place is a line of the program that builds a kernel.
type place struct {
	file string
	line int
}
