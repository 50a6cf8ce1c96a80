package pickle

import (
	"fmt"
	"iter"
	"slices"
)

// Item is a key of a Dict with its value.
type Item struct {
	Key   string
	Value any
}

// Dict is a dictionary with its keys in that order. A key that occurs twice has the later value when it is read.
type Dict []Item

// List is a list whose values are made while it is written, so that a long one is never in memory as a whole.
type List iter.Seq[any]

// Values is a list of values that are there.
func Values(values ...any) List { return List(slices.Values(values)) }

// Tuple is a tuple.
type Tuple []any

// Shared is a value that is written once: the same *Shared again is a reference to it, and one object when it is read.
type Shared struct{ Value any }

// TypeError is a value that the format has no form for here.
type TypeError struct{ Value any }

// Error names the value's type.
func (e *TypeError) Error() string {
	return fmt.Sprintf("pickle: %T is none of the types that can be written", e.Value)
}
