package host

import "context"

// Zero is a wrapper whose every block has contents of zeros.
type Zero struct{ wrapper }

// Zeroed makes zeroed memory the default of an allocator. Fresh memory of the Go heap costs nothing more; it clears other host
// memory, and a stream's memory by a memset. Error: *ConfigError for nil.
func Zeroed(inner Allocator) (*Zero, error) {
	if inner == nil {
		return nil, noInner()
	}
	return own(&Zero{wrap(inner)}), nil
}

// Alloc is AllocZeroed.
func (z *Zero) Alloc(bytes, align int64) (Block, error) {
	if z == nil {
		return Block{}, notOpen()
	}
	return z.alloc(bytes, align, true)
}

// AllocZeroed is AllocZeroed inside.
func (z *Zero) AllocZeroed(bytes, align int64) (Block, error) {
	if z == nil {
		return Block{}, notOpen()
	}
	return z.alloc(bytes, align, true)
}

// Free frees the block inside.
func (z *Zero) Free(b Block) error { return z.freeIn(b, nil) }

func (z *Zero) freeIn(b Block, shared *batch) error {
	if z == nil {
		return notOpen()
	}
	return z.free(b, shared)
}

// Owner returns the allocator's identity.
func (z *Zero) Owner() *Owner { return z.layer().Owner() }

// Kind returns the kind of the wrapped allocator.
func (z *Zero) Kind() Kind { return z.layer().Kind() }

// Stats returns the counters of the wrapped allocator.
func (z *Zero) Stats() Stats { return z.layer().Stats() }

// Trim trims the allocator inside: see Trim.
func (z *Zero) Trim(ctx context.Context) (releasedBytes int64, err error) { return z.layer().Trim(ctx) }

// Close closes the allocator inside: see Allocator.Close.
func (z *Zero) Close(ctx context.Context) error { return z.layer().Close(ctx) }

func (z *Zero) layer() *wrapper {
	if z == nil {
		return nil
	}
	return &z.wrapper
}
