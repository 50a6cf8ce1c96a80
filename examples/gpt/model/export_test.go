package model

import "github.com/go-vram/vram/cuda"

// LaunchStep submits the graph of a step of so many sequences, as the last Step has left them, and does not wait.
func (d *Decoder) LaunchStep(sequences int) error {
	for i, n := range d.classes() {
		if n >= sequences {
			return d.graphs[i].Launch(d.steps.c)
		}
	}
	return cuda.ErrNoKernel
}

// SubmitStep submits the launches of a step, without its graph.
func (d *Decoder) SubmitStep(sequences int) error { return d.step(sequences) }

// Steps returns the context of the steps.
func (d *Decoder) Steps() *cuda.Context { return d.steps.c }

// BlocksOf is Config.blocksOf, and Cost Config.cost.
func (c Config) BlocksOf(length, number, of int) (first, end int) {
	return c.blocksOf(length, number, of)
}

func (c Config) Cost(length, blocks int, head bool) float64 { return c.cost(length, blocks, head) }
