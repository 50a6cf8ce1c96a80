package host

// Zero is a wrapper whose every block has contents of zeros.
type Zero struct{ wrapper }

// Zeroed makes zeroed memory the default of an allocator. Fresh memory of the Go heap costs nothing
// more; other memory of the host is cleared, that of a stream by a memset. Error: *ConfigError for
// nil.
func Zeroed(inner Allocator) (*Zero, error) {
	if inner == nil {
		return nil, noInner()
	}
	return own(&Zero{wrap(inner)}), nil
}

// Alloc is AllocZeroed.
func (z *Zero) Alloc(bytes, align int64) (Block, error) { return z.alloc(bytes, align, true) }

// AllocZeroed is AllocZeroed inside.
func (z *Zero) AllocZeroed(bytes, align int64) (Block, error) {
	return z.alloc(bytes, align, true)
}

// Free frees the block inside.
func (z *Zero) Free(b Block) error { return z.freeIn(b, nil) }

func (z *Zero) freeIn(b Block, shared *batch) error { return z.free(b, shared) }
