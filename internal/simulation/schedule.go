package simulation

import (
	"runtime/debug"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	poolcore "github.com/go-vram/vram/pool/core"
)

// next draws what happens next.
func (w *world) next() {
	if w.random.IntN(100) < w.shape.callShare {
		w.call()
		return
	}
	w.machinery()
}

// machinery makes one step of what is under way: a turn, an effect, a driver call, a close. It reports
// whether there was any.
func (w *world) machinery() bool {
	var ready []func()
	if len(w.pool.mail) > 0 {
		ready = append(ready, func() { w.receive(&w.pool.actor) })
	}
	for _, s := range w.streams {
		if len(s.mail) > 0 {
			ready = append(ready, func() { w.receive(&s.actor) })
		}
	}
	for i := range w.performers {
		ready = append(ready, func() { w.perform(i) })
	}
	if w.driver.order != nil {
		ready = append(ready, func() { w.driver.advance(w) })
	}
	for _, c := range w.closers {
		if c.ready() {
			ready = append(ready, c.advance)
		}
	}
	if len(ready) == 0 {
		return false
	}
	ready[w.random.IntN(len(ready))]()
	return true
}

// call is something that a caller, the clock or the environment does.
func (w *world) call() {
	s := w.anyStream()
	allocShare := 160
	if w.chance(1) {
		w.filling = !w.filling
	}
	if w.filling {
		allocShare = 400
	}
	switch n := w.random.IntN(1000); {
	case n < allocShare:
		s.alloc(w.size())
	case n < 720:
		if len(s.held) > 0 {
			s.free(w.random.IntN(len(s.held)))
		}
	case n < 760:
		w.loop(s)
	case n < 790:
		if len(s.stale) > 0 {
			s.freeAgain()
		}
	case n < 820:
		if len(w.requests) > 0 {
			w.cancel()
		}
	case n < 880:
		w.watch.Advance(time.Duration(w.random.IntN(60)) * time.Microsecond)
	case n < 920:
		s.tick()
	case n < 945:
		w.pool.tell(poolcore.Tick{}, noMark)
	default:
		w.rare(n, s)
	}
}

// rare is what happens now and then.
func (w *world) rare(n int, s *stream) {
	switch {
	case n < 955:
		w.report.Trims++
		keep := w.random.Int64N(w.shape.limitBytes + 1)
		w.pool.ask("trim", func(token uint64) poolcore.Message { return poolcore.Trim{Token: token, KeepBytes: keep} }, nil)
	case n < 961:
		w.report.Warms++
		var runs []uint32
		for range 1 + w.random.IntN(3) {
			runs = append(runs, uint32(1+w.random.IntN(6)))
		}
		w.pool.ask("warm", func(token uint64) poolcore.Message { return poolcore.Warm{Token: token, Runs: runs} }, nil)
	case n < 965:
		w.report.ClosedEarly++
		w.close(s)
	case n < 972:
		if w.openCount() < 5 {
			w.openStream()
		}
	case n < 974:
		w.pool.reconfigure()
	case n < 979: // everything at once
		for len(s.held) > 0 {
			s.free(len(s.held) - 1)
		}
	case n < 996:
		w.setFaults()
	case n < 998:
		w.settle()
		w.setFaults()
	default:
		w.whole(s)
		w.setFaults()
	}
}

// whole frees all buffers and asks for the whole limit on one stream: nothing may be stranded with the
// others.
func (w *world) whole(s *stream) {
	w.settle()
	for _, o := range w.streams {
		for len(o.held) > 0 {
			o.free(len(o.held) - 1)
		}
		if o.shut && !o.synced && o.core.HeldBytes() > 0 {
			return // the driver refused to say that its work has finished
		}
	}
	w.settle() // what is on its way is nobody's
	pages := w.pool.core.Settings().LimitBytes / w.shape.pageBytes
	if w.fault != nil || s.shut || w.pool.core.LostBytes() > 0 || pages == 0 {
		return
	}
	refused := w.report.Refused
	s.alloc(pages * w.shape.pageBytes)
	w.settle()
	if w.report.Refused > refused {
		w.broken("stream %d is refused the whole limit though nothing lives: pool %v", s.id, w.pool.core)
		return
	}
	w.report.Whole++
}

// anyStream is one that is open, for the most part: closed ones have live buffers to be freed.
func (w *world) anyStream() *stream {
	for range 4 {
		if s := w.streams[w.random.IntN(len(w.streams))]; !s.shut || w.chance(10) {
			return s
		}
	}
	return w.streams[len(w.streams)-1]
}

func (w *world) openCount() (n int) {
	for _, s := range w.streams {
		if !s.shut {
			n++
		}
	}
	return n
}

// loop is a caller that takes and gives the same size again and again, as programs do.
func (w *world) loop(s *stream) {
	bytes := w.size()
	for range 3 + w.random.IntN(24) {
		before := len(s.held)
		s.alloc(bytes)
		if len(s.held) == before {
			return
		}
		if w.chance(92) {
			s.free(len(s.held) - 1)
		}
	}
}

// setFaults turns failures of the driver on or off.
func (w *world) setFaults() {
	w.faults.Clear()
	if w.shape.faultChance == 0 || w.chance(30) {
		return
	}
	functions := []string{"*", "*", "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuMemRelease", "cuEventRecord", "cuEventQuery"}
	function := functions[w.random.IntN(len(functions))]
	result := cudadrv.Unknown
	if w.chance(50) {
		result = cudadrv.OutOfMemory
	}
	w.note("faults in %s: %v", function, result)
	w.must(w.faults.Add(fault.Rule{Func: function, Probability: w.shape.faultChance, Seed: w.random.Uint64(), Result: result}), "faults")
	if function == "cuEventRecord" { // else synchronising always saves it
		w.must(w.faults.Add(fault.Rule{Func: "cuStreamSynchronize", Probability: 0.5, Seed: w.random.Uint64(), Result: result}), "faults")
	}
}

// settleLimit bounds the steps until nothing is left to do. Beyond it the house runs in circles.
const settleLimit = 20_000

// settle heals the driver and lets everything that is under way come to its end.
func (w *world) settle() {
	w.faults.Clear()
	for n := 0; w.machinery(); n++ {
		if n > settleLimit {
			w.broken("nothing settles: %d requests, %d performers, pool %v", len(w.requests), len(w.performers), w.pool.core)
			return
		}
		if w.fault != nil {
			return
		}
	}
	w.note("settled")
	w.report.Settled++
	w.settled()
}

func stack() []byte { return debug.Stack() }
