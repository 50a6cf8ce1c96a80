package eachcall

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
)

// NotOpen calls each exported method of values that are not open, nil pointers and zero values, with zero arguments and a context.
// Methods that return an error must return the wanted one, except those named, as "Type.Method", whose answers are others. No method
// may panic.
func NotOpen(t *testing.T, want error, except []string, values ...any) {
	t.Helper()
	for _, value := range values {
		of := reflect.ValueOf(value)
		named := of.Type()
		if named.Kind() == reflect.Pointer {
			named = named.Elem()
		}
		for i := range of.NumMethod() {
			method := of.Type().Method(i)
			name := named.Name() + "." + method.Name
			err, panicked := answerOf(of.Method(i))
			switch {
			case slices.Contains(except, name):
			case panicked != nil:
				t.Errorf("%s of a %T: %v", name, value, panicked)
			case err.found && !errors.Is(err.err, want):
				t.Errorf("%s of a %T: the error is %v, not %v", name, value, err.err, want)
			}
		}
	}
}

// lastError is the error that a method returns last.
type lastError struct {
	found bool
	err   error
}

// answerOf calls a method. panicked is the value of its panic.
func answerOf(method reflect.Value) (last lastError, panicked error) {
	defer func() {
		if value := recover(); value != nil {
			panicked = fmt.Errorf("panic: %v", value)
		}
	}()
	var args []reflect.Value
	for in := range method.Type().Ins() {
		arg := reflect.Zero(in)
		if in == reflect.TypeFor[context.Context]() {
			arg = reflect.ValueOf(context.Background())
		}
		args = append(args, arg)
	}
	call := method.Call
	if method.Type().IsVariadic() {
		call = method.CallSlice
	}
	results := call(args)
	if n := len(results); n > 0 && results[n-1].Type() == reflect.TypeFor[error]() {
		last.found = true
		last.err, _ = results[n-1].Interface().(error)
	}
	return last, nil
}
