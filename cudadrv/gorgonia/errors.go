//go:build gorgonia && cgo && linux && (amd64 || arm64)

package gorgonia

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// failed is the error of a call, or nil where there is none. An error that is a *cudadrv.CallError stays as it is.
func failed(c call.Call, err error, format string, args ...any) error {
	var known *cudadrv.CallError
	if err == nil || errors.As(err, &known) {
		return err
	}
	return &cudadrv.CallError{Func: c.String(), Result: resultOf(err), Name: nameOf(err), Detail: fmt.Sprintf(format, args...)}
}

// refuse is the error of a call that is not passed to the driver.
func refuse(c call.Call, r cudadrv.Result, format string, args ...any) error {
	return &cudadrv.CallError{Func: c.String(), Result: r, Detail: fmt.Sprintf(format, args...)}
}

func errClosed(c call.Call) error { return refuse(c, cudadrv.InvalidContext, "the device is closed") }

// resultOf is the CUresult in an error of gorgonia.org/cu. Its type has no name outside of there: hence the
// reflection, on the way of errors only.
func resultOf(err error) cudadrv.Result {
	if value := reflect.ValueOf(err); value.Kind() == reflect.Int {
		return cudadrv.Result(value.Int())
	}
	return cudadrv.Unknown
}

// nameOf is gorgonia.org/cu's name of a result that cudadrv has no name for.
func nameOf(err error) string {
	if strings.HasPrefix(resultOf(err).String(), "CUDA_") {
		return ""
	}
	return err.Error()
}
