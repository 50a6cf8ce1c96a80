// Package heat is the plate that the three forms of the program compute: its kernels, its cells, and its output.
package heat

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"slices"
)

// PTX has the kernels of heat.cu.
//
//go:embed heat.ptx
var PTX string

// The plate has NX by NY cells; those of the material Held keep Temperature. The program computes Rounds of Steps steps.
const (
	NX          = 32
	NY          = 24
	Cells       = NX * NY
	Steps       = 10
	Rounds      = 4
	Step        = float32(0.2)  // the duration
	Heat        = float32(0.01) // of a source, in a step of duration 1
	Held        = uint8(1)
	Temperature = float32(1)
)

// Conductivity returns a number for each material.
func Conductivity() []float32 { return []float32{0.25, 1, 1} }

// Material returns the material of each cell: the left column is held, and the right half conducts better.
func Material() []uint8 {
	return bytes.Repeat(slices.Concat([]uint8{Held}, make([]uint8, NX/2-1), bytes.Repeat([]uint8{2}, NX/2)), NY)
}

// Source returns 1 for the cells of the upper row, which are heated, and 0 for the others.
func Source() []float32 {
	return slices.Concat(slices.Repeat([]float32{1}, NX), make([]float32, Cells-NX))
}

// Results are the largest change of a cell in each round, and the sum of the cells after it.
type Results [Rounds][2]float32

// Print prints a line for each round.
func (r *Results) Print(out io.Writer) error {
	var lines []byte
	for round, of := range r {
		lines = fmt.Appendf(lines, "step %d: largest change %.4f, mean %.4f\n", (round+1)*Steps, of[0], of[1]/Cells)
	}
	_, err := out.Write(lines)
	return err
}
