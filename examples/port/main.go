// Command port computes heat in a plate with five kernels: the last form of a program that began as one on a cgo wrapper. The
// first is old, the second wrapper. It runs on a GPU, or on the processor if there is none.
package main

import (
	"context"
	"errors"
	"io"
	"log"
	"os"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	_ "github.com/go-vram/vram/cudadrv/cpu" // the device without a GPU
	"github.com/go-vram/vram/examples/port/heat"
	"github.com/go-vram/vram/examples/port/kern"
)

//go:generate go run github.com/go-vram/vram/cmd/vram kernels --package kern --source heat/heat.cu --out kern/kernels.go heat/heat.ptx

func main() {
	if err := run(context.Background(), vram.Config{DriverName: "gpu-or-cpu"}, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, config vram.Config, out io.Writer) (err error) {
	c, err := cuda.Open(config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	kernels, err := kern.Load(c)
	if err != nil {
		return err
	}
	q := c.NewQueue()
	defer func() { err = errors.Join(err, q.Close(), c.Synchronize(ctx), kernels.Close()) }()
	p := &plate{
		kernels:      kernels,
		u:            table(ctx, q, "temperature", make([]float32, heat.Cells)),
		conductivity: table(ctx, q, "conductivity", heat.Conductivity()),
		material:     table(ctx, q, "material", heat.Material()),
		source:       table(ctx, q, "source", heat.Source()),
	}
	for _, constant := range []cuda.Buffer{p.conductivity, p.material, p.source} {
		q.Do("Freeze", func(c *cuda.Context) error { return c.Freeze(constant) })
	}
	if err := q.Err(); err != nil {
		return err
	}
	steps, err := c.Capture(func() (err error) {
		for range heat.Steps {
			err = errors.Join(err, p.step(c))
		}
		return err
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, steps.Close()) }()
	second, err := c.NewStream()
	if err != nil {
		return err
	}
	watch := second.NewQueue()
	defer func() { err = errors.Join(err, watch.Close(), second.Close()) }()
	results, err := p.compute(ctx, q, watch, steps)
	if err == nil {
		err = results.Print(out)
	}
	return err
}

// plate has the buffers of a computation.
type plate struct {
	kernels                           *kern.Kernels
	u, conductivity, material, source cuda.Buffer
}

// table is a buffer with a tag, for reports.
func table[T cuda.Element](ctx context.Context, q *cuda.Queue, tag string, values []T) cuda.Buffer {
	b := q.AllocFor(ctx, vram.Request{Bytes: cuda.Elements[T](cuda.Buffer{}, 0, len(values)).Bytes, Tag: tag})
	cuda.Write(q, cuda.Whole(b), values)
	return b
}

// step submits one step. Without a source, each cell is heated.
func (p *plate) step(c *cuda.Context) error {
	rate, err := c.Alloc(p.u.Bytes())
	if err != nil {
		return err
	}
	return errors.Join(
		p.kernels.Rate(c, cuda.Cover2D(heat.NX, heat.NY), rate, p.u, p.conductivity, p.material, p.source, heat.Heat, heat.NX, heat.NY),
		p.kernels.Madd2(c, cuda.Cover(heat.Cells), p.u, p.u, 1, rate, heat.Step, heat.Cells),
		p.kernels.Hold(c, cuda.Cover(heat.Cells), p.u, p.material, heat.Held, heat.Temperature, heat.Cells),
		rate.Free(), // after the kernels, in the stream's order
	)
}

// compute submits all rounds, and then waits for their results. A second stream reduces a round during the next one.
func (p *plate) compute(ctx context.Context, q, watch *cuda.Queue, steps *cuda.Graph) (results heat.Results, err error) {
	cells, reduce := cuda.Cover(heat.Cells), p.kernels.On(watch)
	var most, sum [heat.Rounds]cuda.Buffer
	last := table(ctx, q, "shot", make([]float32, heat.Cells))
	for round := range heat.Rounds {
		q.LaunchGraph(steps)
		now := q.AllocFor(ctx, vram.Request{Bytes: p.u.Bytes(), Tag: "shot"})
		q.Copy(cuda.Whole(now), cuda.Whole(p.u))
		most[round], sum[round] = watch.AllocZeroed(4), watch.AllocZeroed(4)
		reduce.Maxdiff(cells, most[round], last, now, heat.Cells)
		reduce.Sum(cells, sum[round], now, heat.Cells)
		q.Free(last) // its memory is reused after Maxdiff
		last = now
	}
	for round := range heat.Rounds {
		cuda.Read(watch, results[round][:1], cuda.Whole(most[round]))
		cuda.Read(watch, results[round][1:], cuda.Whole(sum[round]))
	}
	return results, errors.Join(q.Err(), watch.Err())
}
