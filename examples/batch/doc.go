// Command batch trains a model's parameters with Adam, and allocates each step's buffers together: the gradients of all
// parameters in one all-or-nothing batch before the backward pass, as it does the parameters and both moments at the start. For
// comparison the same training allocates each gradient when the backward pass reaches it, and frees activations in between.
//
// It shows two advantages of a batch:
//
//   - Locality: buffers of a batch are neighbours if possible. One memset zeroes neighbouring gradients, and one kernel updates
//     tensors that are neighbours in parameters, gradients and moments.
//   - All or nothing: if the limit leaves no room for all gradients, the failed step holds none of them, and continues with
//     half of the bytes at a time. There is nothing to free first.
//
// The scenario batch of `vram bench` measures the time that a batch saves. Kernels are durations on the simulated device, and
// memsets on a GPU.
package main
