package streams

import (
	"errors"
	"fmt"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/recovered"
	poolcore "github.com/go-vram/vram/pool/core"
)

// effects are what a turn of a stream left.
type effects struct {
	stream   *Stream
	returns  []giving
	home     []reply        // to those who are told once the returns are with the pool
	leave    poolcore.Fence // to be recorded for later; 0: none
	discards []fence.Mark
	refills  []refilling
	fills    []fill
	fences   []fencing
	sought   searching // of whoever searches once more when those were performed
	again    []claim   // likewise
	wish     *asked    // to be answered when those were performed
	outlast  bool
	end      bool

	withdrawals []uint64
	blocks      []poolcore.Block
	consults    []consulting
	suspends    bool
	offers      []answeredOffer
}

// giving is a Return on its way.
type giving struct {
	poolcore.Return
	mark    fence.Mark // of covered runs, the first time that it is used
	covered bool       // the fence was recorded before
}

// reply is the answer to an order that gives memory back.
type reply struct {
	order *order
	stats Stats
}

// refilling is a Refill on its way, with the claim that waits for other people's frees by it, if one does.
type refilling struct {
	poolcore.Refill
	waits claim
}

func (e *effects) refill(r poolcore.Refill) { e.refills = append(e.refills, refilling{Refill: r}) }

// Perform implements actors.Effects.
func (e *effects) Perform() {
	s := e.stream
	e.giveBack()
	if e.leave != 0 {
		s.leaveFence(e.leave)
	}
	for _, m := range e.discards {
		s.discard(m)
	}
	for _, token := range e.withdrawals {
		s.pool.Withdraw(s.id, token)
	}
	for _, r := range e.refills {
		if r.Place.Unready {
			s.pool.RefillLater(s, r.Refill, charging{r.waits})
		} else {
			s.pool.Refill(s, r.Refill)
		}
		if r.waits != nil {
			s.repeat(r)
		}
	}
	for _, b := range e.blocks {
		s.pool.Block(b)
	}
	if e.suspends {
		s.tellSuspended()
	}
	for _, o := range e.offers {
		s.pool.AnswerOffer(s.id, o.token, o.taken)
	}
	for _, f := range e.fills {
		f.perform(s)
	}
	if len(e.fences) > 0 {
		e.performFences()
	}
	if e.wish != nil {
		s.ref.Call(e.wish)
	}
	for _, c := range e.consults {
		actors.Go(s.host, "", func() { s.askHandler(c) })
	}
	if e.outlast {
		actors.Go(s.host, "", s.outlast)
	}
	if e.end {
		s.ref.Stop(ErrClosed)
	}
	clear(e.returns)
	clear(e.home)
	clear(e.refills)
	clear(e.fills)
	clear(e.fences)
	clear(e.again)
	clear(e.consults)
	*e = effects{
		stream: s, returns: e.returns[:0], home: e.home[:0], discards: e.discards[:0], refills: e.refills[:0], fills: e.fills[:0],
		fences: e.fences[:0], again: e.again[:0], withdrawals: e.withdrawals[:0], blocks: e.blocks[:0], offers: e.offers[:0],
		consults: e.consults[:0],
	}
	s.spare.Store(e)
}

// giveBack makes the returns, and then tells those who wait for that, whatever has become of them.
func (e *effects) giveBack() {
	defer e.reply(nil)
	for i := range e.returns {
		r := &e.returns[i]
		if mark := e.stream.record(r); len(r.Runs) > 0 || r.Answer || r.Stirred || r.Kept > 0 {
			e.stream.pool.Return(r.Return, mark)
		}
	}
}

// reply answers the orders that wait for the returns.
func (e *effects) reply(err error) {
	for _, r := range e.home {
		r.order.promise.Complete(r.stats, err)
	}
}

// performFences looks at fences and takes them, and has memory sorted that came home by that.
func (e *effects) performFences() {
	s := e.stream
	advanced := false
	for _, f := range e.fences {
		advanced = f.perform() || advanced
	}
	if advanced && e.sought == firstSearch {
		s.tell()
	}
	for _, c := range e.again {
		s.ref.Call(c)
	}
}

// tell has a turn take home what has passed: the caller's own where nobody is in it.
func (s *Stream) tell() {
	if !s.ref.TryEnter() {
		s.ref.Call(&looked{})
		return
	}
	var left actors.Effects
	s.takeHome(&left)
	s.ref.Perform(left)
}

func (s *Stream) takeHome(left *actors.Effects) {
	defer s.ref.Exit(left, nil)
	s.passed()
}

// searchAfter is the search that follows one in vain, whose turn left that: the first if none does.
func searchAfter(before searching, left actors.Effects) searching {
	e, ok := left.(*effects)
	switch {
	case ok && e.sought != firstSearch:
		return e.sought
	case ok && len(e.fences) > 0 && before == firstSearch:
		return afterFences
	default:
		return firstSearch
	}
}

// record takes the fence of a return. If the driver refuses, the stream's work is waited for instead. If it
// refuses that too, or the stream is being captured, nobody else may have the pages: they go back into the stream, where no fence is needed,
// and will be returned when they are asked for again.
func (s *Stream) record(r *giving) (mark fence.Mark) {
	if r.Fence == 0 || r.covered {
		return r.mark
	}
	defer s.calls.Add(-1) // last: Close destroys the handle then
	mark, err := s.mark()
	if err == nil {
		return mark
	}
	var captured *CaptureError
	if !errors.As(err, &captured) && s.guard(func() error { return s.device.StreamSynchronize(s.handle) }) == nil {
		r.Fence = 0
		return fence.Mark{}
	}
	kept := &granted{stream: s, runs: r.Runs, kept: true}
	r.Kept, r.Runs, r.Fence = len(r.Runs), nil, 0
	s.ref.Call(kept)
	return fence.Mark{}
}

// mark records the present end of the stream.
func (s *Stream) mark() (mark fence.Mark, err error) {
	if err = s.uncaptured("cuEventRecord"); err != nil {
		return mark, err
	}
	err = s.guard(func() (err error) {
		mark, err = s.fences.Record(s.handle)
		return err
	})
	if err != nil {
		return mark, err
	}
	if err = s.uncaptured("cuEventRecord"); err != nil { // a capture that began meanwhile may have the mark: to ask about it would break that
		s.lost.Add(1)
		s.discard(mark)
		return fence.Mark{}, err
	}
	return mark, nil
}

// guard makes a panic of the driver an error, and reports it: what else the turn left is still to be performed.
func (s *Stream) guard(call func() error) error { return guard(s.panics, call) }

func guard(panics *recovered.Log, call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			panics.Here("driver", value)
			err = fmt.Errorf("streams: the driver panicked: %v", value)
		}
	}()
	return call()
}
