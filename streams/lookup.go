package streams

import (
	"context"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/cudadrv"
)

// Lookup finds the live buffer of this stream in whose memory an address lies. Its Bytes are those of the block, which may
// be more than was asked for; else it is the same buffer. The caller sees to it that nobody frees the buffer meanwhile. It takes the
// stream's turn; the first call on a stream visits every block of it, later ones take logarithmic time.
func (s *Stream) Lookup(p cudadrv.Ptr) (Buffer, bool) {
	if !s.opened() {
		return Buffer{}, false
	}
	if !s.ref.TryEnter() {
		o := &order{verb: orderLookup, address: p}
		if _, err := s.order(context.Background(), o); err != nil {
			return Buffer{}, false
		}
		return o.found, o.found.slot != nil
	}
	var b Buffer
	var left actors.Effects
	s.lookupTurn(p, &b, &left)
	s.ref.Perform(left)
	return b, b.slot != nil
}

func (s *Stream) lookupTurn(p cudadrv.Ptr, b *Buffer, left *actors.Effects) {
	defer s.ref.Exit(left, nil)
	*b = s.find(p)
}

// find is Lookup inside the turn; the zero Buffer is none.
func (s *Stream) find(p cudadrv.Ptr) Buffer {
	slot, word, bytes, found := s.core.Lookup(p)
	if !found {
		return Buffer{}
	}
	return Buffer{slot, word, bytes}
}
