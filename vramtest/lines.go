package vramtest

import (
	"bytes"
	"sync"
)

// lines writes text to the log of a test, line by line. A T without a Logf has none.
type lines struct {
	t T

	mu      sync.Mutex // guards pending
	pending []byte     // the line that has no end yet
}

// Write implements io.Writer.
func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, text...)
	for {
		line, rest, found := bytes.Cut(l.pending, []byte("\n"))
		if !found {
			return len(text), nil
		}
		l.log(line)
		l.pending = rest
	}
}

// flush writes the last line.
func (l *lines) flush() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) > 0 {
		l.log(l.pending)
	}
}

func (l *lines) log(line []byte) {
	if to, ok := l.t.(interface {
		Logf(format string, args ...any)
	}); ok {
		to.Logf("kernel: %s", line)
	}
}
