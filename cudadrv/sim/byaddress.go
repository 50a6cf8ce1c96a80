package sim

import (
	"fmt"
	"iter"
	"slices"
	"sort"

	"github.com/go-vram/vram/cudadrv"
)

// chunkEntries bounds a chunk: fewer would make the list of chunks long, whose insertion is a copy as
// well; more would make an insertion into a chunk copy more than the few KiB that cost 100 ns.
const chunkEntries = 256

// byAddress is an ordered map from addresses: a sorted list of sorted chunks. With 50,000 entries a
// look-up is two short binary searches and a change copies at most a chunk; a B-tree would do no
// better at these sizes and a single sorted slice would copy hundreds of KiB. The zero value is
// empty.
//
// Invariant: no chunk is empty or longer than chunkEntries; keys ascend within chunks and from one to
// the next; keys and values of a chunk go together by index.
type byAddress[V any] struct {
	chunks []*chunk[V]
	count  int
}

type chunk[V any] struct {
	keys   []cudadrv.Ptr
	values []V
}

// locate finds the entry with the greatest key up to p: chunk and index in it. ok is false where all
// keys are above p.
func (m *byAddress[V]) locate(p cudadrv.Ptr) (c, i int, ok bool) {
	c = sort.Search(len(m.chunks), func(k int) bool { return m.chunks[k].keys[0] > p }) - 1
	if c < 0 {
		return 0, 0, false
	}
	keys := m.chunks[c].keys
	i = sort.Search(len(keys), func(k int) bool { return keys[k] > p }) - 1
	return c, i, true
}

// floor returns the entry with the greatest key up to p.
func (m *byAddress[V]) floor(p cudadrv.Ptr) (key cudadrv.Ptr, value V, ok bool) {
	c, i, ok := m.locate(p)
	if !ok {
		return 0, value, false
	}
	return m.chunks[c].keys[i], m.chunks[c].values[i], true
}

// at returns the entry with exactly this key.
func (m *byAddress[V]) at(p cudadrv.Ptr) (V, bool) {
	key, value, ok := m.floor(p)
	if !ok || key != p {
		var none V
		return none, false
	}
	return value, true
}

// from iterates over the entries with keys from p upwards. The map must not change during the iteration.
func (m *byAddress[V]) from(p cudadrv.Ptr) iter.Seq2[cudadrv.Ptr, V] {
	return func(yield func(cudadrv.Ptr, V) bool) {
		c, i, ok := m.locate(p)
		if ok && m.chunks[c].keys[i] < p {
			i++
		}
		for ; c < len(m.chunks); c, i = c+1, 0 {
			ch := m.chunks[c]
			for ; i < len(ch.keys); i++ {
				if !yield(ch.keys[i], ch.values[i]) {
					return
				}
			}
		}
	}
}

// put adds an entry under a key that is not there yet.
func (m *byAddress[V]) put(p cudadrv.Ptr, value V) {
	m.count++
	c, i, ok := m.locate(p)
	switch {
	case !ok && len(m.chunks) == 0:
		m.chunks = append(m.chunks, newChunk[V]())
	case !ok:
		i = -1 // before everything, in the first chunk
	}
	ch := m.chunks[c]
	if len(ch.keys) == 0 {
		i = -1
	}
	if len(ch.keys) == chunkEntries {
		c, i = m.makeRoom(c, i)
		ch = m.chunks[c]
	}
	ch.keys = slices.Insert(ch.keys, i+1, p)
	ch.values = slices.Insert(ch.values, i+1, value)
}

// makeRoom splits the full chunk c and returns the place after its entry i. After the last entry of the map it begins a new
// chunk, so that filling upwards leaves full chunks.
func (m *byAddress[V]) makeRoom(c, i int) (chunkIndex, entry int) {
	upper := newChunk[V]()
	m.chunks = slices.Insert(m.chunks, c+1, upper)
	if c+2 == len(m.chunks) && i == chunkEntries-1 {
		return c + 1, -1
	}
	ch, half := m.chunks[c], chunkEntries/2
	upper.keys = append(upper.keys, ch.keys[half:]...)
	upper.values = append(upper.values, ch.values[half:]...)
	clear(ch.values[half:])
	ch.keys, ch.values = ch.keys[:half], ch.values[:half]
	if i >= half {
		return c + 1, i - half
	}
	return c, i
}

func newChunk[V any]() *chunk[V] {
	return &chunk[V]{keys: make([]cudadrv.Ptr, 0, chunkEntries), values: make([]V, 0, chunkEntries)}
}

// drop takes the entry with exactly this key out, if there is one.
func (m *byAddress[V]) drop(p cudadrv.Ptr) {
	c, i, ok := m.locate(p)
	if !ok || m.chunks[c].keys[i] != p {
		return
	}
	m.count--
	ch := m.chunks[c]
	ch.keys = slices.Delete(ch.keys, i, i+1)
	ch.values = slices.Delete(ch.values, i, i+1)
	if len(ch.keys) == 0 {
		m.chunks = slices.Delete(m.chunks, c, c+1)
	}
}

// check returns the violated part of the invariant.
func (m *byAddress[V]) check() error {
	count, last := 0, cudadrv.Ptr(0)
	for c, ch := range m.chunks {
		if len(ch.keys) == 0 || len(ch.keys) > chunkEntries || len(ch.keys) != len(ch.values) {
			return fmt.Errorf("chunk %d has %d keys and %d values", c, len(ch.keys), len(ch.values))
		}
		for _, key := range ch.keys {
			if count > 0 && key <= last {
				return fmt.Errorf("key %#x follows %#x", key, last)
			}
			count, last = count+1, key
		}
	}
	if count != m.count {
		return fmt.Errorf("%d entries, %d counted", count, m.count)
	}
	return nil
}
