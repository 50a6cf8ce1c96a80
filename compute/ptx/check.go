package ptx

import "errors"

// Check finds mistakes in a module: the error joins a *CheckError for each, first for declarations and then for bodies, and is
// nil without any.
// It looks at each instruction's form, types and operands, at the version and the architecture that they need, and at
// declarations. A module without findings is one that the driver's compiler accepts, as far as the table of instructions goes;
// it may still compute nonsense. A nil module is a mistake.
func Check(m *Module) error {
	if m == nil {
		return &CheckError{Message: "the module is nil"}
	}
	return errors.Join(newChecker(m).check()...)
}

// CheckFunctions is Check for the declarations of a module and the bodies of the given functions: a module of many
// kernels is checked a kernel at a time.
func CheckFunctions(m *Module, functions ...*Function) error {
	if m == nil {
		return Check(m)
	}
	c := newChecker(m)
	c.only = map[*Function]bool{}
	for _, f := range functions {
		c.only[f] = true
	}
	return errors.Join(c.check()...)
}

func newChecker(m *Module) *checker {
	d := &declarations{reporter: &reporter{module: m}, codes: map[*Function]*Code{}}
	return &checker{declarations: d, forms: newFormTable(d.reporter)}
}

// check returns the findings.
func (c *checker) check() []error {
	c.checkModule()
	c.remark()
	return c.findings
}
