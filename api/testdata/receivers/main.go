// Command receivers calls each method of each exported type on a nil pointer, on the zero value, and on an open value, and each exported
// function, with nil, zero and open arguments. It prints a line for each call that panics, or does not return. The test adds the file with
// the types and functions.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"reflect"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-vram/vram/cudadrv"
)

// A call with a context that can end returns soon after it has ended.
const (
	contextTime = 20 * time.Millisecond
	callTime    = 10 * time.Second
)

func main() {
	for _, t := range exported() {
		if reflect.PointerTo(t).Implements(reflect.TypeFor[cudadrv.Driver]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[cudadrv.Device]()) {
			continue // the other side of an interface, as its callers have it: from a constructor or from Open
		}
		for m := range reflect.PointerTo(t).Methods() {
			if _, ofValue := t.MethodByName(m.Name); !ofValue && !marshals(t, m.Name) {
				try(t, m, reflect.Zero(reflect.PointerTo(t)))
			}
			try(t, m, reflect.New(t))
		}
	}
	tryFunctions()
	tryOpen()
}

// marshals reports whether Go calls a method on its own, and on nil never, or expects it to panic: those of errors, and of packages encoding.
func marshals(t reflect.Type, method string) bool {
	switch method {
	case "MarshalJSON", "MarshalText", "UnmarshalJSON", "UnmarshalText":
		return true
	case "Error", "Unwrap", "Is", "As":
		return reflect.PointerTo(t).Implements(reflect.TypeFor[error]())
	}
	return false
}

// try calls a method, and then the function that it returns, as Suspend does.
func try(t reflect.Type, m reflect.Method, on reflect.Value) {
	what := "zero"
	if on.IsNil() {
		what = "nil"
	}
	guarded(fmt.Sprintf("%s of a %s *%v", m.Name, what, t), func() { callResults(call(m.Func, on)) })
}

// callResults calls functions that a call has returned.
func callResults(results []reflect.Value) {
	for _, result := range results {
		if result.Kind() == reflect.Func && !result.IsNil() {
			call(result)
		}
	}
}

// guarded makes a call, and prints its name and the failure if it panics or does not return.
func guarded(name string, f func()) {
	ended := make(chan string, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				ended <- fmt.Sprintf("panics: %v at %s", v, place())
			}
			close(ended)
		}()
		f()
	}()
	select {
	case failure, failed := <-ended:
		if failed {
			fmt.Printf("%s %s\n", name, failure)
		}
	case <-time.After(callTime):
		fmt.Printf("%s does not return\n", name)
	}
}

func call(f reflect.Value, first ...reflect.Value) []reflect.Value {
	in := first
	for i := len(first); i < f.Type().NumIn(); i++ {
		in = append(in, argument(f.Type().In(i)))
	}
	if f.Type().IsVariadic() {
		return f.CallSlice(in)
	}
	return f.Call(in)
}

// argument is the zero value, but where nil is no argument: a context, a writer, a channel, a function.
func argument(t reflect.Type) reflect.Value {
	ctx, _ := context.WithTimeout(context.Background(), contextTime) // it ends by itself
	if t.Kind() == reflect.Interface && t.NumMethod() > 0 {
		for _, v := range []any{ctx, io.Discard, strings.NewReader(""), httptest.NewRecorder(), state{io.Discard}} {
			if reflect.TypeOf(v).Implements(t) {
				return reflect.ValueOf(v)
			}
		}
	}
	switch t.Kind() {
	case reflect.Chan:
		return reflect.MakeChan(reflect.ChanOf(reflect.BothDir, t.Elem()), 1<<10).Convert(t)
	case reflect.Func:
		return reflect.MakeFunc(t, func([]reflect.Value) (out []reflect.Value) {
			for result := range t.Outs() {
				out = append(out, reflect.Zero(result))
			}
			return out
		})
	}
	if t == reflect.TypeOf(httptest.NewRequest("GET", "/", nil)) {
		return reflect.ValueOf(httptest.NewRequest("GET", "/", nil))
	}
	return reflect.Zero(t)
}

// state is a fmt.State.
type state struct{ io.Writer }

func (state) Width() (int, bool)     { return 0, false }
func (state) Precision() (int, bool) { return 0, false }
func (state) Flag(int) bool          { return false }

// place is the line that panicked: the first one of a method below the runtime's.
func place() string {
	_, stack, _ := strings.Cut(string(debug.Stack()), "\npanic(")
	for line := range strings.Lines(stack) {
		if at := strings.TrimSpace(line); strings.HasPrefix(line, "\t") && !strings.Contains(at, "/runtime/") {
			at, _, _ = strings.Cut(at, " ")
			return at
		}
	}
	return "no place"
}
