package cublaslt

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-vram/vram/cuda/gemm"
)

// ErrForbidden is within the *AbsentError where VRAM_CUBLASLT is "off".
var ErrForbidden = errors.New("cublaslt: VRAM_CUBLASLT is off")

// ErrUnsupported refuses a problem that the library does not compute. Errors of type *UnsupportedError are it.
var ErrUnsupported = errors.New("cublaslt: the library does not compute this")

// AbsentError is the absence of a usable library.
type AbsentError struct {
	Tried []string
	Errs  []error // one for each that was tried
}

// Error names the files that were tried, and why each failed.
func (e *AbsentError) Error() string {
	if len(e.Tried) == 0 {
		return "cublaslt: no library: " + strings.TrimPrefix(fmt.Sprint(errors.Join(e.Errs...)), "cublaslt: ")
	}
	return fmt.Sprintf("cublaslt: no library: tried %s: %v", strings.Join(e.Tried, ", "), e.Errs[0])
}

// Unwrap returns the reasons.
func (e *AbsentError) Unwrap() []error { return e.Errs }

// UnsupportedError refuses a problem that the library does not compute.
type UnsupportedError struct {
	Problem gemm.Problem
	Status  Status // of the question for an algorithm
}

// Error names the problem and the status.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("cublaslt: the library does not compute %v: %v", e.Problem, e.Status)
}

// Is reports whether the target is ErrUnsupported.
func (e *UnsupportedError) Is(target error) bool { return target == ErrUnsupported }

// Status is a cublasStatus_t.
type Status int32

// The statuses that callers tell apart.
const (
	Success        Status = 0
	NotSupported   Status = 15
	InvalidValue   Status = 7
	NotInitialized Status = 1
)

// String returns the library's name of the status.
func (s Status) String() string {
	switch s {
	case Success:
		return "CUBLAS_STATUS_SUCCESS"
	case NotInitialized:
		return "CUBLAS_STATUS_NOT_INITIALIZED"
	case 3:
		return "CUBLAS_STATUS_ALLOC_FAILED"
	case InvalidValue:
		return "CUBLAS_STATUS_INVALID_VALUE"
	case 8:
		return "CUBLAS_STATUS_ARCH_MISMATCH"
	case 11:
		return "CUBLAS_STATUS_MAPPING_ERROR"
	case 13:
		return "CUBLAS_STATUS_EXECUTION_FAILED"
	case 14:
		return "CUBLAS_STATUS_INTERNAL_ERROR"
	case NotSupported:
		return "CUBLAS_STATUS_NOT_SUPPORTED"
	case 16:
		return "CUBLAS_STATUS_LICENSE_ERROR"
	}
	return fmt.Sprintf("cublasStatus_t %d", int32(s))
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// StatusError is a call of the library that failed.
type StatusError struct {
	Func   string
	Status Status
}

// Error names the function and the status.
func (e *StatusError) Error() string { return fmt.Sprintf("cublaslt: %s: %v", e.Func, e.Status) }
