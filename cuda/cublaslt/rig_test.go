//go:build !gpu

package cublaslt_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/cublaslt"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/cudadrv/dynamic"
	"github.com/go-vram/vram/cudadrv/dynamic/library"
	"github.com/go-vram/vram/internal/fakecublaslt"
	"github.com/go-vram/vram/internal/fakecuda"
)

// rig is a device with a fake library.
type rig struct {
	*testing.T
	dev    *vram.Device
	c      *cuda.Context
	handle *library.Library // the fake
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigOn(t, func(c vram.Config) vram.Config { return c })
}

// newRigOn is newRig of a device with another configuration.
func newRigOn(t *testing.T, change func(vram.Config) vram.Config) *rig {
	t.Helper()
	path, err := fakecuda.Build(t.TempDir())
	if errors.Is(err, fakecuda.ErrNoCompiler) {
		t.Skip(err) //nolint:forbidigo // the fakes are C
	}
	require.NoError(t, err)
	blas, err := fakecublaslt.Build(t.TempDir(), path)
	require.NoError(t, err)
	t.Setenv(cublaslt.Variable, blas)
	r := &rig{T: t}
	r.handle, err = library.Open(blas)
	require.NoError(t, err)
	r.dev, err = vram.Open(change(vram.Config{Driver: dynamic.New(dynamic.Config{Library: path})}))
	require.NoError(t, err)
	s, err := r.dev.NewStream()
	require.NoError(t, err)
	r.c, err = cuda.NewContext(s)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, r.c.Close())
		assert.NoError(t, r.dev.Close())
		assert.Zero(t, r.live(), "objects of the library are left")
	})
	return r
}

// call calls a function of the fake's control.
func (r *rig) call(name string, args ...uintptr) uintptr {
	r.Helper()
	f, err := r.handle.Function(name)
	require.NoError(r, err)
	return f.Call(args)
}

func (r *rig) live() int { return int(r.call("fakecublaslt_live")) }

// text returns a C string, which lives as long as the test.
func (r *rig) text(s string) uintptr {
	b := append([]byte(s), 0)
	r.Cleanup(func() { _ = b[0] })
	return addressOf(b)
}

func (r *rig) calls(name string) int { return int(r.call("fakecublaslt_calls", r.text(name))) }

func (r *rig) fail(name string, occurrence int, status cublaslt.Status) {
	r.Helper()
	r.call("fakecublaslt_fail", r.text(name), uintptr(occurrence), uintptr(status))
}

// ones are operands of a problem whose elements are all 1.
func (r *rig) ones(p gemm.Problem) (gemm.Problem, gemm.Extent, gemm.Operands) {
	r.Helper()
	p, e, err := p.Check()
	require.NoError(r, err)
	alloc := func(bytes int64) cuda.Range {
		b, err := r.c.Alloc(max(bytes, 1))
		require.NoError(r, err)
		require.NoError(r, r.c.Fill32(cuda.Part(b, 0, bytes&^3), 0x3f800000))
		r.Cleanup(func() {
			if b.Live() {
				assert.NoError(r, b.Free())
			}
		})
		return cuda.Part(b, 0, bytes)
	}
	return p, e, gemm.Operands{A: alloc(e.A), B: alloc(e.B), C: alloc(e.C), Bias: alloc(e.Bias), Aux: alloc(e.Aux), Alpha: 1}
}

// multiply plans and launches.
func (r *rig) multiply(h *cublaslt.Handle, p gemm.Problem, e gemm.Extent, o gemm.Operands) error {
	plan, err := h.Plan(p, cublaslt.AlignmentOf(p, o), o.Beta != 0)
	if err != nil {
		return err
	}
	w, err := r.c.Workspace(max(plan.WorkspaceBytes, 1))
	require.NoError(r, err)
	return plan.Launch(r.c, o, e, cuda.Part(w, 0, plan.WorkspaceBytes))
}

// first returns the first element of C.
func (r *rig) first(o gemm.Operands) float32 {
	r.Helper()
	got := make([]float32, 1)
	require.NoError(r, cuda.CopyOut(r.c, got, o.C.Buffer))
	return got[0]
}
