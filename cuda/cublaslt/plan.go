package cublaslt

import (
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"unsafe"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/cudadrv"
)

// Plan is how the library computes a problem.
type Plan struct {
	// Library is its name with the version.
	Library string
	// WorkspaceBytes is the size of the workspace of Launch.
	WorkspaceBytes int64

	of      *Handle
	key     planKey
	refused error // *UnsupportedError
	dropped bool
	desc    uintptr
	layouts [3]uintptr // of the library's A, B and C: B, A and C
	algo    [8]uint64
}

// usable returns the plan, or the reason for its absence.
func (plan *Plan) usable() (*Plan, error) {
	if plan.refused != nil {
		return nil, plan.refused
	}
	return plan, nil
}

// Numbers of cublasLt.h.
const (
	computeF32, computeTF32, computeF64 = 68, 77, 70

	descTransA, descTransB, descEpilogue, descBiasPointer = 3, 4, 7, 8
	descAuxPointer, descAuxLD, descAuxStride              = 11, 12, 13
	descBiasType                                          = 26
	layoutBatch, layoutStride                             = 5, 6
	preferenceWorkspace, preferenceReductions             = 1, 3
	preferenceAlignment                                   = 5 // and 6, 7, 8 for B, C and D

	epilogueNone, epilogueBias, epilogueGELU, epilogueGELUAux, epilogueGELUGradient = 1, 4, 32, 128 | 32, 192
)

// reductionComputeType is CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE: a product is not split along K, or the sums of its parts are
// kept in the type in which it is computed. The two other schemes keep them in the type of the output.
const reductionComputeType = 2

// halfBytes is the size of float16 and bfloat16.
const halfBytes = 2

// MaxWorkspaceBytes is the largest workspace of an algorithm: NVIDIA's advice for Hopper.
const MaxWorkspaceBytes = 32 << 20

// dataType returns the cudaDataType_t.
func dataType(t gemm.Type) uint64 {
	return [...]uint64{gemm.Float32: 0, gemm.Float16: 2, gemm.BFloat16: 14, gemm.Float64: 1}[t]
}

// computes reports whether the library knows the precision, and how it calls it.
func computes(p gemm.Problem) (compute uint64, ok bool) {
	switch {
	case p.In == gemm.Float64:
		return computeF64, true
	case p.Precision == gemm.IEEE:
		return computeF32, true
	case p.Precision == gemm.TF32:
		return computeTF32, true
	}
	return 0, false
}

// epilogueOf returns the library's number.
func epilogueOf(p gemm.Problem) uint64 {
	number := uint64(epilogueNone)
	switch p.Epilogue {
	case gemm.None:
		if p.Bias {
			return epilogueBias
		}
		return number
	case gemm.GELU:
		number = epilogueGELU
	case gemm.GELUAux:
		number = epilogueGELUAux
	case gemm.GELUGradient:
		number = epilogueGELUGradient
	}
	if p.Bias {
		number |= epilogueBias
	}
	return number
}

// make asks for an algorithm. On failure it destroys its descriptors. Problems that the library cannot compute make a plan with
// that error.
func (h *Handle) make(plan *Plan) (err error) {
	p := plan.key.problem
	compute, ok := computes(p)
	// Products of 0 elements, and a bias in the gradient, are no problems of the library's.
	if !ok || p.K == 0 || p.Empty() || p.Epilogue == gemm.GELUGradient && p.Bias {
		plan.refused = &UnsupportedError{p, NotSupported}
		return nil
	}
	defer func() {
		if err != nil || plan.refused != nil {
			err = errors.Join(err, h.discard(plan))
		}
	}()
	scale := uint64(0)
	if p.In == gemm.Float64 {
		scale = dataType(gemm.Float64)
	}
	if plan.desc, err = h.object(descCreate, compute, scale); err != nil {
		return err
	}
	if err := h.describe(plan, p); err != nil {
		return err
	}
	if plan.layouts[0], err = h.layout(p.In, columnsOf(p.TransposeB, p.K, p.N), rowsOf(p.TransposeB, p.K, p.N), p.LDB, p.Batch, p.StrideB); err != nil {
		return err
	}
	if plan.layouts[1], err = h.layout(p.In, columnsOf(p.TransposeA, p.M, p.K), rowsOf(p.TransposeA, p.M, p.K), p.LDA, p.Batch, p.StrideA); err != nil {
		return err
	}
	if plan.layouts[2], err = h.layout(p.Out, p.N, p.M, p.LDC, p.Batch, p.StrideC); err != nil {
		return err
	}
	return h.ask(plan)
}

// rowsOf and columnsOf return the rows and columns in memory of a rows x columns operand.
func rowsOf(transposed bool, rows, columns int64) int64 {
	if transposed {
		return columns
	}
	return rows
}

func columnsOf(transposed bool, rows, columns int64) int64 {
	return rowsOf(!transposed, rows, columns)
}

// describe fills the descriptor. Addresses of bias and Aux are set at each launch; here they have the alignment of those to
// come.
func (h *Handle) describe(plan *Plan, p gemm.Problem) error {
	set := func(attribute, value uint64, bytes uintptr) error {
		return h.set(descSet, plan.desc, attribute, value, bytes)
	}
	err := errors.Join(
		set(descTransA, uint64(boolean(p.TransposeB)), 4), //nolint:gosec // 0 or 1
		set(descTransB, uint64(boolean(p.TransposeA)), 4), //nolint:gosec // 0 or 1
		set(descEpilogue, epilogueOf(p), 4))
	if p.Bias {
		err = errors.Join(err, set(descBiasPointer, uint64(plan.key.alignment.Bias), 8), set(descBiasType, dataType(p.Out), 4)) //nolint:gosec // above 0
	}
	if p.UsesAux() {
		err = errors.Join(err, set(descAuxPointer, uint64(plan.key.alignment.Aux), 8), set(descAuxLD, uint64(p.LDAux), 8)) //nolint:gosec // above 0
		if p.Batch > 1 {
			err = errors.Join(err, set(descAuxStride, uint64(p.StrideAux), 8)) //nolint:gosec // 0 or more
		}
	}
	return err
}

// layout makes the layout of a matrix whose columns, as the library sees them, are our rows.
func (h *Handle) layout(t gemm.Type, columns, rows, ld, batch, stride int64) (uintptr, error) {
	l, err := h.object(layoutCreate, dataType(t), uint64(columns), uint64(rows), uint64(ld)) //nolint:gosec // 0 or more
	if err != nil || batch == 1 {
		return l, err
	}
	err = errors.Join(
		h.set(layoutSet, l, layoutBatch, uint64(batch), 4),   //nolint:gosec // 0 or more
		h.set(layoutSet, l, layoutStride, uint64(stride), 8)) //nolint:gosec // 0 or more
	if err != nil {
		err = errors.Join(err, h.end(layoutDestroy, &l))
		l = 0
	}
	return l, err
}

// object makes an object of the library's.
func (h *Handle) object(f function, args ...uint64) (uintptr, error) {
	fr := h.frame
	fr.args[0] = uintptr(unsafe.Pointer(&fr.out))
	for i, a := range args {
		fr.args[i+1] = uintptr(a)
	}
	if err := h.call(f, len(args)+1); err != nil {
		return 0, err
	}
	return fr.out, nil
}

// set sets an attribute of the given size.
func (h *Handle) set(f function, object uintptr, attribute, value uint64, bytes uintptr) error {
	fr := h.frame
	fr.value = value
	fr.args[0], fr.args[1], fr.args[2], fr.args[3] = object, uintptr(attribute), uintptr(unsafe.Pointer(&fr.value)), bytes
	return h.call(f, 4)
}

// end destroys an object, if there is one, and forgets it unless the library fails.
func (h *Handle) end(f function, object *uintptr) error {
	if *object == 0 {
		return nil
	}
	h.frame.args[0] = *object
	err := h.call(f, 1)
	if err == nil {
		*object = 0
	}
	return err
}

// drop destroys the descriptors of a plan. A launch of the plan makes new ones.
func (h *Handle) drop(plan *Plan) error {
	plan.dropped = true
	err := h.end(descDestroy, &plan.desc)
	for i := range plan.layouts {
		err = errors.Join(err, h.end(layoutDestroy, &plan.layouts[i]))
	}
	return err
}

// discard drops a plan that is in no cache. What the library does not destroy Close tries again.
func (h *Handle) discard(plan *Plan) error {
	err := h.drop(plan)
	if err != nil {
		h.kept = append(h.kept, plan)
	}
	return err
}

// ask asks for the algorithm. That there is none is noted in the plan.
func (h *Handle) ask(plan *Plan) (err error) {
	preference, err := h.object(preferenceCreate)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.end(preferenceDestroy, &preference)) }()
	err = h.set(preferenceSet, preference, preferenceWorkspace, MaxWorkspaceBytes, 8)
	if plan.key.problem.Out.Bytes() == halfBytes {
		err = errors.Join(err, h.set(preferenceSet, preference, preferenceReductions, reductionComputeType, 4))
	}
	for i, bytes := range []int64{plan.key.alignment.B, plan.key.alignment.A, plan.key.alignment.C, plan.key.alignment.C} {
		err = errors.Join(err, h.set(preferenceSet, preference, preferenceAlignment+uint64(i), uint64(bytes), 4)) //nolint:gosec // above 0
	}
	if err != nil {
		return err
	}
	f := h.frame
	f.count, f.result = 0, algorithm{} // a library that answers nothing is believed nothing
	f.args = [16]uintptr{
		h.handle, plan.desc, plan.layouts[0], plan.layouts[1], plan.layouts[2], plan.layouts[2], preference, 1,
		uintptr(unsafe.Pointer(&f.result)), uintptr(unsafe.Pointer(&f.count)),
	}
	err = h.call(heuristic, 10)
	var failed *StatusError
	switch {
	case errors.As(err, &failed) && (failed.Status == NotSupported || failed.Status == InvalidValue): // the problem was checked: the call is valid
		plan.refused = &UnsupportedError{plan.key.problem, failed.Status}
		return nil
	case err != nil:
		return err
	case f.count < 1:
		plan.refused = &UnsupportedError{plan.key.problem, NotSupported}
		return nil
	case Status(f.result.status) != Success:
		plan.refused = &UnsupportedError{plan.key.problem, Status(f.result.status)}
		return nil
	}
	plan.algo, plan.WorkspaceBytes = f.result.algo, int64(f.result.workspaceBytes) //nolint:gosec // MaxWorkspaceBytes at most
	return nil
}

// Launch submits the product, on operands of the plan's alignment. work has WorkspaceBytes or more: a shorter range is refused with
// a *cuda.RangeError, although its buffer may be long enough. Other errors: *cuda.ArgumentError, *StatusError, *UnsupportedError
// where the plan has left the cache and cannot be made again.
func (plan *Plan) Launch(c *cuda.Context, o gemm.Operands, e gemm.Extent, work cuda.Range) error {
	if plan == nil || plan.of == nil {
		return cuda.ErrNotOpen
	}
	if work.Bytes < plan.WorkspaceBytes {
		return &cuda.RangeError{Offset: work.Offset, Bytes: plan.WorkspaceBytes, BufferBytes: work.Bytes}
	}
	p := plan.key.problem
	// As the problem names them: in errors, A is argument 0.
	args := append(make([]cuda.Arg, 0, 6), reading(o.A, e.A), reading(o.B, e.B))
	if o.Beta == 0 {
		args = append(args, cuda.Out(o.C.Buffer).Of(o.C.Offset, e.C))
	} else {
		args = append(args, cuda.InOut(o.C.Buffer).Of(o.C.Offset, e.C))
	}
	if p.Bias {
		args = append(args, reading(o.Bias, e.Bias))
	}
	switch {
	case p.Epilogue.ReadsAux():
		args = append(args, reading(o.Aux, e.Aux))
	case p.Epilogue.WritesAux():
		args = append(args, cuda.Out(o.Aux.Buffer).Of(o.Aux.Offset, e.Aux))
	}
	if plan.WorkspaceBytes > 0 {
		args = append(args, cuda.Out(work.Buffer).Of(work.Offset, plan.WorkspaceBytes))
	}
	s := submissions.Get().(*submission) //nolint:forcetypeassert // of this pool
	defer s.release()
	s.plan, s.operands, s.work = plan, o, work
	return c.LaunchWith(plan.Library, s.submit, args...)
}

// submission is one launch. Its functions are made once, as they are on Go's heap.
type submission struct {
	plan     *Plan
	operands gemm.Operands
	work     cuda.Range
	on       cudadrv.Stream

	submit   func(device cudadrv.Device, on cudadrv.Stream) error
	multiply func() error
}

var submissions = sync.Pool{New: func() any { //nolint:gochecknoglobals // made on first use: memory that one launch uses at a time
	s := &submission{}
	s.multiply = func() error { return s.plan.of.multiply(s.plan, &s.operands, s.work, s.on) }
	s.submit = func(device cudadrv.Device, on cudadrv.Stream) error {
		foreign, ok := device.(cudadrv.ForeignCalls)
		if !ok {
			return &cudadrv.CallError{Func: "cuCtxPushCurrent", Result: cudadrv.NotSupported}
		}
		s.on = on
		return foreign.WithContext(s.multiply)
	}
	return s
}}

// release clears references to memory, and gives the submission to the next launch.
func (s *submission) release() {
	s.plan, s.operands, s.work = nil, gemm.Operands{}, cuda.Range{}
	submissions.Put(s)
}

func reading(r cuda.Range, bytes int64) cuda.Arg { return cuda.In(r.Buffer).Of(r.Offset, bytes) }

// address returns the address of a range's begin.
func address(r cuda.Range) uint64 { return uint64(r.Buffer.Ptr()) + uint64(r.Offset) } //nolint:gosec // within the buffer

// multiply calls cublasLtMatmul.
func (h *Handle) multiply(plan *Plan, o *gemm.Operands, work cuda.Range, on cudadrv.Stream) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return cuda.ErrNotOpen
	}
	wanted := plan.WorkspaceBytes
	if plan.dropped { // another goroutine has asked for MaxPlans others since
		again := &Plan{of: h, key: plan.key, Library: h.name}
		if err := h.make(again); err != nil {
			return err
		}
		if again.refused != nil {
			return again.refused
		}
		again.algo = plan.algo // which the workspace is for
		defer func() { _ = h.discard(again) }()
		plan = again
	}
	p, f := plan.key.problem, h.frame
	if p.Bias {
		if err := h.set(descSet, plan.desc, descBiasPointer, address(o.Bias), 8); err != nil {
			return err
		}
	}
	if p.UsesAux() {
		if err := h.set(descSet, plan.desc, descAuxPointer, address(o.Aux), 8); err != nil {
			return err
		}
	}
	if p.In == gemm.Float64 {
		binary.NativeEndian.PutUint64(f.alpha[:], math.Float64bits(o.Alpha))
		binary.NativeEndian.PutUint64(f.beta[:], math.Float64bits(o.Beta))
	} else {
		binary.NativeEndian.PutUint32(f.alpha[:], math.Float32bits(float32(o.Alpha)))
		binary.NativeEndian.PutUint32(f.beta[:], math.Float32bits(float32(o.Beta)))
	}
	f.result.algo = plan.algo
	var workspace, bytes uintptr
	if wanted > 0 {
		workspace, bytes = uintptr(address(work)), uintptr(wanted)
	}
	c := uintptr(address(o.C))
	f.args = [16]uintptr{
		h.handle, plan.desc, uintptr(unsafe.Pointer(&f.alpha)), uintptr(address(o.B)), plan.layouts[0], uintptr(address(o.A)), plan.layouts[1],
		uintptr(unsafe.Pointer(&f.beta)), c, plan.layouts[2], c, plan.layouts[2], uintptr(unsafe.Pointer(&f.result.algo)), workspace, bytes, uintptr(on),
	}
	return h.call(matmul, 16)
}
