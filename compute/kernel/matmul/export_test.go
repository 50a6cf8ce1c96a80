package matmul

// SetMultiprocessors has products computed as on a device of so many.
func SetMultiprocessors(m *Multiplier, count int64) { m.kernels.device.multiprocessors = count }
