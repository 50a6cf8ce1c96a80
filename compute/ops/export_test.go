package ops

import "github.com/go-vram/vram/compute/tensor"

// Widen has kernels that are no expressions compute places in 64 bits, as they do for tensors of more than 2^31 elements.
func Widen(o Ops) { o.Makers.set.wide = true }

// Plan finds how tensors are multiplied, and returns how many such ways are known then.
func Plan(o Ops, out, x, y *tensor.Tensor) (known int, err error) {
	_, err = o.Makers.set.way(out, x, y)
	return len(*o.Makers.set.met.Load()), err
}
