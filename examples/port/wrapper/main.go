// Command wrapper is the program old on vram: its functions are the same, and pack their parameters still.
package main

import (
	"encoding/binary"
	"errors"
	"io"
	"log"
	"os"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	_ "github.com/go-vram/vram/cudadrv/cpu" // the device without a GPU
	"github.com/go-vram/vram/examples/port/heat"
)

func main() {
	if err := run(vram.Config{DriverName: "gpu-or-cpu"}, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// gpu was the global state of the wrapper.
type gpu struct{ *cuda.Context }

func (g gpu) launch(name string, geometry cuda.Geometry, parameters []byte, buffers ...cuda.Arg) error {
	f, err := g.Kernel(heat.PTX, name)
	if err != nil {
		return err
	}
	return g.LaunchPacked(f, geometry, parameters, buffers...)
}

// pack puts each parameter at the next multiple of its size, as C does.
func pack(parameters ...any) (packed []byte) {
	for _, p := range parameters {
		for len(packed)%binary.Size(p) != 0 {
			packed = append(packed, 0)
		}
		packed, _ = binary.Append(packed, binary.NativeEndian, p) // each is a number of a fixed size
	}
	return packed
}

func (g gpu) rate(dst, u, conductivity, material, source cuda.Buffer, scale float32, nx, ny int32) error {
	return g.launch("rate", cuda.Cover2D(int(nx), int(ny)),
		pack(dst.Ptr(), u.Ptr(), conductivity.Ptr(), material.Ptr(), source.Ptr(), scale, nx, ny),
		cuda.Out(dst), cuda.In(u), cuda.In(conductivity), cuda.In(material), cuda.OrNull(source, cuda.In))
}

func (g gpu) madd2(dst, a cuda.Buffer, fa float32, b cuda.Buffer, fb float32, n int32) error {
	return g.launch("madd2", cuda.Cover(int(n)), pack(dst.Ptr(), a.Ptr(), fa, b.Ptr(), fb, n), cuda.Out(dst), cuda.In(a), cuda.In(b))
}

func (g gpu) hold(u, material cuda.Buffer, held uint8, temperature float32, n int32) error {
	return g.launch("hold", cuda.Cover(int(n)), pack(u.Ptr(), material.Ptr(), held, temperature, n), cuda.Out(u), cuda.In(material))
}

func (g gpu) maxdiff(most, a, b cuda.Buffer, n int32) error {
	return g.launch("maxdiff", cuda.Cover(int(n)), pack(most.Ptr(), a.Ptr(), b.Ptr(), n), cuda.InOut(most), cuda.In(a), cuda.In(b))
}

func (g gpu) sum(total, a cuda.Buffer, n int32) error {
	return g.launch("sum", cuda.Cover(int(n)), pack(total.Ptr(), a.Ptr(), n), cuda.InOut(total), cuda.In(a))
}

func run(config vram.Config, out io.Writer) (err error) {
	c, err := cuda.Open(config)
	if err != nil {
		return err
	}
	q := c.NewQueue()
	defer func() { err = errors.Join(err, q.Close(), c.Close()) }()
	g := gpu{c}
	u, last := cuda.Push(q, make([]float32, heat.Cells)), q.Alloc(4*heat.Cells)
	conductivity, material, source := cuda.Push(q, heat.Conductivity()), cuda.Push(q, heat.Material()), cuda.Push(q, heat.Source())
	var results heat.Results
	for round := range heat.Rounds {
		q.Copy(cuda.Whole(last), cuda.Whole(u))
		for range heat.Steps {
			rate := q.Alloc(u.Bytes())
			q.Do("a step", func(*cuda.Context) error {
				return errors.Join(
					g.rate(rate, u, conductivity, material, source, heat.Heat, heat.NX, heat.NY),
					g.madd2(u, u, 1, rate, heat.Step, heat.Cells),
					g.hold(u, material, heat.Held, heat.Temperature, heat.Cells),
				)
			})
			q.Free(rate)
		}
		most, total := q.AllocZeroed(4), q.AllocZeroed(4)
		q.Do("reductions", func(*cuda.Context) error {
			return errors.Join(g.maxdiff(most, last, u, heat.Cells), g.sum(total, u, heat.Cells))
		})
		cuda.Read(q, results[round][:1], cuda.Whole(most)) // the only wait
		cuda.Read(q, results[round][1:], cuda.Whole(total))
	}
	if err = q.Err(); err == nil {
		err = results.Print(out)
	}
	return err
}
