// Package launchlog records the launches of kernels on simulated devices, and executes none: for tests of which kernels an
// operation launches, and how, in a fraction of the time that they take.
//
// # Concurrency properties
//
// A Log is used by one driver, and read between operations.
package launchlog

import (
	"fmt"
	"strings"
	"sync"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// Log is the executor of a driver that records launches.
type Log struct {
	mu  sync.Mutex
	all []string
}

// New returns a driver whose launches change nothing, and their log.
func New() (cudadrv.Driver, *Log) {
	l := &Log{}
	return sim.New(sim.Config{Bytes: true, Executor: l}), l
}

// Load is sim.Executor's.
func (l *Log) Load([]byte, map[string]sim.Variable) (sim.Program, error) { return program{l}, nil }

// Take returns the launches since the last call, separated by a semicolon: the kernel, the grid, the threads of a block, and its
// dynamic shared memory.
func (l *Log) Take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	return strings.Join(all, "; ")
}

type program struct{ *Log }

// Launch is sim.Program's.
func (p program) Launch(k sim.KernelLaunch) (sim.Execution, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	grid, block := k.Geometry.Grid, k.Geometry.Block
	text := fmt.Sprintf("%s %dx%dx%d of %d", k.Kernel, grid.X, grid.Y, grid.Z, block.X)
	if block.Y != 1 || block.Z != 1 {
		text += fmt.Sprintf("x%dx%d", block.Y, block.Z)
	}
	if bytes := k.Geometry.SharedBytes; bytes > 0 {
		text += fmt.Sprintf(" with %d bytes", bytes)
	}
	p.all = append(p.all, text)
	return func(func(cudadrv.Ptr) (cudadrv.Ptr, []byte, bool)) error { return nil }, nil
}
