package host

import (
	"sync/atomic"
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
)

// slot is the place of one allocation. Blocks name it together with its word.
//
//	word  from  to   by
//	      g     g+1  Free: CAS. Who fails has a stale block
//	      g+1   g    Free, which could not free after all
//
// A slot is used by the holder of the block whose word it has; its first use, the further uses and
// the word are shared with calls for stale blocks.
type slot struct {
	word  atomic.Uint64
	first atomic.Uint64 // a use: the stream's handle and 1 more; 0: none
	since atomic.Uint64 // the latest word with which a block announced the first use; it never falls
	more  atomic.Pointer[use]
	where place // never changes

	// Written by the one that has the slot before it hands a block out, read by its holder.
	data   unsafe.Pointer // nil for memory of a device
	ptr    cudadrv.Ptr    // 0 for pageable memory
	offset int64          // from both to the block
}

// use is a further stream that uses the block with a word.
type use struct {
	stream cudadrv.Stream
	word   uint64
	next   *use
}

// place decides about the announced uses of a slot's memory.
type place interface {
	// usable refuses the uses that cannot be announced, and reports whether they have to be kept.
	usable(s cudadrv.Stream) (keep bool, err error)
}

// end moves the word on from the holder's: from here on no copy of the block is live.
func (s *slot) end(word uint64) error {
	if s.word.CompareAndSwap(word, word+1) {
		return nil
	}
	return s.refusal(word)
}

// refusal is the error of a free with a word that is not the slot's.
func (s *slot) refusal(word uint64) error {
	if s.word.Load() == word+1 {
		return ErrDoubleFree
	}
	return ErrStale
}

// revive takes an end back. Precondition: the caller has ended the life, and let nobody have the
// slot since.
func (s *slot) revive(word uint64) { s.word.Store(word) }

// announce keeps a use of the block that has the word. The use is written before the word is read,
// and end writes the word before the uses are read: one of the two sees the other. A use that came
// too late stays with the slot until a later free forgets it. It has the old word, so no holder
// waits for its stream, which may have been destroyed.
func (s *slot) announce(stream cudadrv.Stream, word uint64) error {
	if s.word.Load() != word {
		return ErrNotLive
	}
	keep, err := s.where.usable(stream)
	if err != nil || !keep {
		return err
	}
	s.note(stream, word)
	if s.word.Load() != word {
		return ErrNotLive
	}
	return nil
}

// note writes a use down.
func (s *slot) note(stream cudadrv.Stream, word uint64) {
	code := uint64(stream) + 1
	if s.first.Load() == code || s.first.CompareAndSwap(0, code) {
		s.renew(word)
	} else {
		s.push(stream, word)
	}
}

// renew makes the first use one of the block with the word, unless it is one of a later block.
func (s *slot) renew(word uint64) {
	for {
		since := s.since.Load()
		if since >= word || s.since.CompareAndSwap(since, word) {
			return
		}
	}
}

// push adds a stream to the further ones.
func (s *slot) push(stream cudadrv.Stream, word uint64) {
	for {
		top := s.more.Load()
		for u := top; u != nil; u = u.next {
			if u.stream == stream && u.word == word {
				return
			}
		}
		if s.more.CompareAndSwap(top, &use{stream, word, top}) {
			return
		}
	}
}

// noted reports whether the slot has uses, also late ones.
func (s *slot) noted() bool { return s.first.Load() != 0 }

// streams appends the streams of the announced uses of the block with the word, each once, to an empty slice.
func (s *slot) streams(all []cudadrv.Stream, word uint64) []cudadrv.Stream {
	if code := s.first.Load(); code != 0 && s.since.Load() == word {
		all = append(all, cudadrv.Stream(code-1))
	}
	for u := s.more.Load(); u != nil; u = u.next {
		if u.word == word && (len(all) == 0 || all[0] != u.stream) {
			all = append(all, u.stream)
		}
	}
	return all
}

// address returns the address to align, before the offset: the host's if there is one.
func (s *slot) address() uint64 {
	if s.data != nil {
		return uint64(uintptr(s.data))
	}
	return uint64(s.ptr)
}

// forget drops the uses. Further streams go first: noted must not turn false while some are left.
func (s *slot) forget() {
	s.more.Store(nil)
	s.first.Store(0)
}
