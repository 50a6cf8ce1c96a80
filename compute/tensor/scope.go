package tensor

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-vram/vram/cuda"
)

// Scope is a Context that frees the tensors which were made with it. Scoped, or NewScope and Close, begin and
// end one. One goroutine uses it at a time; its tensors may be used by any.
type Scope struct {
	on     *cuda.Context
	around *Scope // nil in the outermost one
	sites  bool
	tag    string // of the memory of tensors that are made from now on
	ended  bool

	made      []*Tensor // owners, in the order in which they were made; nil where one was kept
	compactAt int       // the length at which those that were freed leave the list
}

// minCompact is the length of the list below which the tensors that were freed stay in it: few enough to cost
// nothing, enough for most scopes.
const minCompact = 64

// Option changes a scope.
type Option func(*Scope)

// Sites has a scope, and those inside of it, note where in the program tensors are made, for Live. A note
// costs up to a microsecond.
func Sites() Option { return func(s *Scope) { s.sites = true } }

// NewScope begins a scope inside of another one, or in a context. The caller closes it. Errors: ErrNotOpen,
// ErrScopeEnded.
func NewScope(at Context, with ...Option) (*Scope, error) {
	c, around, err := contextOf(at)
	if err != nil {
		return nil, err
	}
	s := &Scope{on: c, around: around, compactAt: minCompact}
	if around != nil {
		s.sites, s.tag = around.sites, around.tag
	}
	for _, option := range with {
		if option != nil {
			option(s)
		}
	}
	return s, nil
}

// Scoped runs f in a scope, which ends when f returns or panics: it frees every tensor made in it, unless Keep was called for
// it. It joins the errors of f and of the frees. Errors: ErrNotOpen, ErrScopeEnded.
func Scoped(at Context, f func(s *Scope) error, with ...Option) (err error) {
	s, err := NewScope(at, with...)
	if err != nil {
		return err
	}
	defer func() {
		if failed := s.Close(); failed != nil {
			err = errors.Join(err, failed)
		}
	}()
	return f(s)
}

// SetTag names the memory of tensors that are made in the scope from now on, also the temporary ones of operations, in reports of live
// buffers, in profiles and in memory maps: see vram.Request.Tag, which has the cost of an allocation with a tag. "": no name, as at the
// beginning. A scope that begins inside of it has its tag.
func (s *Scope) SetTag(tag string) {
	if s != nil {
		s.tag = tag
	}
}

// itself returns the scope, also of a struct that embeds it.
func (s *Scope) itself() *Scope { return s }

// Context returns the scope's context; nil for a nil scope.
func (s *Scope) Context() *cuda.Context {
	if s == nil {
		return nil
	}
	return s.on
}

// Stream returns the stream to which the work goes.
func (s *Scope) Stream() *cuda.Stream { return s.Context().Stream() }

// Launch submits a kernel: see cuda.Context.Launch.
func (s *Scope) Launch(f *cuda.Function, g cuda.Geometry, args ...cuda.Arg) error {
	return s.Context().Launch(f, g, args...)
}

// String has the context and the number of tensors.
func (s *Scope) String() string {
	if s == nil {
		return "no scope"
	}
	return fmt.Sprintf("scope of %d tensors in the %v", len(s.live()), s.on)
}

// GoString is String: %#v prints no insides.
func (s *Scope) GoString() string { return s.String() }

// add takes a new tensor in.
func (s *Scope) add(t *Tensor) {
	if len(s.made) >= s.compactAt {
		s.compact()
	}
	t.storage.scope, t.storage.index = s, len(s.made)
	if s.sites && !t.storage.site.Known() {
		t.storage.site = cuda.Helpers(s.on).Here(1)
	}
	s.made = append(s.made, t)
}

// compact takes the tensors out that are freed or were kept. The list doubles before the next time, so that a
// tensor costs the same however many there are.
func (s *Scope) compact() {
	s.made = s.live()
	for i, t := range s.made {
		t.storage.index = i
	}
	s.compactAt = max(2*len(s.made), minCompact)
}

// live returns the tensors that are not freed.
func (s *Scope) live() []*Tensor {
	all := make([]*Tensor, 0, len(s.made))
	for _, t := range s.made {
		if t != nil && !t.storage.freed() {
			all = append(all, t)
		}
	}
	return all
}

// Keep moves the storages of tensors, or of views, to the scope around this one, or, from the outermost one,
// to the caller, who frees their owners. A tensor that this scope does not have stays where it is: a function
// may keep its result though it is its argument. Errors: ErrNoTensor, ErrFreed, ErrNotOpen; then none is
// moved.
func (s *Scope) Keep(all ...*Tensor) error {
	if s == nil {
		return ErrNotOpen
	}
	for _, t := range all {
		if err := t.usable("keep"); err != nil {
			return err
		}
	}
	for _, t := range all {
		if t.storage.scope != s {
			continue
		}
		s.made[t.storage.index] = nil
		t.storage.scope = nil
		around := s.around
		for around != nil && around.ended {
			around = around.around
		}
		if around != nil {
			around.add(t.owner)
		}
	}
	return nil
}

// Live has the tensors of the scope that are not freed, in the order in which they were made.
func (s *Scope) Live() []Made {
	if s == nil {
		return nil
	}
	var all []Made
	for _, t := range s.live() {
		all = append(all, Made{Type: t.of, Shape: t.Shape(), Bytes: t.storage.bytes, Site: t.storage.site})
	}
	return all
}

// Check is a *LeakError with all that Live has, if it has any: for a scope whose tensors are freed by hand.
func (s *Scope) Check() error {
	if live := s.Live(); len(live) > 0 {
		return &LeakError{live}
	}
	return nil
}

// Close ends the scope: it frees its remaining tensors, in reverse order of creation. Idempotent. It joins the errors of the frees,
// none of which leaves a tensor live. Errors: ErrNotOpen, vram.ErrClosed if the device was closed before.
func (s *Scope) Close() error {
	if s == nil {
		return ErrNotOpen
	}
	s.ended = true
	all := s.live()
	s.made = nil
	var failed error
	for _, t := range slices.Backward(all) {
		if err := t.Free(); err != nil && !errors.Is(err, ErrFreed) { // another goroutine may have freed it
			failed = errors.Join(failed, err)
		}
	}
	return failed
}
