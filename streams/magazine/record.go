package magazine

import (
	"fmt"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/site"
)

// record is what is known of a handle beside its block. It does not change: a change is another one in its place.
type record struct {
	word    uint64 // of the handle
	tag     string
	history *History // of a watched handle
}

// History is what is known of a watched handle. It does not change.
type History struct {
	Address   cudadrv.Ptr
	Bytes     int64 // that were asked for
	Tag       string
	Allocated site.Stack
	Freed     site.Stack // unknown before it was freed

	word   uint64
	former *History // of the slot's watched handle before
}

// formerLimit is how many handles of before a slot remembers. Not fewer: a stale handle is mostly of the last few. Not
// more: each is kept as long as the slot, with two places.
const formerLimit = 4

// Watcher is told of the frees of watched handles, on the goroutine that frees, before the block can be had again. It
// must not wait.
type Watcher interface{ Freed(h *History) }

// SetWatcher says who is told of frees. Call it before the first allocation.
func (c *Cache) SetWatcher(w Watcher) { c.watcher = w }

// Watch remembers a live handle's size, tag and place, and has its free told. The caller has the handle and has not
// shown it to anybody yet.
func (s *Slot) Watch(handle uint64, bytes int64, tag string, allocated site.Stack) *History {
	h := &History{Address: s.address, Bytes: bytes, Tag: tag, Allocated: allocated, word: handle}
	n := s.noted()
	if r := n.record.Load(); r != nil {
		h.former = r.history.cut(formerLimit)
	}
	n.record.Store(&record{handle, tag, h})
	_ = s.Announce(handle, Watched) // the handle is the caller's alone, so it is live
	return h
}

// cut is a history with so many at most in its chain.
func (h *History) cut(count int) *History {
	if h == nil || count == 0 {
		return nil
	}
	short := *h
	short.former = h.former.cut(count - 1)
	return &short
}

// SetTag names the block of a live handle. A watched one has the name that it was watched with.
func (s *Slot) SetTag(handle uint64, name string) {
	n := s.noted()
	if r := n.record.Load(); r == nil || !r.isOf(handle) || r.history == nil {
		n.record.Store(&record{word: handle, tag: name})
	}
}

// isOf reports whether a record is of a handle, or of one of the same allocation: it stays when the block is moved.
func (r *record) isOf(handle uint64) bool { return r.word>>generationShift == handle>>generationShift }

// recorded is what is known of the slot's last allocation that anything is known of; nil if there was none.
func (s *Slot) recorded() *record {
	if n := s.note.Load(); n != nil {
		return n.record.Load()
	}
	return nil
}

// Tag is the name of the block of the present handle, or "".
func (s *Slot) Tag() string {
	if r := s.recorded(); r != nil && r.isOf(s.word.Load()) {
		return r.tag
	}
	return ""
}

// Allocated is the place where the present handle was handed out; unknown if it is not watched.
func (s *Slot) Allocated() site.Stack {
	if r := s.recorded(); r != nil && r.history != nil && r.isOf(s.word.Load()) {
		return r.history.Allocated
	}
	return nil
}

// tellFreed notes the place of a free, which the caller has won, and tells the watcher.
func (s *Slot) tellFreed(handle uint64) {
	r := s.recorded()
	if r == nil || !r.isOf(handle) || r.history == nil {
		return
	}
	ended := *r.history
	ended.Freed = site.Here(1)
	s.noted().record.Store(&record{r.word, r.tag, &ended})
	if w := s.magazine.cache.watcher; w != nil {
		w.Freed(&ended)
	}
}

// refused is the error of a free of a handle that is not live, with its places if they are known.
func (s *Slot) refused(word, handle uint64) error {
	err := refusal(word, handle)
	r := s.recorded()
	if r == nil {
		return err
	}
	for h := r.history; h != nil; h = h.former {
		if h.word>>generationShift == handle>>generationShift {
			return &FreeError{Err: err, Allocated: h.Allocated, Freed: h.Freed}
		}
	}
	return err
}

// FreeError is the refusal of a free whose buffer's places are known.
type FreeError struct {
	Err       error      // ErrDoubleFree or ErrStale
	Allocated site.Stack // where the buffer was allocated
	Freed     site.Stack // where it was freed; unknown in the moment of that free
}

// Error names both places.
func (e *FreeError) Error() string {
	return fmt.Sprintf("%v; allocated at %v, freed at %v", e.Err, e.Allocated, e.Freed)
}

// Unwrap is ErrDoubleFree or ErrStale.
func (e *FreeError) Unwrap() error { return e.Err }
