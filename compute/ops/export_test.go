package ops

// Widen has kernels that are no expressions compute places in 64 bits, as they do for tensors of more than 2^31 elements.
func Widen(o Ops) { o.Makers.set.wide = true }
