package magazine

import (
	"math/bits"
	"sync/atomic"

	"github.com/go-vram/vram/internal/sizeclass"
)

const (
	// LargeBuckets is the number of buckets for lengths beyond the classes.
	LargeBuckets = 1 << largeBits
	// FirstLarge is the first of these buckets, after the classes.
	FirstLarge = sizeclass.Count
	// largeBits: not smaller, since two lengths that share a bucket evict each other and real programs use up
	// to a thousand; not larger, since a bucket costs 16 bytes of every stream.
	largeBits   = 11
	bucketCount = FirstLarge + LargeBuckets

	// Shards is the number of magazines that a contended bucket has.
	Shards = 8
	// contendedLimit is 64 lost races, after which a bucket is sharded. Not smaller: a rare collision is
	// cheaper than seven more magazines. Not larger: each one costs a cache miss.
	contendedLimit = 64
)

// bucket holds the magazine for a class, or for the lengths with one hash.
type bucket struct {
	magazine atomic.Pointer[Magazine]
	shards   atomic.Pointer[shards] // used instead, once set
}

type shards [Shards]struct {
	magazine atomic.Pointer[Magazine]
	_        [cacheLine - 8]byte
}

// bucketOf returns the bucket for requests of that many units.
func bucketOf(units uint64) uint64 {
	if units <= sizeclass.MaxUnits {
		return uint64(sizeclass.Of(units))
	}
	return sizeclass.Count + (units*0x9E3779B97F4A7C15)>>(64-largeBits)
}

// BucketOf returns the bucket for blocks of that many units.
func BucketOf(units uint64) int32 { return int32(bucketOf(units)) }

// installation is the place of a magazine in the buckets.
type installation struct {
	bucket    int32
	shard     int8
	installed bool
}

// IsInstalled reports whether the magazine is in a bucket.
func (p *installation) IsInstalled() bool { return p.installed }

// buckets map lengths to magazines.
type buckets [bucketCount]bucket

// at returns the magazine that serves a bucket, for callers with that hint.
func (b *bucket) at(hint int) *Magazine {
	if sh := b.shards.Load(); sh != nil {
		return sh[hint&(Shards-1)].magazine.Load()
	}
	return b.magazine.Load()
}

// install makes a magazine serve the bucket of its installation, for callers with that hint.
func (b *buckets) install(m *Magazine, at *installation, hint int) {
	at.installed, at.shard = true, 0
	if sh := b[at.bucket].shards.Load(); sh != nil {
		at.shard = int8(hint & (Shards - 1))
		sh[at.shard].magazine.Store(m)
		return
	}
	b[at.bucket].magazine.Store(m)
}

// uninstall removes a magazine from its bucket if it is there.
func (b *buckets) uninstall(m *Magazine, at *installation) {
	if !at.installed {
		return
	}
	if sh := b[at.bucket].shards.Load(); sh != nil {
		sh[at.shard].magazine.CompareAndSwap(m, nil)
	}
	b[at.bucket].magazine.CompareAndSwap(m, nil)
	at.installed = false
}

// shard gives every hint of a contended bucket its own place. The magazine m that served it moves to the
// place of this hint. It reports whether this call sharded the bucket.
func (b *buckets) shard(m *Magazine, at *installation, hint int) bool {
	if m.contended.Load() < contendedLimit || b[at.bucket].shards.Load() != nil || b[at.bucket].magazine.Load() != m {
		return false
	}
	sh := new(shards)
	at.shard = int8(hint & (Shards - 1))
	sh[at.shard].magazine.Store(m)
	b[at.bucket].shards.Store(sh)
	b[at.bucket].magazine.Store(nil)
	return true
}

// each visits the magazines of a bucket.
func (b *buckets) each(bucket int32, visit func(*Magazine)) {
	if m := b[bucket].magazine.Load(); m != nil {
		visit(m)
	}
	if sh := b[bucket].shards.Load(); sh != nil {
		for i := range sh {
			if m := sh[i].magazine.Load(); m != nil {
				visit(m)
			}
		}
	}
}

// close closes a magazine: no caller takes from it again. It returns the slots that were free, with their
// flags cleared; the owner has them.
func (m *Magazine) close() (home uint64) {
	home = broughtHome(m.mask.Swap(closedBit))
	for f := home; f != 0; f &= f - 1 {
		m.At(bits.TrailingZeros64(f)).clearFlags()
	}
	return home
}

// liveBeside returns the slots that are neither free nor in homes.
func (m *Magazine) liveBeside(homes uint64) uint64 {
	w := m.mask.Load()
	if w >= closedBit {
		w = 0
	}
	return slotBits &^ (homes | w)
}
