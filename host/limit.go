package host

import (
	"context"
	"sync/atomic"
)

// Bounds configure a Limit. 0 is no bound.
type Bounds struct {
	Bytes  int64 // of live blocks, as requested
	Blocks int64 // live
}

// Limit is a wrapper that bounds the live blocks and their bytes.
type Limit struct {
	wrapper

	bounds Bounds
	bytes  atomic.Int64
	blocks atomic.Int64
}

// Limited bounds the live blocks of an allocator. Errors: *ConfigError for a negative bound.
func Limited(inner Allocator, bounds Bounds) (*Limit, error) {
	if inner == nil {
		return nil, noInner()
	}
	if bounds.Bytes < 0 {
		return nil, &ConfigError{Field: "Bounds.Bytes", Value: bounds.Bytes, Want: "0 or more"}
	}
	if bounds.Blocks < 0 {
		return nil, &ConfigError{Field: "Bounds.Blocks", Value: bounds.Blocks, Want: "0 or more"}
	}
	return own(&Limit{wrapper: wrap(inner), bounds: bounds}), nil
}

// noInner refuses a wrapper around nothing.
func noInner() error { return &ConfigError{Field: "inner", Value: nil, Want: "an allocator"} }

// Alloc requests a block inside if the bounds allow it. Errors: *LimitError, and those inside.
func (l *Limit) Alloc(bytes, align int64) (Block, error) { return l.request(bytes, align, false) }

// AllocZeroed is Alloc with contents of zeros.
func (l *Limit) AllocZeroed(bytes, align int64) (Block, error) { return l.request(bytes, align, true) }

func (l *Limit) request(bytes, align int64, zero bool) (Block, error) {
	if l == nil {
		return Block{}, notOpen()
	}
	if err := checkRequest(bytes, align); err != nil || bytes == 0 {
		if err != nil {
			return Block{}, err
		}
		return l.alloc(bytes, align, zero)
	}
	if !charge(&l.blocks, 1, l.bounds.Blocks) {
		return Block{}, l.refusal(bytes)
	}
	if !charge(&l.bytes, bytes, l.bounds.Bytes) {
		l.blocks.Add(-1) // before the error counts the live ones
		return Block{}, l.refusal(bytes)
	}
	served := false
	defer func() { // also after a panic inside
		if !served {
			l.bytes.Add(-bytes)
			l.blocks.Add(-1)
		}
	}()
	b, err := l.alloc(bytes, align, zero)
	served = err == nil
	return b, err
}

// charge adds to a count unless that would exceed the bound.
func charge(count *atomic.Int64, amount, bound int64) bool {
	for {
		old := count.Load()
		if bound > 0 && old > bound-amount {
			return false
		}
		if count.CompareAndSwap(old, old+amount) {
			return true
		}
	}
}

func (l *Limit) refusal(bytes int64) error {
	return &LimitError{RequestedBytes: bytes, LiveBytes: l.bytes.Load(), LiveBlocks: l.blocks.Load(), Bounds: l.bounds}
}

// Free frees the block inside, and counts it out once that has succeeded, or the block is gone with its device.
func (l *Limit) Free(b Block) error { return l.freeIn(b, nil) }

func (l *Limit) freeIn(b Block, shared *batch) error {
	if l == nil {
		return notOpen()
	}
	err := l.free(b, shared)
	if b.slot != nil && ended(err) {
		l.bytes.Add(-b.bytes)
		l.blocks.Add(-1)
	}
	return err
}

// Owner returns the allocator's identity.
func (l *Limit) Owner() *Owner { return l.layer().Owner() }

// Kind returns the kind of the wrapped allocator.
func (l *Limit) Kind() Kind { return l.layer().Kind() }

// Stats returns the counters of the wrapped allocator.
func (l *Limit) Stats() Stats { return l.layer().Stats() }

// Trim trims the allocator inside: see Trim.
func (l *Limit) Trim(ctx context.Context) (releasedBytes int64, err error) {
	return l.layer().Trim(ctx)
}

// Close closes the allocator inside: see Allocator.Close.
func (l *Limit) Close(ctx context.Context) error { return l.layer().Close(ctx) }

func (l *Limit) layer() *wrapper {
	if l == nil {
		return nil
	}
	return &l.wrapper
}
