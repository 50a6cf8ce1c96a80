package simulation

import "fmt"

// describe returns an action in words.
func (w *world) describe(act action) string {
	s := uint32(0)
	if len(w.era.streams) > 0 {
		s = w.anyStream(act.a).id()
	}
	bytes := w.shape.size(act.b)
	switch act.kind {
	case actRun:
		if t := w.find(act.task); t != nil {
			return "resume " + t.label()
		}
		return "resume a task that has ended"
	case actAlloc, actAsync, actRequest, actLoop, actGather, actWait, actWaitFuture:
		return fmt.Sprintf("%v: stream %d, %d bytes", act.kind, s, bytes)
	case actBatch, actBatchAsync, actWaitBatch:
		return fmt.Sprintf("%v: stream %d, %d", act.kind, s, w.batchSizes(act))
	case actFree:
		if n := uint32(len(w.held)); n > 0 {
			b := w.held[act.a%n]
			return fmt.Sprintf("%v: stream %d, %v", act.kind, b.stream.id(), b.span)
		}
	case actStep, actTick, actReturn, actBudget, actStats, actCheck, actClose, actFreeAll, actSuspend, actExclude:
		return fmt.Sprintf("%v: stream %d", act.kind, s)
	case actRehearse, actFreeBatch, actFreeAgain, actCancel, actExpire, actAdvance, actPoolTick, actTrim, actWarm, actPress, actReconfigure,
		actOpen, actAdopt, actFaults, actHeal, actCapacity, actPanicTurn, actPanicCall, actSettle, actWhole, actStandstill, actPipeline, actCloseDevice, actPause,
		actRecord, actUse, actDone, actTransfer, actLookup, actCapture, actEndCapture, actCross, kindCount:
	}
	return act.kind.String()
}

// String returns a range of addresses.
func (s span) String() string { return fmt.Sprintf("[%#x, %#x)", uint64(s.begin), uint64(s.end)) }
