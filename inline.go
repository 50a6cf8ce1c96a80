package vram

// A package that imports only this one gets the body of a function inlined only if this package
// inlined it itself. The uses below have the calls of a pair inlined in every program.
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
