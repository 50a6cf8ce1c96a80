// Package model is GPT-2's decoder on the tensors and operations of vram: its forward and backward computation, one
// training step, checkpoints and samples, in plain Go.
//
// # Reading order
//
// config.go has the sizes. parts.go has each part of the network with its gradient next to it: a function that computes
// forward, and the one that takes the gradient of the result back to the gradients of the operands. model.go composes
// the parts to blocks and the blocks to the model. trainer.go makes a training step of it.
// Of a Decoder, weights.go has the parameters, cache.go the pages of keys and values, prefill.go the computation, and decode.go
// the steps.
//
// pipeline.go trains in stages: stage.go has one, slot.go the forward and the backward of a micro-batch, turn.go the turns of a step,
// and link.go the parcels that stages hand over to each other. copies.go has what copies of a pipeline do together.
//
// # Words
//
// A position is one token in a sequence of a batch. Rows are the positions of a batch, one below the other: a tensor of
// activations has the shape (rows, width). A Parameter has a float32 master, its gradient and AdamW's two moments, and
// its value, which the network computes with: the master itself, or a copy of 16 bits.
//
// Parameters have the names and layouts of the published GPT-2 checkpoints: "h.0.attn.c_attn.weight" has the shape
// (inputs, outputs). The head multiplies by the transposed token table, wte.weight.
//
// # Memory
//
// A forward computation keeps the activations that its gradient needs, and backward frees each after its last use. All
// else lives in the scope of the step. Captured as a graph, a step has its memory from the graph's hold, and allocates
// nothing. A stage of a pipeline has a graph for each forward and backward; both share a hold, which keeps the activations.
//
// A Decoder has the parameters alone, in one buffer of an arena that can sleep, and its activations from the beginning. A sequence's
// keys and values are pages: buffers of the stream of the steps, each with some positions of all layers. A table in device
// memory has their addresses, and the kernels of kernels/decode.cu follow it: so a captured step stays as it is while sequences
// come and go. The launches of a prefill list the pages, so that they are ordered and a free waits for them. The graph of a step
// does not know them: they are its own stream's memory, and are freed after the step.
package model
