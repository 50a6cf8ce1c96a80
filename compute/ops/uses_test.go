//go:build !gpu

package ops_test

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/ptx"
	"github.com/go-vram/vram/compute/ptx/interp"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/sim/ptxrun"
	"github.com/go-vram/vram/vramtest"
)

// usesDeclared is an executor whose launches declare the accesses that ptx.Uses finds in the text, instead of those that the
// program declares. An access outside them is a fault.
type usesDeclared struct {
	*ptxrun.Executor

	pointers, unknown int
}

func newUsesDeclared() *usesDeclared {
	return &usesDeclared{Executor: ptxrun.New(ptxrun.Config{Owners: declaredOnly{}})}
}

// Load loads a module and keeps its text.
func (e *usesDeclared) Load(image []byte, variables map[string]sim.Variable) (sim.Program, error) {
	inner, err := e.Executor.Load(image, variables)
	if err != nil {
		return nil, err
	}
	m, err := ptx.Parse(string(image[:len(image)-countZeros(image)]))
	return &usesProgram{inner, e, m, map[string][]usedPointer{}}, err
}

func countZeros(image []byte) (n int) {
	for n < len(image) && image[len(image)-1-n] == 0 {
		n++
	}
	return n
}

// usesProgram is a loaded module.
type usesProgram struct {
	sim.Program

	executor *usesDeclared
	module   *ptx.Module
	kernels  map[string][]usedPointer
}

// usedPointer is a pointer at an offset of the parameters.
type usedPointer struct {
	ptx.Use

	at int
}

// pointers returns the pointers of a kernel, unless it has a tensor map.
func (p *usesProgram) pointers(kernel string) (all []usedPointer, mapped bool) {
	if known, ok := p.kernels[kernel]; ok {
		return known, known == nil
	}
	f := p.module.Function(kernel)
	var offsets []int
	end := 0
	for _, v := range f.Params {
		end = (end + v.Alignment() - 1) / v.Alignment() * v.Alignment()
		offsets = append(offsets, end)
		end += v.Bytes()
	}
	all = []usedPointer{}
	for _, u := range ptx.Uses(p.module, f) {
		if strings.Contains(u.Unknown, "it is a tensor map") {
			p.kernels[kernel] = nil
			return nil, true
		}
		all = append(all, usedPointer{u, offsets[u.Param] + u.Offset})
		if p.executor.pointers++; u.Unknown != "" {
			p.executor.unknown++
		}
	}
	p.kernels[kernel] = all
	return all, false
}

// Launch declares the uses.
func (p *usesProgram) Launch(l sim.KernelLaunch) (sim.Execution, error) {
	bytes := map[cudadrv.Ptr]int64{}
	for _, a := range l.Accesses {
		bytes[a.Ptr] = max(bytes[a.Ptr], a.Bytes)
	}
	uses, mapped := p.pointers(l.Kernel)
	if mapped { // the text does not tell the memory of a tensor map
		return p.Program.Launch(l)
	}
	l.Accesses = []cudadrv.Access{{Ptr: 1}} // nothing
	for _, u := range uses {
		at := cudadrv.Ptr(binary.LittleEndian.Uint64(l.Params[u.at:]))
		if u.Reads {
			l.Accesses = append(l.Accesses, cudadrv.Access{Ptr: at, Bytes: bytes[at]})
		}
		if u.Writes {
			l.Accesses = append(l.Accesses, cudadrv.Access{Ptr: at, Bytes: bytes[at], Write: true})
		}
	}
	return p.Program.Launch(l)
}

// declaredOnly lets a launch touch the memory that it declares.
type declaredOnly struct{}

// Launched returns the declared accesses for all memory.
func (declaredOnly) Launched(l sim.KernelLaunch) ptxrun.Reach {
	var declared declaredReach
	for _, a := range l.Accesses {
		declared = append(declared, interp.Declared{Start: uint64(a.Ptr), Bytes: uint64(a.Bytes), Write: a.Write}) //nolint:gosec // not negative
	}
	return declared
}

// declaredReach is the declared accesses of a launch.
type declaredReach []interp.Declared

// Part is ptxrun.Reach's.
func (r declaredReach) Part(_, start cudadrv.Ptr, bytes int64) (ptxrun.Part, error) {
	return ptxrun.Part{Start: start, Bytes: bytes, Declared: r}, nil
}

// Buffer is ptxrun.Reach's.
func (declaredReach) Buffer(cudadrv.Ptr) (ptxrun.Buffer, bool) { return ptxrun.Buffer{}, false }

// Queued is ptxrun.Owners'.
func (declaredOnly) Queued(sim.Transfer) (performed func()) { return nil }

// Claimed is ptxrun.Owners'.
func (declaredOnly) Claimed(cudadrv.Ptr, int64) {}

// The kernels of every operation read and write no more than ptx.Uses finds in their texts, where it knows every pointer.
func TestUsesOfEveryOperation(t *testing.T) {
	t.Parallel()
	executor := newUsesDeclared()
	config, _ := vramtest.Watch(vram.Config{Driver: sim.New(sim.Config{Bytes: true, Executor: executor})})
	dev, err := vram.Open(config)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, dev.Close()) })
	r := newRigWith(t, dev)
	n := sweepSizes()
	n.columns = 1<<11 + 3
	o := r.operandsOf(n)
	table := o.calls()
	for _, op := range slices.Sorted(maps.Keys(table)) {
		for _, way := range slices.Sorted(maps.Keys(table[op])) {
			*o.step = 0
			require.NoError(t, table[op][way](), "%s, %s", op, way)
			require.NoError(t, r.c.Synchronize(t.Context()), "%s, %s: %v", op, way, executor.Faults())
		}
	}
	require.Empty(t, executor.Faults())
	assert.Greater(t, executor.pointers, 500)
	assert.Zero(t, executor.unknown, "of %d pointers", executor.pointers)
	t.Logf("%d pointers", executor.pointers)
}
