// Command batch trains a model's parameters with Adam, and allocates what each step needs together: the gradients of all
// parameters in one all-or-nothing batch before the backward pass, as the parameters and both moments before them. Beside it the
// same training allocates each gradient when the backward pass comes to it, while activations go.
//
// It shows two things that a batch is good for:
//
//   - Locality: what is allocated together lies side by side where that can be had. Gradients that do are zeroed by one
//     memset, and tensors that do in parameters, gradients and moments alike are updated by one kernel.
//   - All or nothing: where the limit leaves no room for all gradients at once, the step holds none of them when it is
//     told so, and goes on with half of the bytes at a time. There is nothing to give back first.
//
// What a batch saves for each buffer is measured by the scenario batch of `vram bench`. Kernels are durations on the
// simulated device, and memsets on a GPU.
package main
