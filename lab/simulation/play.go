package simulation

import (
	"slices"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
)

// act performs an action.
func (w *world) act(act action) {
	w.report.Actions[act.kind]++
	w.mix(uint64(act.kind) + act.task)
	d := &w.deeds[act.kind]
	if d.change != nil {
		d.change(w, act)
		return
	}
	var s *stream
	if len(w.era.streams) > 0 {
		s = w.anyStream(act.a)
	} else if act.kind != actOpen && act.kind != actAdopt {
		return
	}
	if work := d.caller(w, s, act); work != nil {
		t := w.start(uint64(act.number), d.name, work)
		t.action = act.number
		w.goOn(t, int(act.passing))
	}
}

// run resumes a task.
func (w *world) run(act action) {
	if t := w.find(act.task); t != nil {
		w.goOn(t, int(act.passing))
	}
}

func (w *world) goOn(t *task, passing int) {
	w.resume(t, passing)
	w.report.Resumes++
	if w.verbose && slices.Contains(w.tasks, t) {
		w.note("%s stops: %s", t.label(), t.paused)
	}
}

func (w *world) advance(act action) {
	w.watch.Advance(time.Duration(act.a%60) * time.Microsecond)
}

func (w *world) setCapacity(act action) {
	w.faulty = true
	w.faults.SetCapacity(w.usedBytes() + int64(act.a%4)*w.shape.pageBytes)
}

func (w *world) plantInTurn(act action) {
	w.turnPanic.set([]string{"before search", "before answer", "before return"}[act.a%3], act.b%4)
}

func (w *world) plantInCall(act action) {
	w.callPanic.set(panickyCalls()[act.a%uint32(len(panickyCalls()))], act.b%6)
}

// panickyCalls are those that may panic: of others the caller is not on the way of a request.
func panickyCalls() []string {
	return []string{
		"cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuMemRelease", "cuEventQuery", "cuEventRecord",
		"cuEventSynchronize", "cuStreamWaitEvent", "cuMemsetD8Async", "cuStreamSynchronize", "cuStreamDestroy", "cuMemAlloc", "cuMemFree",
	}
}

// setFaults makes driver calls fail: some now and then, or one once, or one for ever.
func (w *world) setFaults(act action) {
	w.faults.Clear()
	w.faulty = true
	functions := []string{
		"*", "*", "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuMemRelease", "cuEventRecord", "cuEventQuery",
		"cuEventCreate", "cuEventSynchronize", "cuStreamWaitEvent", "cuStreamSynchronize", "cuMemsetD8Async", "cuStreamCreate",
		"cuMemAlloc", "cuMemFree",
	}
	rule := fault.Rule{Func: functions[act.a%uint32(len(functions))], Result: cudadrv.Unknown, Seed: uint64(act.b)}
	if act.b%2 == 0 {
		rule.Result = cudadrv.OutOfMemory
	}
	switch act.c % 4 {
	case 0:
		rule.First, rule.Count = uint64(1+act.b%8), 1
	case 1:
		rule.First, rule.Count = uint64(1+act.b%8), fault.Forever
	default:
		rule.Probability = w.shape.faultChance
	}
	if w.shape.faultChance == 0 {
		return
	}
	w.note("from now on: %v", rule)
	w.must(w.faults.Add(rule), "faults")
	if rule.Func == "cuEventRecord" { // else synchronising always saves it
		w.must(w.faults.Add(fault.Rule{Func: "cuStreamSynchronize", Probability: 0.5, Seed: uint64(act.c), Result: rule.Result}), "faults")
	}
}

// settleLimit bounds the steps until nothing is left to do. Beyond it the house runs in circles.
const settleLimit = 50_000

// settle heals the driver, runs all tasks to their end, and checks all books.
func (w *world) settle(draw uint64) {
	w.heal()
	w.brief = false
	if draw%4 != 1 { // captures may stay open
		w.endCaptures()
	}
	if w.drain(draw); w.fault != nil {
		return
	}
	w.note("all is settled")
	w.report.Settled++
	if !w.era.closed {
		w.settled()
		w.settledLookups(mixed(draw, 9))
		w.fits(draw)
		w.local(mixed(draw, 7))
	}
	w.panics, w.faulty = w.turnPanic.count+w.callPanic.count, false
	for _, s := range w.era.streams {
		s.exclusion.known = s.exclusion.excluded
	}
	w.era.leastLimit = w.era.limit.Load()
	w.era.mostBytes = max(w.era.limit.Load(), w.usedBytes())
}

// resumeAny resumes one of the ready tasks, past some places, chosen by draw.
func (w *world) resumeAny(ready []*task, draw uint64) {
	w.resume(ready[draw%uint64(len(ready))], int(draw>>32%16))
	w.report.Resumes++
}

// drain runs all tasks to their end, in an order chosen by draw.
func (w *world) drain(draw uint64) {
	w.ticked, w.barren = false, 0
	for n := uint64(0); len(w.tasks) > 0 && w.fault == nil; n++ {
		ready := w.runnable()
		if len(ready) == 0 && w.relieve(mixed(draw, n)) {
			continue
		}
		if len(ready) == 0 {
			w.hang()
			return
		}
		if n > settleLimit {
			w.broken("circles", "nothing settles: %v", w.labels())
			return
		}
		draw = mixed(draw, n)
		w.resumeAny(ready, draw)
	}
}

// next runs after every action.
func (w *world) next() {
	switch {
	case !w.stuck():
	case len(w.sleepers) == 0:
		w.hang()
	case !w.disturbed(): // no tick is needed
		w.checkWaits(0)
	}
	if w.step%64 == 0 {
		w.must(w.watch.Audit(), "audit")
	}
	if w.era.closed && len(w.tasks) == 0 && w.fault == nil {
		w.endEra()
		w.openEra(uint64(w.step))
	}
}

// record plays a run of so many steps and returns its history.
func (w *world) record(steps int) []action {
	w.lottery = newLottery(w.seed)
	history := make([]action, 0, steps)
	for n := 1; n <= steps && w.fault == nil; n++ {
		w.step = n
		act := w.draw(uint32(n))
		history = append(history, act)
		w.act(act)
		w.next()
	}
	w.finish()
	return history
}

// replay plays a history, and ends the world as record does.
func (w *world) replay(history []action) {
	for _, act := range history {
		if w.fault != nil {
			break
		}
		w.step = int(act.number)
		if w.verbose {
			w.note("%6d  %s", act.number, w.describe(act))
		}
		w.act(act)
		w.next()
	}
	w.finish()
}

// mostProgress is how often callers wait for memory at the end of a run. More take as long as the run itself.
const mostProgress = 3

// finish closes the device, busy or idle, with a driver that works or fails.
func (w *world) finish() {
	defer w.abandon()
	if w.fault == nil && !w.era.closed {
		if w.step%2 == 0 {
			w.settle(uint64(w.step))
		}
		for n := range uint64(mostProgress) {
			w.progress(mixed(w.seed, n))
		}
		if w.step%3 != 0 {
			w.heal()
		}
		w.start(keyOf("close"), "close", w.closeDevice)
		w.drain(uint64(w.step))
	}
	if w.fault == nil {
		w.drain(1)
	}
	if w.fault == nil && w.era.closed {
		w.endEra()
	}
	w.report.Injected = w.faults.Injected()
	w.report.TurnPanics, w.report.CallPanics = w.turnPanic.count, w.callPanic.count
}
