package sim

// slabLength is how many records are made at once, so that a driver call seldom allocates. Not longer: a slab lives as
// long as one of its records does.
const slabLength = 64

// slab makes records in batches.
type slab[T any] struct{ rest []T }

func (s *slab[T]) place(v T) *T {
	if len(s.rest) == 0 {
		s.rest = make([]T, slabLength)
	}
	p := &s.rest[0]
	s.rest = s.rest[1:]
	*p = v
	return p
}
