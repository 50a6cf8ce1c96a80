package simulation

import (
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/streams"
)

// reserved is a caller that reserves memory, draws buffers from it, and releases the rest.
func (w *world) reserved(s *stream, act action) func() {
	bytes := 1 + w.shape.size(act.b)
	return func() {
		w.lastID++
		d := w.newDeadline()
		p := w.expect(func() bool { return false }, d)
		r, err := w.era.pool.Reserve(d, poolcore.Client(w.lastID), bytes)
		w.cease(p)
		if err != nil {
			w.refused(s, p, bytes, err)
			return
		}
		w.report.Reserved++
		w.reserving++
		w.reach("between reserving and drawing")
		for range 1 + act.c%3 {
			w.async(s, streams.Request{Bytes: max(1, bytes/2), Reservation: r}, false)
		}
		r.Release()
		w.reserving--
	}
}
