package mutate

// Operator is a kind of mistake.
type Operator string

// The operators. The first group changes an expression, the second one statements.
const (
	Negate      Operator = "negate"          // a condition, an operand of && and ||, a returned bool
	IgnoreError Operator = "ignore error"    // err != nil in a condition is false
	DropError   Operator = "drop error"      // nil is returned, not the error
	Boundary    Operator = "boundary"        // < for <=, and so on
	PlusOne     Operator = "plus one"        // a constant
	Arithmetic  Operator = "arithmetic"      // + for -, and the reverse
	Overflow    Operator = "overflow"        // a+c > b for a > b-c, and so with shifts and quotients: the same unless it overflows
	Table       Operator = "change table"    // a constant in a composite literal
	SwapArgs    Operator = "swap arguments"  // neighbours of one type
	ReturnEarly Operator = "return early"    // zero values, before the first statement
	DropCall    Operator = "drop call"       // a call that is a statement
	DropRelease Operator = "drop release"    // a call that frees, closes or unlocks
	DropDefer   Operator = "drop defer"      //
	DropAssign  Operator = "drop assignment" // to a variable or field
	DropCount   Operator = "drop count"      // x++ and x += n
	DropUpdate  Operator = "drop update"     // of a map or slice: m[k] = v, delete, append
	SwapAtomics Operator = "swap atomics"    // neighbouring statements with atomic operations
	AlwaysSwap  Operator = "always swap"     // a CompareAndSwap that stores whatever the value is: what it was compared with has changed
	OtherName   Operator = "other name"      // another variable, field, constant or error of the same type
	SwapSteps   Operator = "swap steps"      // neighbouring statements, one of which calls something or leaves the function
	SkipEnd     Operator = "skip end"        // the first or the last of several is left out
	OtherJump   Operator = "other jump"      // break for continue, and the reverse
	CallNow     Operator = "call now"        // a deferred call happens at once
	SplitAdd    Operator = "split add"       // Load and Store for an atomic Add
)

// Operators returns all operators.
func Operators() []Operator {
	return []Operator{
		Negate, IgnoreError, DropError, Boundary, PlusOne, Arithmetic, Overflow, Table, SwapArgs, ReturnEarly,
		DropCall, DropRelease, DropDefer, DropAssign, DropCount, DropUpdate, SwapAtomics, AlwaysSwap,
		OtherName, SwapSteps, SkipEnd, OtherJump, CallNow, SplitAdd,
	}
}
