//go:build !linux || !(amd64 || arm64)

package library

import "errors"

// Library is nothing here: libraries are opened on Linux on amd64 and arm64 only.
type Library struct{}

// Function is nothing here.
type Function uintptr

var errUnsupported = errors.New("library: libraries are opened on Linux on amd64 and arm64 only")

// Open fails.
func Open(string) (*Library, error) { return nil, errUnsupported }

// Path returns "".
func (*Library) Path() string { return "" }

// Function fails.
func (*Library) Function(string) (Function, error) { return 0, errUnsupported }

// Call returns 0. No code calls it.
func (Function) Call([]uintptr) uintptr { return 0 }
