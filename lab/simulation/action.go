package simulation

import "math/rand/v2"

// kind is the kind of an action.
type kind uint8

const (
	actRun     kind = iota // resume a task
	actAlloc               // one buffer, waited for
	actAsync               // one buffer as a future, with a context
	actRequest             // one buffer with options
	actGather              // several futures as one: All, First, Then
	actBatch               // several buffers at once
	actBatchAsync
	actWait // one buffer, for other people's frees
	actWaitBatch
	actWaitFuture // and free during the wait
	actSuspend
	actLoop // the same size again and again
	actStep // the same sequence of sizes
	actRehearse
	actRecord // a use on another stream, until the free
	actUse    // one that is ended
	actDone
	actTransfer
	actLookup
	actExclude
	actCross // run work of a stream on another stream's buffer, ordered after that stream
	actCapture
	actEndCapture
	actFree
	actFreeBatch
	actFreeAgain
	actFreeAll
	actCancel // a future
	actExpire // a context
	actAdvance
	actTick
	actPoolTick
	actTrim
	actReturn // return memory that a stream keeps
	actWarm
	actPress
	actBudget
	actReconfigure
	actStats
	actCheck
	actOpen
	actAdopt
	actClose
	actFaults
	actHeal
	actCapacity
	actPanicTurn
	actPanicCall
	actSettle
	actWhole
	actStandstill
	actPipeline
	actCloseDevice
	actPause
	kindCount
)

// String returns the word for it in reports.
func (k kind) String() string { return deeds()[k].name }

// action is one decision of the scheduler. Every action is valid in every state, if only as a no-op: numbers are taken modulo
// the number of candidates, so a history can be played after actions were removed from it.
type action struct {
	kind    kind
	number  uint32 // its place in the history as it was drawn, from 1 on: names the task that it starts
	passing uint8  // places that the task runs past
	a, b, c uint32
	task    uint64 // of actRun
}

// deed performs one kind of action: a caller does something, on an open stream if there is one, or the world changes. A
// caller's function is nil if there is nothing to do.
type deed struct {
	name   string
	parts  int // how often it is drawn, in 10,000
	caller func(w *world, s *stream, act action) func()
	change func(w *world, act action)
}

// deeds lists the possible actions. Most are by callers; changes of the whole world are rare, so that there is a world to
// change.
func deeds() [kindCount]deed {
	return [kindCount]deed{
		actRun:         {"run", 0, nil, (*world).run},
		actAlloc:       {"alloc", 900, (*world).alloc, nil},
		actAsync:       {"alloc async", 1100, (*world).allocAsync, nil},
		actRequest:     {"alloc for", 350, (*world).allocFor, nil},
		actGather:      {"gather", 150, (*world).gather, nil},
		actBatch:       {"batch", 200, (*world).batch, nil},
		actBatchAsync:  {"batch async", 250, (*world).batchAsync, nil},
		actWait:        {"wait", 330, (*world).waited, nil},
		actWaitBatch:   {"wait for a batch", 100, (*world).batchWaited, nil},
		actWaitFuture:  {"wait for a future", 110, (*world).futureWaited, nil},
		actSuspend:     {"suspend", 60, (*world).suspendedFor, nil},
		actLoop:        {"loop", 290, (*world).loop, nil},
		actStep:        {"step", 60, (*world).stepped, nil},
		actRehearse:    {"rehearse", 15, nil, (*world).rehearsed},
		actRecord:      {"record stream", 350, (*world).useRecorded, nil},
		actUse:         {"use", 150, (*world).useBegun, nil},
		actDone:        {"done", 150, (*world).useDone, nil},
		actTransfer:    {"transfer", 120, (*world).handedOver, nil},
		actLookup:      {"look up", 200, (*world).lookedUp, nil},
		actExclude:     {"exclude from waits", 60, (*world).excluding, nil},
		actCapture:     {"capture", 60, (*world).capturing, nil},
		actEndCapture:  {"end capture", 120, (*world).captureEnded, nil},
		actCross:       {"cross", 160, (*world).crossed, nil},
		actFree:        {"free", 2465, (*world).freed, nil},
		actFreeBatch:   {"free batch", 200, (*world).batchFreed, nil},
		actFreeAgain:   {"free again", 300, (*world).freedAgain, nil},
		actFreeAll:     {"free all", 40, (*world).allFreed, nil},
		actCancel:      {"cancel", 500, (*world).canceling, nil},
		actExpire:      {"expire", 250, (*world).expiring, nil},
		actAdvance:     {"advance", 600, nil, (*world).advance},
		actTick:        {"tick", 400, (*world).tick, nil},
		actPoolTick:    {"tick pool", 250, (*world).tickPool, nil},
		actTrim:        {"trim", 100, (*world).trim, nil},
		actReturn:      {"return", 40, (*world).returned, nil},
		actWarm:        {"warm", 60, (*world).warm, nil},
		actPress:       {"press", 40, (*world).press, nil},
		actBudget:      {"set budget", 60, (*world).setBudget, nil},
		actReconfigure: {"reconfigure", 30, (*world).reconfigure, nil},
		actStats:       {"stats", 60, (*world).stats, nil},
		actCheck:       {"check", 60, (*world).check, nil},
		actOpen:        {"open stream", 90, (*world).streamOpened, nil},
		actAdopt:       {"adopt stream", 40, (*world).streamAdopted, nil},
		actClose:       {"close stream", 60, (*world).streamClosed, nil},
		actFaults:      {"faults", 150, nil, (*world).setFaults},
		actHeal:        {"heal", 80, nil, func(w *world, _ action) { w.heal() }},
		actCapacity:    {"capacity", 20, nil, (*world).setCapacity},
		actPanicTurn:   {"panic in turn", 60, nil, (*world).plantInTurn},
		actPanicCall:   {"panic in call", 30, nil, (*world).plantInCall},
		actSettle:      {"settle", 30, nil, func(w *world, act action) { w.settle(uint64(act.a)) }},
		actWhole:       {"ask for all", 15, nil, (*world).whole},
		actStandstill:  {"stand still", 15, nil, (*world).standstill},
		actPipeline:    {"hand over", 15, nil, (*world).pipeline},
		actCloseDevice: {"close device", 5, func(w *world, _ *stream, _ action) func() { return w.closeDevice }, nil},
		actPause:       {"pause", 20, nil, (*world).pause},
	}
}

// lottery has the shares in a form that is quick to draw from.
type lottery []kind

// newLottery keeps the default shares for every other seed. For the others some kinds never occur and some occur more often:
// most defects need a few kinds of actions close together, and other kinds prevent them (Groce and others, Swarm testing,
// ISSTA 2012).
func newLottery(seed uint64) lottery {
	var l lottery
	r := rand.New(rand.NewPCG(seed, 0x737761726d)) //nolint:gosec // reproducible is the point
	swarm := chance(r, 50)
	for k, d := range deeds() {
		n := d.parts / 5
		if swarm && kind(k) != actAlloc && kind(k) != actFree && kind(k) != actOpen {
			n *= []int{0, 1, 4}[r.IntN(3)]
		}
		for range n {
			l = append(l, kind(k))
		}
	}
	return l
}

// taskLimit is how many tasks there may be for another caller to come. More would only wait for each other.
const taskLimit = 24

// draw decides the next action.
func (w *world) draw(number uint32) action {
	r := w.random
	act := action{number: number, a: r.Uint32(), b: r.Uint32(), c: r.Uint32()}
	if r.IntN(100) < 70 {
		act.passing = uint8(r.IntN(12))
	}
	if len(w.tasks) > 0 && (len(w.tasks) >= taskLimit || r.IntN(100) >= w.shape.callShare) {
		if ready := w.runnable(); len(ready) > 0 {
			act.kind, act.task = actRun, ready[r.IntN(len(ready))].key
			return act
		}
	}
	act.kind = w.lottery[r.IntN(len(w.lottery))]
	if w.shape.noPanics && (act.kind == actPanicTurn || act.kind == actPanicCall) || w.shape.faultChance == 0 && act.kind == actFaults {
		act.kind = actFree
	}
	return act
}
