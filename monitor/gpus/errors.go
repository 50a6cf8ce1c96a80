package gpus

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-vram/vram/cudadrv"
)

// ErrClosed refuses a question after Reader.Close.
var ErrClosed = errors.New("gpus: closed")

// ErrNotOpen refuses a call on a nil or zero Reader.
var ErrNotOpen = cudadrv.ErrNotOpen

// ErrNoLibrary is the kind of every *LibraryError.
var ErrNoLibrary = errors.New("gpus: no NVML library")

// ErrNotListed reports that no listed device is the GPU that was asked for.
var ErrNotListed = errors.New("gpus: NVML does not list the GPU")

// LibraryError says that NVML could not be opened. It is ErrNoLibrary.
type LibraryError struct {
	Tried []string // names and paths, in order
	Errs  []error  // the system's error for each
}

// Error lists the attempts, and advice.
func (e *LibraryError) Error() string {
	tried := make([]string, 0, len(e.Errs))
	for _, err := range e.Errs {
		tried = append(tried, strings.TrimPrefix(err.Error(), "library: "))
	}
	return fmt.Sprintf("%v (%s): it comes with NVIDIA's driver; a container needs the capability utility in NVIDIA_DRIVER_CAPABILITIES",
		ErrNoLibrary, strings.Join(tried, "; "))
}

// Is makes errors.Is(err, ErrNoLibrary) hold.
func (e *LibraryError) Is(target error) bool { return target == ErrNoLibrary }

// Unwrap returns the system's errors.
func (e *LibraryError) Unwrap() []error { return e.Errs }

// SymbolError says that a library lacks functions without which no device can be listed.
type SymbolError struct {
	Library string
	Symbols []string
}

// Error names the functions.
func (e *SymbolError) Error() string {
	return fmt.Sprintf("gpus: %s lacks %s: is it NVML of a driver of 2021 or later?", e.Library, strings.Join(e.Symbols, ", "))
}

// CallError is a call of NVML that failed.
type CallError struct {
	Func string // as nvml.h names it
	Code int    // nvmlReturn_t
	Text string // NVML's description; "": it has none
}

// Error names the function, the code and its description.
func (e *CallError) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("gpus: %s: error %d", e.Func, e.Code)
	}
	return fmt.Sprintf("gpus: %s: error %d: %s", e.Func, e.Code, e.Text)
}

// AnswerError is an answer of NVML that cannot be right, or a function that is missing.
type AnswerError struct {
	Func   string
	Answer string
}

// Error names the function and its answer.
func (e *AnswerError) Error() string { return fmt.Sprintf("gpus: %s: %s", e.Func, e.Answer) }
