package cublaslt

import (
	"container/list"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
)

// MaxPlans is how many plans a handle keeps: a network has some hundred shapes. Each takes a few kilobytes of the library's.
const MaxPlans = 512

// Handle is the library's on a device. Make one with Open, and close it.
type Handle struct {
	lib  *lib
	on   *cuda.Context
	name string

	mu     sync.Mutex // of calls: they share the frame
	frame  *frame
	handle uintptr
	plans  map[planKey]*list.Element // of *Plan
	recent *list.List                // the plan that was used last is first
	kept   []*Plan                   // of no further use, with descriptors that the library did not destroy: Close tries again
	closed bool                      // no plan is made or launched
	ended  bool                      // all is destroyed
}

// frame is the memory of calls, in the heap.
type frame struct {
	args   [16]uintptr
	out    uintptr
	value  uint64
	count  int32
	alpha  [8]byte
	beta   [8]byte
	result algorithm
}

// algorithm is cublasLtMatmulHeuristicResult_t.
type algorithm struct {
	algo           [8]uint64
	workspaceBytes uint64
	status         int32
	waves          float32
	reserved       [4]int32
}

// Open makes a handle on the context's device. It loads the library, if necessary. The context must stay open as long as the
// handle. Errors: *AbsentError, *StatusError, and the errors of cuda.Context.WithContext.
func Open(c *cuda.Context) (*Handle, error) {
	l, err := find(c.Info().DriverVersion)
	if err != nil {
		return nil, err
	}
	h := &Handle{lib: l, on: c, frame: &frame{}, plans: map[planKey]*list.Element{}, recent: list.New()}
	err = c.WithContext(func() error {
		h.frame.args[0] = uintptr(unsafe.Pointer(&h.frame.out))
		return h.call(create, 1)
	})
	if err != nil {
		return nil, err
	}
	h.handle = h.frame.out
	number := l.functions[version].Call(nil)
	h.name = fmt.Sprintf("cuBLASLt %d.%d.%d", number/10000, number/100%100, number%100)
	return h, nil
}

// Library returns the library's name with its version.
func (h *Handle) Library() string {
	if h == nil {
		return ""
	}
	return h.name
}

// call calls a function with the first n arguments of the frame.
func (h *Handle) call(f function, n int) error {
	if s := Status(int32(h.lib.functions[f].Call(h.frame.args[:n]))); s != Success { //nolint:gosec // an int
		return &StatusError{names[f], s}
	}
	return nil
}

// Close destroys the handle and its plans. Submitted products still run. Idempotent. After an error, the library's or one of
// cuda.Context.WithContext, another call destroys the rest.
func (h *Handle) Close() error {
	if h == nil || h.on == nil {
		return cuda.ErrNotOpen
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return nil
	}
	h.closed = true
	return h.on.WithContext(func() error {
		var failed error
		for at := h.recent.Front(); at != nil; at = at.Next() {
			failed = errors.Join(failed, h.drop(at.Value.(*Plan))) //nolint:forcetypeassert // the list's
		}
		for _, old := range h.kept {
			failed = errors.Join(failed, h.drop(old))
		}
		failed = errors.Join(failed, h.end(destroy, &h.handle))
		h.ended = failed == nil
		return failed
	})
}

// Alignment is at how many bytes, a power of two, each address begins.
type Alignment struct{ A, B, C, Bias, Aux int64 }

// maxAlignment is more than any algorithm asks for.
const maxAlignment = 256

// AlignmentOf returns the alignment of operands.
func AlignmentOf(p gemm.Problem, o gemm.Operands) Alignment {
	at := func(used bool, r cuda.Range) int64 {
		if !used {
			return maxAlignment
		}
		address := int64(r.Buffer.Ptr()) + r.Offset //nolint:gosec // its low bits
		return min(address&-address|maxAlignment*boolean(address == 0), maxAlignment)
	}
	return Alignment{at(true, o.A), at(true, o.B), at(true, o.C), at(p.Bias, o.Bias), at(p.UsesAux(), o.Aux)}
}

func boolean(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// planKey is all that an algorithm depends on.
type planKey struct {
	problem   gemm.Problem
	alignment Alignment
	beta      bool
}

// Plans returns the number of cached plans.
func (h *Handle) Plans() int {
	if h == nil || h.recent == nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.recent.Len()
}

// Plan returns the library's plan for a checked problem on operands of that alignment; accumulates says that beta is not 0.
// Errors: *UnsupportedError, which is remembered; *StatusError; cuda.ErrNotOpen.
func (h *Handle) Plan(p gemm.Problem, a Alignment, accumulates bool) (*Plan, error) {
	if h == nil || h.on == nil {
		return nil, cuda.ErrNotOpen
	}
	key := planKey{p, a, accumulates}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, cuda.ErrNotOpen
	}
	if at := h.plans[key]; at != nil {
		h.recent.MoveToFront(at)
		plan := at.Value.(*Plan) //nolint:forcetypeassert // the list's
		return plan.usable()
	}
	plan := &Plan{of: h, key: key, Library: h.name}
	if err := h.on.WithContext(func() error { return h.make(plan) }); err != nil {
		return nil, err
	}
	h.plans[key] = h.recent.PushFront(plan)
	h.evict()
	return plan.usable()
}

// evict drops the plan that was used longest ago, if there are too many.
func (h *Handle) evict() {
	if h.recent.Len() <= MaxPlans {
		return
	}
	old := h.recent.Remove(h.recent.Back()).(*Plan) //nolint:forcetypeassert // the list's
	delete(h.plans, old.key)
	if err := h.on.WithContext(func() error { return h.drop(old) }); err != nil { // the caller's plan is there all the same
		h.kept = append(h.kept, old)
	}
}
