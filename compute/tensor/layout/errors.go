package layout

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrTooLarge refuses a shape whose number of elements, or a layout whose places, an int cannot hold.
	ErrTooLarge = errors.New("layout: too many elements")
	// ErrRank refuses more dimensions than MaxRank.
	ErrRank = fmt.Errorf("layout: more than %d dimensions", MaxRank)
)

// ShapeError refuses shapes that an operation cannot have, or cannot have together.
type ShapeError struct {
	Op     string // "reshape"
	Shapes [][]int
	Detail string // such as "dimension 3 of 2"; "" where the shapes say it all
	Err    error  // ErrTooLarge, ErrRank or nil
}

// Error names the operation and the shapes.
func (e *ShapeError) Error() string {
	var b strings.Builder
	b.WriteString("tensor: " + e.Op)
	for i, s := range e.Shapes {
		if i > 0 {
			b.WriteString(" and")
		}
		fmt.Fprintf(&b, " %v", s)
	}
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap is the kind: ErrTooLarge, ErrRank or nothing.
func (e *ShapeError) Unwrap() error { return e.Err }

// IndexError refuses an index, or a range of indices, that a dimension does not have.
type IndexError struct {
	Op          string
	Dim         int
	First, Last int // the range; of one index both are the same
	Step        int // 0 for one index
	Length      int // of the dimension
}

// Error names the dimension and its length.
func (e *IndexError) Error() string {
	switch {
	case e.Op == "index":
		return fmt.Sprintf("tensor: index %d of dimension %d, which has length %d", e.First, e.Dim, e.Length)
	case e.Step == 1:
		return fmt.Sprintf("tensor: %s: %d to %d of dimension %d, which has length %d", e.Op, e.First, e.Last, e.Dim, e.Length)
	}
	return fmt.Sprintf("tensor: %s: %d to %d by %d of dimension %d, which has length %d", e.Op, e.First, e.Last, e.Step, e.Dim, e.Length)
}

// LayoutError refuses a layout: no strides make the wanted view of it, or an operation cannot have it.
type LayoutError struct { //nolint:revive // the name that it has in package tensor
	Op     string
	Layout Layout
	Want   []int // the wanted shape, or nil
	Detail string
}

// Error names the layout and the reason.
func (e *LayoutError) Error() string {
	if e.Want == nil {
		return fmt.Sprintf("tensor: %s %v: %s", e.Op, e.Layout, e.Detail)
	}
	return fmt.Sprintf("tensor: %s %v to %v: %s", e.Op, e.Layout, e.Want, e.Detail)
}
