//go:build gpu

package matmul

import (
	"slices"

	"github.com/go-vram/vram/compute/kernel/matmul/internal/variant"
	"github.com/go-vram/vram/cuda"
)

// Variants are the names of the kernels of tiles.
func Variants() (names []string) {
	for _, v := range variant.All() {
		if v.TileM > 0 {
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Function is a kernel of tiles.
func (m *Multiplier) Function(name string) (*cuda.Function, error) {
	return m.kernels.function(name, name)
}

// WithoutBulk has products computed as on a device without bulk copies of tensors.
func WithoutBulk(m *Multiplier) { m.kernels.device.bulk = false }
