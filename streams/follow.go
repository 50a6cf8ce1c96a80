package streams

import "github.com/go-vram/vram/internal/fence"

// Follow implements pool.Client: later work of the stream waits, on the device, for another stream's mark.
func (s *Stream) Follow(m fence.Mark) error {
	s.calls.Add(1)
	defer s.calls.Add(-1)
	if s.closing.Load() { // from here on Close waits for the call
		return ErrClosed
	}
	if err := s.uncaptured("cuStreamWaitEvent"); err != nil {
		return err
	}
	return s.guard(func() error { return s.fences.Precede(m, s.handle) })
}

// Idle implements pool.Client: the stream has finished what it was given. One that is being captured or closed is not asked.
func (s *Stream) Idle() (idle bool) {
	s.calls.Add(1)
	defer s.calls.Add(-1)
	if s.closing.Load() || s.uncaptured("cuStreamQuery") != nil {
		return false
	}
	err := s.guard(func() (err error) {
		idle, err = s.device.StreamQuery(s.handle)
		return err
	})
	return idle && err == nil
}
