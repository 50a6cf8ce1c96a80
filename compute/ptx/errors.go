package ptx

import (
	"fmt"
	"strconv"
)

// SyntaxError is a text that is not PTX, or PTX that this package does not know; Parse returns it.
type SyntaxError struct {
	Pos     Pos
	Message string
}

// Error is line:column: message.
func (e *SyntaxError) Error() string { return fmt.Sprintf("ptx: %v: %s", e.Pos, e.Message) }

// quote returns a piece of text for a message.
func quote(text string) string { return strconv.Quote(text) }
