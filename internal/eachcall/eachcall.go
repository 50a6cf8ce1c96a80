// Package eachcall makes each driver call of an operation fail in turn, and reports leaks: it tests error paths.
package eachcall

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/internal/recovered"
)

// Operation makes driver calls. It returns a function that undoes its effects, or nil if there are none. After an error there are none.
type Operation func() (undo func() error, err error)

// Left counts driver objects, live buffers and the like, by name.
type Left func() map[string]int

// Bench is a device whose calls fail.
type Bench struct {
	Faults *fault.Driver
	Left   Left
	// Prepare, if not nil, is called before a call fails. It makes the effects that the call has although it fails.
	Prepare func(function string)
	// Tolerated are functions whose errors need not be errors of the operation: it does something else then, or tries later. Memory
	// that the driver does not have is no error where free memory can be returned first.
	Tolerated []string
	// NoPanics has no call panic: the operation runs on goroutines whose panics end the process.
	NoPanics bool

	settles time.Duration // how long goroutines may take to end; 0: settleTime
	leaks   atomic.Bool   // one was reported
}

// burst is how often an operation is tried again that has left something: a leak leaves something each time.
const burst = 20

// cached exceeds the objects of any kind that all caches of a bench keep: fence.CellCount events of each of two streams and of a
// hold, and those that their device has spare.
const cached = 120

// callLimit bounds the calls of an operation: more is an operation that never ends.
const callLimit = 400

// leakLimit bounds the calls with a leak that are tried. Not more: leaks add up, and each attempt takes longer than the one before.
const leakLimit = 3

// A failure is a way in which calls fail.
type failure struct {
	name    string
	result  cudadrv.Result
	panics  bool // the call does not return
	forGood bool // all later calls of its function fail as well, until the operation has returned
}

// failures returns the ways of a bench.
func (b *Bench) failures() []failure {
	all := []failure{
		{name: "error", result: cudadrv.Unknown},
		{name: "error for good", result: cudadrv.Unknown, forGood: true},
		{name: "out of memory", result: cudadrv.OutOfMemory},
		{name: "panic", panics: true},
	}
	if b.NoPanics {
		all = all[:len(all)-1]
	}
	return all
}

// Run performs the operation with its first driver call failing, then with its second, until none is left, by an error, by an
// error of all later calls of that function too, and by a panic of the driver; and asserts after each that nothing was left that
// was not there before. The operation returns the driver's error, unless it tolerates that, and succeeds later. A call that ends
// an object and fails may leave that one, and does not fail for good: the object would stay whatever the operation does. In the
// short form of the tests each call fails by an error once, and in one of the other ways; under the race detector in one way alone.
func (b *Bench) Run(t *testing.T, op Operation) {
	t.Helper()
	if err := b.attempt(op, &calls{}); err != nil {
		t.Fatalf("without a failure: %v", err)
	}
	failures := b.failures()
	leaks := 0
	for i, kind := range failures {
		first, step := turns(uint64(i), uint64(len(failures)))
		for n := first; ; n += step {
			if n > callLimit {
				t.Fatalf("more than %d calls", callLimit)
			}
			made := &calls{fails: n, prepare: b.Prepare, faults: b.Faults, failure: kind}
			_ = b.attempt(op, made) // fills the caches and the pool
			if made.count() < n {
				break
			}
			before := b.Left()
			err := b.attempt(op, made)
			failed := made.at(n)
			switch {
			case kind.result != cudadrv.Unknown || b.tolerates(failed) || made.look(n):
			case err == nil:
				t.Errorf("%s in call %d, %s: the operation returns no error", kind.name, n, failed)
			case !errors.Is(err, kind.result):
				t.Errorf("%s in call %d, %s: the operation's error is not the driver's: %v", kind.name, n, failed, err)
			}
			if err := b.attempt(op, &calls{}); err != nil {
				t.Errorf("%s in call %d, %s: later, without a failure: %v", kind.name, n, failed, err)
			}
			if b.more(before, failed, 1, brief) == "" {
				continue
			}
			if more := b.leak(op, made, failed); more != "" {
				b.leaks.Store(true)
				t.Errorf("%s in call %d, %s, leaves in each %d attempts %s: %v", kind.name, n, failed, burst, more, err)
				if leaks++; leaks == leakLimit {
					t.Fatalf("%d calls leave something: the rest was not tried", leaks)
				}
			}
		}
	}
}

// turns returns the first call that fails in a way, and after how many the next one does.
func turns(way, ways uint64) (first, step uint64) {
	switch {
	case !testing.Short():
		return 1, 1
	case underRace:
		return 1 + way, ways
	case way == 0:
		return 1, 1
	default:
		return way, ways - 1
	}
}

// leak tries an operation until a burst leaves less than one object for each attempt: then the objects before are in caches, or
// were still being ended. It describes the objects of the last burst, which have long to end; "": there is no leak.
func (b *Bench) leak(op Operation, made *calls, failed string) (more string) {
	const bursts = cached / burst
	for i := range bursts {
		before, wait := b.Left(), brief
		for range burst {
			_ = b.attempt(op, made)
		}
		if i == bursts-1 {
			wait = cmp.Or(b.settles, settleTime)
			if b.leaks.Load() {
				wait = min(wait, time.Second) // the test has failed already
			}
		}
		if more = b.more(before, failed, burst, wait); more == "" {
			break
		}
	}
	return more
}

// tolerates reports whether an operation may succeed although calls of a function fail. "" is no function: none has failed.
func (b *Bench) tolerates(function string) bool {
	_, ending := ends[function]
	return ending || function == "" || slices.Contains(b.Tolerated, function)
}

// call is a driver call of an attempt.
type call struct {
	function  string
	elsewhere bool // not on the goroutine of the operation
}

// calls are the driver calls of an attempt.
type calls struct {
	mu      sync.Mutex
	all     []call
	fails   uint64 // the call that fails; 0: none
	prepare func(function string)
	faults  *fault.Driver
	failure failure
}

func (c *calls) count() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return uint64(len(c.all))
}

// at is the function of a call, from 1 on.
func (c *calls) at(n uint64) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > uint64(len(c.all)) {
		return ""
	}
	return c.all[n-1].function
}

// look reports whether a call asked whether work has ended, on another goroutine than the operation's: its error need not be an
// error of the operation, since the goroutine asks again.
func (c *calls) look(n uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > uint64(len(c.all)) {
		return false
	}
	function := c.all[n-1].function
	return c.all[n-1].elsewhere && (function == "cuEventQuery" || function == "cuStreamQuery")
}

// performing is the name of caught in a stack.
const performing = "github.com/go-vram/vram/internal/eachcall.caught"

// elsewhere reports whether the goroutine is not one that performs an operation.
func elsewhere() bool {
	var places [256]uintptr
	frames := runtime.CallersFrames(places[:runtime.Callers(2, places[:])])
	for {
		frame, more := frames.Next()
		if frame.Function == performing {
			return false
		}
		if !more {
			return true
		}
	}
}

func (c *calls) before(function string) {
	one := call{function, elsewhere()}
	c.mu.Lock()
	c.all = append(c.all, one)
	n := uint64(len(c.all))
	c.mu.Unlock()
	if n != c.fails {
		return
	}
	if c.prepare != nil {
		c.prepare(function)
	}
	if c.failure.panics {
		panic(recovered.Planted("in " + function))
	}
	rule := fault.Rule{Func: function, First: 1, Result: c.failure.result}
	if _, ending := ends[function]; c.failure.forGood && !ending {
		rule.Count = fault.Forever
	}
	if err := c.faults.Add(rule); err != nil { // from this call on, whose name is the driver's own
		panic(err)
	}
}

// attempt performs the operation with a failure, and undoes it without one.
func (b *Bench) attempt(op Operation, made *calls) (err error) {
	made.mu.Lock()
	made.all = nil
	made.mu.Unlock()
	b.Faults.SetBefore(made.before)
	undo, err := caught(op)
	b.Faults.Clear()
	b.Faults.SetBefore(nil)
	if err == nil && undo != nil {
		if err := undo(); err != nil {
			return fmt.Errorf("undoing: %w", err)
		}
	}
	return err
}

// caught performs the operation. Its error may be the driver's panic.
func caught(op Operation) (undo func() error, err error) {
	defer func() {
		if p := recover(); p != nil {
			undo = nil
			if !recovered.IsPlanted(p) {
				panic(p)
			}
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	return op()
}

// Closes ends an object of an operation. If that fails or panics, it does so again with a driver that serves: a call that ends an
// object may be refused, and succeeds later.
func Closes(faults *fault.Driver, closes func() error) (err error) {
	again := true
	defer func() { // also after a panic
		if again {
			faults.Clear()
			err = errors.Join(err, closes())
		}
	}()
	err = closes()
	again = err != nil
	return err
}

// ends are the functions that end an object, which may stay where they fail.
var ends = map[string][]string{ //nolint:gochecknoglobals // a table of constants
	"cuEventDestroy": {"event"}, "cuStreamDestroy": {"stream"}, "cuModuleUnload": {"module"}, "cuGraphDestroy": {"graph"},
	"cuGraphExecDestroy": {"executable graph"}, "cuMemFreeHost": {"page-locked range"}, "cuMemHostUnregister": {"page-locked range"},
	"cuDevicePrimaryCtxRelease": {"context"},
	"cuMemUnmap":                {"mapping", "memory handle", "address range"}, "cuMemRelease": {"memory handle", "mapping", "address range"},
	"cuMemAddressFree": {"address range"}, "cuMemFree": {"address range"},
	// A stream that cannot be waited for keeps its memory, and so its actor: the device may still use it.
	"cuStreamSynchronize": {"goroutine", "mapping", "memory handle", "address range"},
}

// settleTime is how long objects that are still being ended may take, on a busy machine, before they count as a leak.
const settleTime = time.Minute

// brief is how long it takes most objects to end. Others cost more attempts, no failure.
const brief = 20 * time.Millisecond

// more describes the kinds of which at least so many objects are left that were not there before, except objects that the failed
// function had to end. It waits for objects that are still being ended.
func (b *Bench) more(before map[string]int, failed string, least int, wait time.Duration) string {
	var text []string
	for until := time.Now().Add(wait); ; runtime.Gosched() {
		text = nil
		now := b.Left()
		for _, kind := range slices.Sorted(maps.Keys(now)) {
			if more := now[kind] - before[kind]; more >= least && !slices.Contains(ends[failed], kind) {
				text = append(text, fmt.Sprintf("%d more: %s", more, kind))
			}
		}
		if len(text) == 0 || time.Now().After(until) {
			return strings.Join(text, ", ")
		}
	}
}
