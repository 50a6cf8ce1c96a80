package host

import "context"

// Track is a wrapper that counts: live blocks and requested bytes, their peaks, calls and refusals.
type Track struct {
	wrapper

	counts counters
}

// Tracked counts the blocks of an allocator. Error: *ConfigError for nil.
func Tracked(inner Allocator) (*Track, error) {
	if inner == nil {
		return nil, noInner()
	}
	return own(&Track{wrapper: wrap(inner)}), nil
}

// Alloc requests a block inside, and counts it.
func (t *Track) Alloc(bytes, align int64) (Block, error) { return t.request(bytes, align, false) }

// AllocZeroed is Alloc with contents of zeros.
func (t *Track) AllocZeroed(bytes, align int64) (Block, error) { return t.request(bytes, align, true) }

func (t *Track) request(bytes, align int64, zero bool) (Block, error) {
	if t == nil {
		return Block{}, notOpen()
	}
	b, err := t.alloc(bytes, align, zero)
	switch {
	case err != nil:
		t.counts.refusals.Add(1)
	case b.slot != nil:
		t.counts.alloc(bytes)
	}
	return b, err
}

// Free frees the block inside, and counts it out once that has succeeded, or the block is gone with its device.
func (t *Track) Free(b Block) error { return t.freeIn(b, nil) }

func (t *Track) freeIn(b Block, shared *batch) error {
	if t == nil {
		return notOpen()
	}
	err := t.free(b, shared)
	if b.slot != nil && ended(err) {
		t.counts.free(b.bytes)
	}
	return err
}

// Stats returns this wrapper's counts, and a wrapped Pool's own figures. A peak may count a block that was being freed at that
// moment.
func (t *Track) Stats() Stats {
	if t == nil {
		return Stats{}
	}
	s, inside := t.counts.stats(), t.inside().Stats()
	s.KeptBytes, s.PendingBytes, s.ReleasingBytes = inside.KeptBytes, inside.PendingBytes, inside.ReleasingBytes
	s.Misses, s.Releases = inside.Misses, inside.Releases
	s.ReleaseFailures, s.LookFailures = inside.ReleaseFailures, inside.LookFailures
	return s
}

// Owner returns the allocator's identity.
func (t *Track) Owner() *Owner { return t.layer().Owner() }

// Kind returns the kind of the wrapped allocator.
func (t *Track) Kind() Kind { return t.layer().Kind() }

// Trim trims the allocator inside: see Trim.
func (t *Track) Trim(ctx context.Context) (releasedBytes int64, err error) {
	return t.layer().Trim(ctx)
}

// Close closes the allocator inside: see Allocator.Close.
func (t *Track) Close(ctx context.Context) error { return t.layer().Close(ctx) }

func (t *Track) layer() *wrapper {
	if t == nil {
		return nil
	}
	return &t.wrapper
}
