package core

import (
	"testing"

	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// FuzzCore reads steps of three bytes: the action, its size or buffer, and the count.
func FuzzCore(f *testing.F) {
	f.Add([]byte{0, 3, 5, 1, 0, 2, 0, 9, 70, 1, 5, 80, 5, 0, 0})           // classes fill, park and come back
	f.Add([]byte{2, 200, 30, 0, 200, 3, 1, 1, 1, 5, 0, 0, 2, 200, 30})     // a length is kept, evicted, kept
	f.Add([]byte{3, 200, 70, 2, 201, 20, 3, 200, 2, 7, 0, 0, 1, 0, 9})     // a magazine fills, another pushes it out
	f.Add([]byte{0, 230, 9, 6, 3, 1, 1, 2, 4, 6, 1, 0, 6, 9, 2})           // budgets
	f.Add([]byte{0, 210, 4, 4, 0, 1, 4, 1, 2, 8, 0, 0, 9, 0, 1, 1, 0, 99}) // double frees, slow frees, undo, close
	a, b := collidingBytes()
	bytesOf := func(how byte) int64 {
		switch {
		case how < 128: // classes
			return int64(how) * int64(how) * 4
		case how < 192: // lengths that practically do not repeat
			return sizeclass.MaxBytes + int64(how)*2719
		default:
			return []int64{256 * kib, mib, a, b, 3 * mib, 9 * mib}[int(how)%6]
		}
	}
	f.Fuzz(func(t *testing.T, steps []byte) {
		w := newWorld(t, 512, Budget{})
		for ; len(steps) >= 3; steps = steps[3:] {
			how, times := steps[1], int(steps[2])
			w.step(steps[0]%12, int(how), times, bytesOf(how))
			w.check()
		}
		w.checkKept()
		w.finish(true)
	})
}

// step does one of twelve things.
func (w *world) step(what byte, how, times int, bytes int64) {
	hint := how % magazine.Shards
	switch what {
	case 0:
		for range times%80 + 1 {
			if w.liveUnits > worldUnits/2 || w.alloc(bytes, hint, w.always) == nil {
				return
			}
		}
	case 1:
		for i := range times {
			if len(w.live) > 0 {
				w.free(w.live[(how+7*i)%len(w.live)])
			}
		}
	case 2:
		w.repeat(times%40, bytes, hint, w.always)
	case 3:
		w.hoard(min(times, worldUnits/8/int(blockUnits(bytes)))%80, bytes, hint, w.always)
	case 4:
		if len(w.dead) > 0 {
			w.freeAgain(w.dead[how%len(w.dead)])
		}
	case 5:
		w.back(w.core.Release(uint32(times)-1, false))
	case 6:
		w.core.SetBudget(Budget{CacheBytes: int64(how) * 200 * kib, CacheRanges: times % 4})
		w.excess()
	case 7:
		w.serve(bytes, hint, w.always)
	case 8:
		if len(w.live) > 0 {
			b := w.live[how%len(w.live)]
			_ = b.slot.Announce(b.word, magazine.Announced)
		}
	case 10:
		if w.liveUnits+uint64(times+1)*uint64(blockUnits(bytes)) < worldUnits/2 {
			w.batch(max(bytes, 1), times+1, hint, how%2 == 0)
		}
	case 11:
		w.aligned(max(bytes, 1), sizeclass.UnitBytes<<(times%13), w.always)
	case 9:
		own := w.own
		if b := w.alloc(bytes, hint, func(uint32) bool { return false }); b != nil && own != w.own {
			w.undo(b, false)
		}
	}
}
