package ptx

import (
	"errors"
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

// Check finds mistakes in a module: the error joins a *CheckError for each, first for declarations and then for bodies, and is
// nil without any.
// It looks at each instruction's form, types and operands, at the version and the architecture that they need, and at
// declarations. A module without findings is one that the driver's compiler accepts, as far as the table of instructions goes;
// it may still compute nonsense.
func Check(m *Module) error { return errors.Join(newChecker(m).check()...) }

// CheckFunctions is Check for the declarations of a module and the bodies of the given functions: a module of many
// kernels is checked a kernel at a time.
func CheckFunctions(m *Module, functions ...*Function) error {
	c := newChecker(m)
	c.only = map[*Function]bool{}
	for _, f := range functions {
		c.only[f] = true
	}
	return errors.Join(c.check()...)
}

func newChecker(m *Module) *checker {
	return &checker{module: m, codes: map[*Function]*Code{}, byName: map[nameKey][]*form{}, forms: map[Opcode][]form{}}
}

// check are the findings.
func (c *checker) check() []error {
	c.checkModule()
	c.remark()
	return c.findings
}

// checker collects findings about a module.
type checker struct {
	module     *Module
	only       map[*Function]bool // the functions whose bodies are looked at; nil: all
	findings   []error
	symbols    map[string]*Variable   // of the module, by name
	prototypes map[string][]*Function // by name, in the order of the text
	codes      map[*Function]*Code
	byName     map[nameKey][]*form
	forms      map[Opcode][]form // the rows of the opcodes that were met

	function    *Function          // or nil
	code        *Code              // of the function
	variables   map[*Variable]bool // that the function sees
	instruction *Instruction
	places      map[*Instruction]place // of instructions that a Kernel made
	begun       map[*Function]place    // of those kernels
}

// enter makes a function the current one.
func (c *checker) enter(f *Function) {
	c.function, c.code, c.variables = f, c.codeOf(f), map[*Variable]bool{}
	for _, list := range [][]*Variable{c.module.Variables, f.Results, f.Params, c.code.Variables} {
		for _, v := range list {
			c.variables[v] = true
		}
	}
}

func (c *checker) leave() { c.function, c.code, c.variables = nil, nil, nil }

// report adds a finding at a place; the function and the instruction are the current ones.
func (c *checker) report(pos Pos, format string, args ...any) {
	c.add(&CheckError{Pos: pos, Message: fmt.Sprintf(format, args...)})
}

// reportLacking adds a finding about something that the driver may take.
func (c *checker) reportLacking(pos Pos, format string, args ...any) {
	c.add(&CheckError{Pos: pos, Message: fmt.Sprintf(format, args...), Lacking: true})
}

func (c *checker) add(e *CheckError) {
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
