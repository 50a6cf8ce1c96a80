package host

import (
	"context"
	"errors"

	"github.com/go-vram/vram"
)

// Log is a wrapper that reports each call to a logger: blocks and frees by Debug, refused requests
// by Warn, refused frees and leaks by Error. The logger is called on the caller's goroutine.
type Log struct {
	wrapper

	log vram.Logger
}

// Logged reports the calls of an allocator. *slog.Logger is a logger. Error: *ConfigError for nil.
func Logged(inner Allocator, log vram.Logger) (*Log, error) {
	if inner == nil {
		return nil, noInner()
	}
	if log == nil {
		return nil, &ConfigError{Field: "log", Value: nil, Want: "a logger"}
	}
	return own(&Log{wrapper: wrap(inner), log: log}), nil
}

// Alloc requests a block inside, and reports it.
func (l *Log) Alloc(bytes, align int64) (Block, error) { return l.request(bytes, align, false) }

// AllocZeroed is Alloc with contents of zeros.
func (l *Log) AllocZeroed(bytes, align int64) (Block, error) { return l.request(bytes, align, true) }

func (l *Log) request(bytes, align int64, zero bool) (Block, error) {
	if l == nil || l.log == nil {
		return Block{}, notOpen()
	}
	b, err := l.alloc(bytes, align, zero)
	if err != nil {
		l.log.Warn("host: request refused", "kind", l.Kind().String(), "bytes", bytes, "align", align, "error", err)
	} else {
		l.log.Debug("host: allocated", "kind", l.Kind().String(), "bytes", bytes, "align", align)
	}
	return b, err
}

// Free frees the block inside, and reports it.
func (l *Log) Free(b Block) error { return l.freeIn(b, nil) }

func (l *Log) freeIn(b Block, shared *batch) error {
	if l == nil || l.log == nil {
		return notOpen()
	}
	err := l.free(b, shared)
	if err != nil {
		l.log.Error("host: free refused", "kind", l.Kind().String(), "bytes", b.bytes, "error", err)
	} else {
		l.log.Debug("host: freed", "kind", l.Kind().String(), "bytes", b.bytes)
	}
	return err
}

// Close closes the allocator inside, and reports its error.
func (l *Log) Close(ctx context.Context) error {
	if l == nil || l.log == nil {
		return notOpen()
	}
	err := l.inside().Close(ctx)
	if left := (*LeakError)(nil); errors.As(err, &left) {
		l.log.Error("host: blocks not freed", "kind", left.Kind.String(), "blocks", left.Blocks, "bytes", left.Bytes)
	} else if err != nil {
		l.log.Error("host: close failed", "kind", l.Kind().String(), "error", err)
	}
	return err
}

// Owner returns the allocator's identity.
func (l *Log) Owner() *Owner { return l.layer().Owner() }

// Kind returns the kind of the wrapped allocator.
func (l *Log) Kind() Kind { return l.layer().Kind() }

// Stats returns the counters of the wrapped allocator.
func (l *Log) Stats() Stats { return l.layer().Stats() }

// Trim trims the allocator inside: see Trim.
func (l *Log) Trim(ctx context.Context) (releasedBytes int64, err error) { return l.layer().Trim(ctx) }

func (l *Log) layer() *wrapper {
	if l == nil {
		return nil
	}
	return &l.wrapper
}
