package matmul

import (
	"sync"
	"sync/atomic"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/cublaslt"
	"github.com/go-vram/vram/cuda/gemm"
)

// library is the handle of cuBLASLt, which is opened on first use.
type library struct {
	on    *cuda.Context
	asked atomic.Pointer[answer]
	mu    sync.Mutex // of opening
}

// answer is the result of opening.
type answer struct {
	handle *cublaslt.Handle
	err    error // with a handle: it is closed
}

// open opens the library once, and remembers if it is absent.
func (l *library) open() (*cublaslt.Handle, error) {
	if a := l.asked.Load(); a != nil {
		return a.handle, a.err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.asked.Load(); a != nil {
		return a.handle, a.err
	}
	a := &answer{}
	a.handle, a.err = cublaslt.Open(l.on)
	l.asked.Store(a)
	return a.handle, a.err
}

// close ends the handle. Another call tries again after an error.
func (l *library) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	closed := &answer{err: cuda.ErrNotOpen}
	if a := l.asked.Load(); a != nil {
		closed.handle = a.handle
	}
	l.asked.Store(closed)
	if closed.handle == nil {
		return nil
	}
	return closed.handle.Close()
}

// plan is the library's plan for a problem. With the choice Any, products with one row or column are not asked for: they are
// bound by memory, which own kernels use as well.
func (m *Multiplier) plan(p Problem, o Operands, a alignment, choice Choice) (*cublaslt.Plan, error) {
	if choice == Any && (p.M == 1 || p.N == 1) {
		return nil, nil //nolint:nilnil // no plan, and no reason to tell
	}
	h, err := m.library.open()
	if err != nil {
		return nil, err
	}
	at := cublaslt.AlignmentOf(p, o)
	if p.In != gemm.Float32 && a.converted {
		at.A, at.B = workAlign, workAlign
	}
	return h.Plan(p, at, o.Beta != 0)
}
