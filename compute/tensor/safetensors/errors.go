package safetensors

import (
	"fmt"
	"strconv"
)

// FormatError refuses a file that does not have the format, or tensors that a file cannot have.
type FormatError struct {
	Tensor string // name of the tensor; empty: the file as a whole
	Reason string
	Err    error // error of the JSON decoder, or nil
}

// Error names the tensor and the reason.
func (e *FormatError) Error() string {
	text := "safetensors: "
	if e.Tensor != "" {
		text += "tensor " + strconv.Quote(e.Tensor) + ": "
	}
	text += e.Reason
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the error of the JSON decoder, or nil.
func (e *FormatError) Unwrap() error { return e.Err }

// NotFoundError reports that a file has no tensor of the name.
type NotFoundError struct{ Tensor string }

// Error names the tensor.
func (e *NotFoundError) Error() string { return "safetensors: no tensor " + strconv.Quote(e.Tensor) }

// refuse returns a *FormatError for the file as a whole.
func refuse(format string, args ...any) error {
	return &FormatError{Reason: fmt.Sprintf(format, args...)}
}

// LengthError reports that bytes on the host do not have the length of a tensor.
type LengthError struct {
	Tensor       string
	Bytes, Given int64
}

// Error formats both lengths.
func (e *LengthError) Error() string {
	return fmt.Sprintf("safetensors: tensor %q has %d bytes, not %d", e.Tensor, e.Bytes, e.Given)
}
