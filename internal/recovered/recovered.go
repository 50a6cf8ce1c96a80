// Package recovered counts the panics that the house recovered from, and tells of each.
//
// An allocator survives a panic: the request at hand fails, the books are audited, the rest goes on. Without a report
// nobody would learn of the defect. So every place that recovers, reports: to the Log of its device, and through it
// to whoever watches the whole process, as tests do.
package recovered

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
)

// Panic is one that was recovered.
type Panic struct {
	Place string // who recovered: an actor by its name, "driver", "callback"
	Value any    // what was given to panic; an error if the goroutine was ended by runtime.Goexit
	Stack []byte // as debug.Stack prints it, at the panic
}

// String is the place and the value, without the stack.
func (p Panic) String() string { return fmt.Sprintf("%s: %v", p.Place, p.Value) }

// Log counts panics of one device. The zero value is ready for use, a nil Log reports to watchers of the process alone.
type Log struct {
	count atomic.Uint64
	tell  atomic.Pointer[func(Panic)]
}

// Tell sets the function that is told of each later panic. It is called on the goroutine that recovered, maybe inside
// an actor's turn and on several goroutines at once: it must not wait, nor panic.
func (l *Log) Tell(f func(Panic)) { l.tell.Store(&f) }

// Count is the number of panics so far.
func (l *Log) Count() uint64 { return l.count.Load() }

// Report counts a panic and tells of it.
func (l *Log) Report(p Panic) {
	if l != nil {
		if f := l.tell.Load(); f != nil {
			(*f)(p)
		}
	}
	l.Note(p)
}

// Note counts a panic, and tells whoever watches the process, but not the function of Tell: it is for panics in that.
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

// Here reports a value that the deferred function which calls it has just recovered: the stack still has the frames of
// the panic.
func (l *Log) Here(place string, value any) {
	l.Report(Panic{Place: place, Value: value, Stack: debug.Stack()})
}

// The process as tests and our commands see it, whoever recovered.
var (
	watcher   atomic.Pointer[func(Panic)] //nolint:gochecknoglobals // The whole process is watched.
	unplanted atomic.Uint64               //nolint:gochecknoglobals // The whole process is watched.
)

// Watch has f told, like a Log's Tell, of every panic of the process from now on that was not planted. There is one watcher.
func Watch(f func(Panic)) { watcher.Store(&f) }

// UnplantedCount is the number of panics that the process has recovered from and that were not planted.
func UnplantedCount() uint64 { return unplanted.Load() }

// planted is what a planted panic carries.
type planted string

// Error is the text.
func (p planted) Error() string { return "planted: " + string(p) }

// Planted marks the panic as meant.
func (planted) Planted() {}

// Planted is a value for panic that a test or a simulation means to be recovered.
func Planted(text string) error { return planted(text) }

// IsPlanted reports whether a recovered value was planted: it, or an error that it wraps, has a method Planted.
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
