// Package recovered counts and reports the panics that this module recovers from.
//
// An allocator survives a panic: the current request fails, the books are audited, and service continues.
// Without a report the defect would stay hidden. So every recovery reports to the Log of its device, and
// through that to the watcher of the whole process, such as a test.
package recovered

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
)

// Panic is a recovered panic.
type Panic struct {
	Place string // the recovering code: an actor's name, "driver", "callback"
	Value any    // the value of the panic; an error if the goroutine was ended by runtime.Goexit
	Stack []byte // as debug.Stack prints it, at the panic
}

// String returns the place and the value, without the stack.
func (p Panic) String() string { return fmt.Sprintf("%s: %v", p.Place, p.Value) }

// Log counts panics of one device. The zero value is ready; a nil Log reports only to the watcher of the
// process.
type Log struct {
	count atomic.Uint64
	tell  atomic.Pointer[func(Panic)]
}

// Tell sets the function that is called for each later panic. It is called on the goroutine that recovered,
// possibly inside an actor's turn and concurrently: it must neither block nor panic.
func (l *Log) Tell(f func(Panic)) { l.tell.Store(&f) }

// Count returns the number of panics so far.
func (l *Log) Count() uint64 { return l.count.Load() }

// Report counts a panic and calls the function of Tell.
func (l *Log) Report(p Panic) {
	if l != nil {
		if f := l.tell.Load(); f != nil {
			(*f)(p)
		}
	}
	l.Note(p)
}

// Note counts a panic and notifies the watcher of the process, but does not call the function of Tell: it is
// for panics in that function.
func (l *Log) Note(p Panic) {
	if l != nil {
		l.count.Add(1)
	}
	if IsPlanted(p.Value) {
		return
	}
	unplanted.Add(1)
	if f := watcher.Load(); f != nil {
		(*f)(p)
	}
}

// errExit is the value for the end of a goroutine.
var errExit = errors.New("the function ended its goroutine")

// Here reports a value that the calling deferred function has just recovered, and returns it: the stack still
// has the frames of the panic. A nil value stands for runtime.Goexit, and Here returns an error that says so: a
// deferred function that no return has reached passes it on.
func (l *Log) Here(place string, value any) any {
	if value == nil {
		value = errExit
	}
	l.Report(Panic{Place: place, Value: value, Stack: debug.Stack()})
	return value
}

// The process-wide count, for tests and commands.
var (
	watcher   atomic.Pointer[func(Panic)] //nolint:gochecknoglobals // The whole process is watched.
	unplanted atomic.Uint64               //nolint:gochecknoglobals // The whole process is watched.
)

// Watch sets the function that is called for every panic of the process that was not planted. There is one
// watcher.
func Watch(f func(Panic)) { watcher.Store(&f) }

// UnplantedCount returns the number of recovered panics of the process that were not planted.
func UnplantedCount() uint64 { return unplanted.Load() }

// planted is the value of a planted panic.
type planted string

// Error returns the text.
func (p planted) Error() string { return "planted: " + string(p) }

// Planted marks the panic as intended.
func (planted) Planted() {}

// Planted returns a value for a panic that a test or a simulation intends.
func Planted(text string) error { return planted(text) }

// IsPlanted reports whether a recovered value was planted: it, or an error that it wraps, has a method
// Planted.
func IsPlanted(value any) bool {
	err, ok := value.(error)
	if !ok {
		return false
	}
	_, ok = errors.AsType[interface {
		error
		Planted()
	}](err)
	return ok
}
