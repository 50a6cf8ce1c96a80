//go:build !gpu

package matmul_test

import (
	"testing"

	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/vramtest/ptxrun"
)

// Products of 16 bits by bulk copies are right on the interpreter, which finds no missing wait, wrong phase or early reuse of a
// stage: each tile and transposition, with edges, several tiles for a block, batches, epilogues and parts.
func TestBulkCopiesOnTheInterpreter(t *testing.T) {
	r := newRigOn(t, sim.New(sim.Config{Bytes: true, Executor: ptxrun.New(ptxrun.Config{})}))
	matmul.SetMultiprocessors(r.m, 1)
	testBulk(t, r)
}
