package simulation

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/streams"
)

// freedLimit bounds the addresses of freed buffers that are looked up. More would hardly be used again.
const freedLimit = 64

// lookedUp is a caller who knows no more than an address: of a live buffer, inside one, or of one that was freed. He has the
// buffer that Lookup finds from then on, and announces a use of it or hands it over.
func (w *world) lookedUp(s *stream, act action) func() {
	if n := uint32(len(w.held)); n > 0 && act.c%4 > 0 {
		b := w.held[act.b%n]
		return func() {
			if b.held && b.stream.era == w.era { // nobody has freed it since
				w.lookUpLive(b, s, act)
			}
		}
	}
	if n := uint32(len(w.freedAt)); n > 0 {
		p := w.freedAt[act.b%n]
		return func() { w.lookUp(p, false) }
	}
	return nil
}

// lookUp asks every stream for an address, as a device does, and compares the answers: a found buffer contains the address,
// and if nobody frees there during the calls (still), at most one stream finds one.
func (w *world) lookUp(p cudadrv.Ptr, still bool) (found streams.Buffer, of *stream) {
	w.sought = true
	for _, s := range w.era.streams {
		b, ok := s.Lookup(p)
		switch {
		case !ok || !b.Live(): // somebody has freed it since the stream has answered
			continue
		case p < b.Ptr() || p >= b.Ptr()+cudadrv.Ptr(b.Bytes()):
			w.broken("lookup", "stream %d finds [%#x, %#x) at %#x", s.id(), b.Ptr(), b.Ptr()+cudadrv.Ptr(b.Bytes()), p)
		case of != nil && still:
			w.broken("lookup", "stream %d and stream %d both find something at %#x", of.id(), s.id(), p)
		}
		found, of = b, s
		w.report.Found++
	}
	return found, of
}

// lookUpLive looks up a live buffer that nobody else uses, and continues with the result.
func (w *world) lookUpLive(b *buffer, other *stream, act action) {
	at := b.span.begin + cudadrv.Ptr(act.a)%(b.span.end-b.span.begin)
	if act.c%4 == 1 {
		at = b.span.begin
	}
	w.unhold(b)
	found, of := w.lookUp(at, true)
	w.hold(b)
	if w.fault != nil || of == nil && (b.stream.closing || b.stream.era.closing) {
		return
	}
	w.leadsTo(at, b, found, of)
	if w.fault != nil || of == nil {
		return
	}
	b.Buffer = found
	switch act.c / 4 % 4 {
	case 0:
		w.recordUse(b, other)
	case 1:
		w.beginUse(b, other)
	case 2:
		w.handOver(b, other)
	}
}

// leadsTo says that an address inside a live buffer led to it.
func (w *world) leadsTo(p cudadrv.Ptr, b *buffer, found streams.Buffer, of *stream) {
	switch {
	case of == nil:
		w.broken("lookup", "%#x leads nowhere, it is in the live buffer %v of stream %d", p, b.span, b.stream.id())
	case of != b.stream || found.Ptr() != b.span.begin || !found.Live() || found.Bytes() < b.asked:
		w.broken("lookup", "%#x leads to %d bytes at %#x of stream %d (live: %t), it is in the live buffer %v of stream %d",
			p, found.Bytes(), found.Ptr(), of.id(), found.Live(), b.span, b.stream.id())
	}
}

// settledLookups looks up some addresses of live and freed buffers on all streams when nothing is running: live buffers are
// found, and nothing else.
func (w *world) settledLookups(draw uint64) {
	if !w.sought || w.era.closing || w.fault != nil {
		return
	}
	w.do("look up", func() {
		for i := range min(8, uint64(len(w.held))) {
			b := w.held[mixed(draw, i)%uint64(len(w.held))]
			if b.stream.era != w.era {
				continue
			}
			at := b.span.begin + cudadrv.Ptr(mixed(draw, i+8))%(b.span.end-b.span.begin)
			found, of := w.lookUp(at, true)
			w.leadsTo(at, b, found, of)
		}
		for i := range min(8, uint64(len(w.freedAt))) {
			at := w.freedAt[mixed(draw, i+16)%uint64(len(w.freedAt))]
			found, of := w.lookUp(at, true)
			if of == nil {
				continue
			}
			if b := w.ranges.touched(span{found.Ptr(), found.Ptr() + 1}); b == nil {
				w.broken("lookup", "%#x leads to %d bytes at %#x of stream %d, where no buffer is live", at, found.Bytes(), found.Ptr(), of.id())
			} else {
				w.leadsTo(at, b, found, of)
			}
		}
	})
}
