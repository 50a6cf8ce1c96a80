package streams

import "github.com/go-vram/vram/actors"

// Enter begins work on the CUDA stream, which Close waits for, and captures of the stream; Leave ends it. captured says that the work is to
// be part of the capture that is announced. The error is ErrClosed; or a *CaptureError where a capture is announced and the work is to run,
// or the other way round. Then nothing has begun. Enter and Leave take two atomic operations.
func (x Submitter) Enter(captured bool) error {
	h := &x.s.cuda
	entered := false
	if captured {
		entered = h.announcement.join()
	} else {
		entered = h.announcement.enter()
	}
	switch {
	case !entered:
		return x.Forbidden("work that is submitted as the capture begins or ends")
	case h.closing.Load():
		h.announcement.leave()
		return h.closed()
	}
	return nil
}

// Leave ends the work that Enter or Outside began.
func (x Submitter) Leave() { x.s.cuda.announcement.leave() }

// Outside is Enter for a call of the driver's that may be part of no capture, also of one that nobody announced: it queries the driver.
// The error names the call.
func (x Submitter) Outside(call string) error {
	if !x.s.cuda.announcement.enter() {
		return x.Forbidden(call)
	}
	err := error(nil)
	if x.s.cuda.closing.Load() { // the CUDA stream may be gone
		err = x.s.cuda.closed()
	} else {
		err = x.Uncaptured(call)
	}
	if err != nil {
		x.Leave()
	}
	return err
}

// Uncaptured queries the driver once more, after a record: a capture that nobody announced may have it. Errors: *CaptureError, and the
// driver's.
func (x Submitter) Uncaptured(call string) error {
	captured, err := x.s.cuda.captured()
	if captured {
		return x.Forbidden(call)
	}
	return err
}

// Forbidden is the error of a call that a capture of the stream forbids.
func (x Submitter) Forbidden(call string) error {
	return &CaptureError{Stream: x.s.cuda.id, Call: call}
}

// BeginCapture announces a capture of the stream, waits until the driver calls on it that have begun have ended, and calls begin, which
// begins the capture, or draws the stream into one. From the announcement to EndCapture, calls that may not be part of a capture are
// refused with a *CaptureError. Errors, with which no capture is announced: a *CaptureError if one is, or if a call does not end for
// ten seconds; ErrClosed; and begin's.
func (x Submitter) BeginCapture(begin func() error) error {
	h := &x.s.cuda
	if !h.announcement.announce() {
		return x.Forbidden("cuStreamBeginCapture")
	}
	begun := false
	defer func() {
		if !begun {
			h.announcement.withdraw()
		}
	}()
	switch {
	case !h.announcement.await(x.s.host):
		return h.busy()
	case h.closing.Load():
		return h.closed()
	}
	release, err := x.holdDefault()
	if err != nil {
		return err
	}
	defer release()
	if err := begin(); err != nil {
		return err
	}
	begun = true
	return nil
}

// SettleCapture waits, ahead of the end of a capture, until the work that was to be part of it has been submitted. The caller sees to it that
// no further work begins for the capture. Work that is not submitted within ten seconds is not waited for.
func (x Submitter) SettleCapture() { _ = x.s.cuda.announcement.await(x.s.host) }

// EndCapture lets calls begin again that may not be part of a capture, once that has ended.
func (x Submitter) EndCapture() { x.s.cuda.announcement.withdraw() }

// busy is the error of a capture that could not begin.
func (h *cudaStream) busy() error {
	return &CaptureError{Stream: h.id, Call: "cuStreamBeginCapture", Err: ErrBusy}
}

// holdDefault keeps calls off the legacy default stream, if that is adopted, until release is called: while a blocking stream is being
// captured they would end the capture, and only adopted streams may be blocking ones. Once the capture has begun, the driver says so.
func (x Submitter) holdDefault() (release func(), err error) {
	held := []*announcement{}
	release = func() {
		for _, a := range held {
			a.withdraw()
		}
	}
	if !x.s.cuda.adopted {
		return release, nil
	}
	for _, p := range x.s.peers.list() {
		r, ok := p.line.Recording().(*recording)
		if !ok || r.stream > 1 || r == (*recording)(&x.s.cuda) {
			continue
		}
		a := &r.announcement
		for !a.announce() { // another capture is about to begin
			actors.Yield(x.s.host)
		}
		held = append(held, a)
		if !a.await(x.s.host) {
			release()
			return nil, x.s.cuda.busy()
		}
	}
	return release, nil
}
