package matmul

// SetMultiprocessors has products computed as on a device of so many.
func SetMultiprocessors(m *Multiplier, count int64) { m.kernels.device.multiprocessors = count }

// WithoutBulk has products computed as on a device without bulk copies of tensors.
func WithoutBulk(m *Multiplier) { m.kernels.device.bulk = false }
