//go:build !race

package magazine

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// mutexCache is the plain way: free lists by size under a mutex.
type mutexCache struct {
	mutex sync.Mutex
	free  map[int64][]*Slot
}

func (c *mutexCache) take(bytes int64) *Slot {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	list := c.free[bytes]
	s := list[len(list)-1]
	c.free[bytes] = list[:len(list)-1]
	return s
}

func (c *mutexCache) put(bytes int64, s *Slot) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.free[bytes] = append(c.free[bytes], s)
}

func newMutexCache(bytes int64) *mutexCache {
	c := &mutexCache{free: map[int64][]*Slot{}}
	for range 4096 {
		c.put(bytes, new(Slot))
	}
	return c
}

// largeCache is a cache with all slots of a length free.
func largeCache(units uint32) *Cache {
	c := new(Cache)
	o := NewOwner(c, nil)
	m := o.Exacts.Of(units)
	o.Exacts.Reopen(m)
	o.Exacts.Install(m, 0)
	for s := o.Exacts.Assign(m); s != nil; s = o.Exacts.Assign(m) {
		_ = s.Free(s.Word())
	}
	return c
}

func pairs(b *testing.B, c *Cache, bytes int64) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		s, word := c.Take(bytes)
		if s.Free(word) != nil {
			b.Fatal("a free was refused")
		}
	}
}

// An allocation and its free by one goroutine.
func BenchmarkPair(b *testing.B) {
	b.Run("impl=atomics/bytes=0/goroutines=1", func(b *testing.B) {
		w := new([3 * cacheLine / 8]atomic.Uint64)
		mask := &w[cacheLine/8]
		b.ReportAllocs()
		for b.Loop() {
			m := mask.Load()
			mask.CompareAndSwap(m, m&^1)
			mask.Or(1)
		}
	})
	c, _, _ := cacheOf(0)
	b.Run("impl=magazine/bytes=512/goroutines=1", func(b *testing.B) { pairs(b, c, 512) })
	c = largeCache(2048)
	b.Run("impl=magazine/bytes=1048576/goroutines=1", func(b *testing.B) { pairs(b, c, 1<<20) })
	b.Run("impl=mutex/bytes=512/goroutines=1", func(b *testing.B) {
		c := newMutexCache(512)
		b.ReportAllocs()
		for b.Loop() {
			c.put(512, c.take(512))
		}
	})
}

// inParallel runs body on so many goroutines for each processor, and names the benchmark by their number.
func inParallel(b *testing.B, impl string, perProcessor int, body func(pb *testing.PB)) {
	b.Helper()
	b.Run(fmt.Sprintf("impl=%s/goroutines=%d", impl, perProcessor*runtime.GOMAXPROCS(0)), func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(perProcessor)
		b.RunParallel(body)
	})
}

// Pairs by many goroutines on one cache: one magazine for all, a magazine for each shard, and a mutex.
func BenchmarkContended(b *testing.B) {
	for _, perProcessor := range []int{1, 4} {
		_, _, m := cacheOf(0)
		inParallel(b, "unsharded", perProcessor, func(pb *testing.PB) {
			for pb.Next() {
				if s := m.Take(); s != nil {
					_ = s.Free(s.Word())
				}
			}
		})
		c, o, m := cacheOf(0)
		m.contended.Store(contendedLimit)
		o.Spans.Shard(m, 0)
		for hint := 1; hint < Shards; hint++ {
			o.Spans.Install(o.Spans.New(0, int32(hint), 0), hint)
		}
		inParallel(b, "sharded", perProcessor, func(pb *testing.PB) {
			for pb.Next() {
				if s, word := c.Take(512); s != nil {
					_ = s.Free(word)
				}
			}
		})
		plain := newMutexCache(512)
		inParallel(b, "mutex", perProcessor, func(pb *testing.PB) {
			for pb.Next() {
				plain.put(512, plain.take(512))
			}
		})
	}
}

// lane is the memory that one goroutine of BenchmarkFalseSharing frees: a slot's word, and a mask that is its own, so
// that only the slots can be in each other's way.
type lane struct {
	word *atomic.Uint64
	mask *atomic.Uint64
}

func (l lane) free(handle uint64) uint64 {
	l.word.CompareAndSwap(handle, freed(handle))
	l.mask.Or(1)
	return freed(handle)
}

// Frees of neighbouring slots by two goroutines: slots of a cache line each, slots packed as closely as
// their fields allow, and one goroutine alone.
func BenchmarkFalseSharing(b *testing.B) {
	type packedSlot struct {
		word atomic.Uint64
		_    [3]uint64 // address, magazine, next
		_, _ uint32    // Block, Units
		_, _ uint8     // index, flags
	}
	type private struct {
		_    [cacheLine]byte
		mask atomic.Uint64
		_    [cacheLine]byte
	}
	padded := NewOwner(new(Cache), nil).Spans.New(0, 1, 0)
	packed := new([SlotCount]packedSlot)
	words := map[string]func(i int) *atomic.Uint64{
		"padded": func(i int) *atomic.Uint64 { return &padded.slots[i].word },
		"packed": func(i int) *atomic.Uint64 { return &packed[i].word },
	}
	masks := new([2]private)
	for _, c := range []struct {
		impl  string
		words string
		count int
	}{{"alone", "padded", 1}, {"padded", "padded", 2}, {"packed", "packed", 2}} {
		b.Run(fmt.Sprintf("impl=%s/goroutines=%d", c.impl, c.count), func(b *testing.B) {
			lanes := make([]lane, c.count)
			for i := range lanes {
				lanes[i] = lane{words[c.words](i), &masks[i].mask}
			}
			var stop atomic.Bool
			var all sync.WaitGroup
			for _, l := range lanes[1:] {
				all.Go(func() {
					for h := l.word.Load(); !stop.Load(); {
						h = l.free(h)
					}
				})
			}
			b.ReportAllocs()
			h := lanes[0].word.Load()
			for b.Loop() {
				h = lanes[0].free(h)
			}
			stop.Store(true)
			all.Wait()
		})
	}
}
