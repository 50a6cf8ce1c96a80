package streams

import (
	"errors"
	"fmt"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/pool"
)

// mostConsults is how often the caller's handler is asked about one request. Not fewer: a handler may free one thing at a time.
// Not more: one that says yes and frees nothing would keep the request for ever.
const mostConsults = 16

// consult has the caller's handler asked about a claim that the pool refused for want of memory, on a goroutine of its own. The
// claim holds nothing meanwhile. It reports whether the handler is asked.
func (s *Stream) consult(c claim, err error) bool {
	p := c.state()
	var short *pool.OutOfMemoryError
	if s.handler == nil || s.draining || p.consults >= mostConsults || !errors.As(err, &short) {
		return false
	}
	p.consults++
	c.drop(s)
	s.effects().consults = append(s.effects().consults, consulting{s.hold(c), short})
	return true
}

// consulting is a question to the caller's handler.
type consulting struct {
	token uint64
	err   *pool.OutOfMemoryError
}

// askHandler runs the handler and tells the stream what it said. A panic of the handler's means no.
func (s *Stream) askHandler(c consulting) {
	retry := false
	err := s.guardHandler(func() { retry = s.handler(c.err) })
	s.ref.Call(&consulted{token: c.token, retry: retry && err == nil, err: whole(c.err, err)})
}

// whole is the refusal, with what became of the handler if it failed.
func whole(short *pool.OutOfMemoryError, err error) error {
	if err == nil {
		return short
	}
	return errors.Join(short, err)
}

func (s *Stream) guardHandler(call func()) (err error) {
	defer func() {
		if value := recover(); value != nil {
			s.panics.Here("OnOutOfMemory", value)
			err = fmt.Errorf("vram: OnOutOfMemory panicked: %v", value)
		}
	}()
	call()
	return nil
}

// consulted brings the handler's answer.
type consulted struct {
	actors.Link
	token uint64
	retry bool
	err   error
}

// Fail has nobody to tell: the waiting requests were failed when the actor ended.
func (*consulted) Fail(error) {}

// heard serves a claim once more, or refuses it.
func (s *Stream) heard(m *consulted) {
	c := s.take(m.token)
	switch {
	case c == nil: // failed by Close
	case m.retry:
		c.serve(s)
	default:
		c.state().consults = mostConsults
		c.refuse(s, m.err, false)
	}
}
