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
