//go:build gpu

package matmul

// WithoutBulk has products computed as on a device without bulk copies of tensors.
func WithoutBulk(m *Multiplier) { m.kernels.device.bulk = false }
