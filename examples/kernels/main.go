// Command kernels computes with an operation of its own, on a GPU, or on the simulated device if there is none: one expression
// becomes one kernel, which is compiled once, run over tensors, compared with Go, and profiled.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"text/tabwriter"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/sim/ptxrun"
)

func main() {
	if err := command(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "kernels:", err)
		os.Exit(1)
	}
}

func command(args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("kernels", flag.ContinueOnError)
	flags.SetOutput(out)
	rows := flags.Int("rows", 64, "rows of the tensor")
	columns := flags.Int("columns", 1000, "its columns")
	if err := flags.Parse(args); err != nil {
		return err //nolint:wrapcheck // the flag set has said it
	}
	if *rows < 1 || *columns < 1 {
		return fmt.Errorf("%d rows of %d columns: want one or more", *rows, *columns)
	}
	driver, err := driver()
	if err != nil {
		return err
	}
	dev, err := vram.Open(vram.Config{Driver: driver})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	stream, err := dev.NewStream()
	if err != nil {
		return err
	}
	c, err := cuda.NewContext(stream)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if _, err := fmt.Fprintf(out, "device: %s, driver %s\n", dev.Info().Name, dev.Info().Driver); err != nil {
		return err
	}
	return compute(c, *rows, *columns, out)
}

// driver returns the GPU's driver, or a simulated device that executes kernels with an interpreter.
func driver() (cudadrv.Driver, error) {
	found, err := vram.DriverNamed("auto")
	if err != nil {
		return nil, err
	}
	if _, simulated := found.(*sim.Driver); simulated {
		return sim.New(sim.Config{Bytes: true, Executor: ptxrun.New(ptxrun.Config{})}), nil
	}
	return found, nil
}

// compute runs swish(x*scale + bias), which is four operations in one kernel, and the softmax of each row of the result.
func compute(c *cuda.Context, rows, columns int, out io.Writer) (err error) {
	kernels, err := kernel.NewCompiler(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kernels.Close()) }()
	x, scale, bias := expr.Input(0, tensor.Float32), expr.Input(1, tensor.Float32), expr.Input(2, tensor.Float32)
	y := x.Mul(scale).Add(bias)
	swish, err := kernels.Elementwise(y.Mul(y.Sigmoid()))
	if err != nil {
		return err
	}
	softmax, err := kernels.Reduction([]int{-1}, x.Softmax())
	if err != nil {
		return err
	}
	return tensor.Scoped(c, func(s *tensor.Scope) error {
		values := make([]float32, rows*columns)
		for i := range values {
			values[i] = float32(i%17) - 8
		}
		in, err := tensor.From(s, values, rows, columns)
		if err != nil {
			return err
		}
		ones, err := tensor.Full(s, float32(0.5), columns) // for each row
		if err != nil {
			return err
		}
		result, err := tensor.New(s, tensor.Float32, rows, columns)
		if err != nil {
			return err
		}
		profile, err := c.StartProfile()
		if err != nil {
			return err
		}
		ran := errors.Join(
			swish.Run(s, []*tensor.Tensor{result}, in, ones, ones),
			softmax.Run(s, []*tensor.Tensor{result}, result), // in place
		)
		times, err := profile.Stop()
		if err := errors.Join(ran, err); err != nil {
			return err
		}
		got, err := tensor.Read[float32](result)
		if err != nil {
			return err
		}
		return report(out, got, expected(values, columns), times)
	})
}

// expected computes the result in Go.
func expected(values []float32, columns int) []float64 {
	all := make([]float64, len(values))
	for i, v := range values {
		y := float64(v)*0.5 + 0.5
		all[i] = y / (1 + math.Exp(-y))
	}
	for row := 0; row < len(all); row += columns {
		total := 0.0
		for _, y := range all[row : row+columns] {
			total += math.Exp(y)
		}
		for i := range columns {
			all[row+i] = math.Exp(all[row+i]) / total
		}
	}
	return all
}

// errWrong reports that the device and Go have different results.
var errWrong = errors.New("the result is not that of Go")

// report compares, and prints the times of the kernels.
func report(out io.Writer, got []float32, want []float64, times []cuda.KernelTime) error {
	worst := 0.0
	for i, w := range want {
		worst = max(worst, math.Abs(float64(got[i])-w)/w)
	}
	if !(worst < 1e-5) {
		return fmt.Errorf("%w: relative error %.2g", errWrong, worst)
	}
	if _, err := fmt.Fprintf(out, "%d numbers, relative error below 1e-5\n", len(got)); err != nil {
		return err
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, err := fmt.Fprintln(t, "kernel\tgrid\tblock\ttime")
	for _, one := range times {
		_, failed := fmt.Fprintf(t, "%s\t%v\t%v\t%v\n", one.Kernel, one.Geometry.Grid, one.Geometry.Block, one.Duration)
		err = errors.Join(err, failed)
	}
	return errors.Join(err, t.Flush())
}
