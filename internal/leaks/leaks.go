// Package leaks fails tests that leave goroutines. It finds them with goleak, which by itself waits for half a second: that is too
// short on a busy machine for goroutines that are about to end.
package leaks

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// endTime is how long goroutines may take to end after the last test. Only a leak takes all of it.
const endTime = time.Minute

// None fails a test that has left a goroutine, except those that the options ignore. It waits for goroutines that are about to end.
func None(tb testing.TB, options ...goleak.Option) {
	tb.Helper()
	if err := find(endTime, func() error { return goleak.Find(options...) }); err != nil {
		tb.Error(err)
	}
}

// Main is the TestMain of a package whose tests leave no goroutine. It ends the process, after it has called the functions.
func Main(m goleak.TestingM, atEnd ...func()) {
	code := m.Run()
	if code == 0 {
		if err := find(endTime, func() error { return goleak.Find() }); err != nil {
			fmt.Fprintln(os.Stderr, "the tests passed, and left goroutines:", err)
			code = 1
		}
	}
	for _, f := range atEnd {
		f()
	}
	os.Exit(code) //nolint:forbidigo // as testing.M's callers do
}

// find looks for goroutines until there are none, or the time is over.
func find(within time.Duration, look func() error) error {
	for end := time.Now().Add(within); ; {
		err := look() // which waits, too
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}
