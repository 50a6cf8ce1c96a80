package vram

// The compiler hands the body of a function on to those who import this package alone only if this package inlined
// it itself. With the uses below the calls of a pair are inlined in every program.
var _, _ = pair, lanePair

func pair(s *Stream) error {
	b, err := s.Alloc(1)
	if err != nil {
		return err
	}
	return b.Free()
}

func lanePair(l *Lane) error {
	b, err := l.Alloc(1)
	if err != nil {
		return err
	}
	return l.Free(b)
}
