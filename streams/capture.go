package streams

import "github.com/go-vram/vram/actors"

// Enter begins work on the CUDA stream, which Close waits for, and captures of the stream, too; Leave ends
// it. captured says that the work must be part of the announced capture. The error is ErrClosed, or a
// *CaptureError if a capture is announced and captured is false, or the reverse; then nothing has begun.
// Enter and Leave take two atomic operations.
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

// EnterQuick is Enter(false) for a launch that makes one driver call and calls nothing else; LeaveQuick ends it. Work
// that Check has reported as plain in between stays so until LeaveQuick.
func (x Submitter) EnterQuick() error {
	if h := &x.s.cuda; h.announcement.enterQuick() && !h.closing.Load() {
		return nil
	}
	return x.refuseQuick()
}

// refuseQuick ends a launch that EnterQuick began and that must not be made, and returns the reason.
func (x Submitter) refuseQuick() error {
	h := &x.s.cuda
	h.announcement.leaveQuick()
	if h.closing.Load() {
		return h.closed()
	}
	return x.Forbidden("work that is submitted as the capture begins or ends")
}

// LeaveQuick ends the launch that EnterQuick began.
func (x Submitter) LeaveQuick() { x.s.cuda.announcement.leaveQuick() }

// Leave ends the work that Enter or Outside began.
func (x Submitter) Leave() { x.s.cuda.announcement.leave() }

// Outside is Enter for a driver call that may not be part of any capture, announced or not: it queries the
// driver. The error names the call.
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

// Uncaptured queries the driver again, after a record: an unannounced capture may contain it. Errors:
// *CaptureError, and the driver's.
func (x Submitter) Uncaptured(call string) error {
	captured, err := x.s.cuda.captured()
	if captured {
		return x.Forbidden(call)
	}
	return err
}

// Forbidden returns the error of a call that a capture of the stream forbids.
func (x Submitter) Forbidden(call string) error {
	return &CaptureError{Stream: x.s.cuda.id, Call: call}
}

// BeginCapture announces a capture of the stream, waits until the driver calls in progress on it have ended,
// and calls begin, which begins the capture, or adds the stream to one. From the announcement to EndCapture,
// calls that may not be part of a capture are refused with a *CaptureError. After an error no capture is
// announced: a *CaptureError if one is in progress, or if a call does not end within ten seconds; ErrClosed;
// and begin's.
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

// SettleCapture waits, before the end of a capture, until the work that must be part of it has been
// submitted. The caller must begin no further work for the capture. It waits for at most ten seconds.
func (x Submitter) SettleCapture() { _ = x.s.cuda.announcement.await(x.s.host) }

// EndCapture allows calls again that may not be part of a capture, once that has ended.
func (x Submitter) EndCapture() { x.s.cuda.announcement.withdraw() }

// busy returns the error of a capture that could not begin.
func (h *cudaStream) busy() error {
	return &CaptureError{Stream: h.id, Call: "cuStreamBeginCapture", Err: ErrBusy}
}

// holdDefault refuses calls on the legacy default stream, if that is adopted, until release is called: during
// a capture of a blocking stream they would end the capture, and only adopted streams may be blocking. Once
// the capture has begun, the driver reports it.
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
