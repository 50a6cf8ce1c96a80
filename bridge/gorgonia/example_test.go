package gorgonia_test

import (
	"errors"
	"fmt"
	"log"

	host "gorgonia.org/tensor"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/bridge/gorgonia"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/cuda"
	_ "github.com/go-vram/vram/cudadrv/cpu" // the device without a GPU
)

func Example() {
	c, err := cuda.Open(vram.Config{DriverName: "gpu-or-cpu"})
	if err != nil {
		log.Fatal(err)
	}
	o, err := ops.New(c)
	if err != nil {
		log.Fatal(err)
	}
	e, err := gorgonia.New(c, o)
	if err != nil {
		log.Fatal(err)
	}
	err = e.Scoped(func() error { return layer(e) })
	if err := errors.Join(err, e.Close(), o.Close(), c.Close()); err != nil {
		log.Fatal(err)
	}
	// Output: [5 0 1 0]
}

// layer computes a linear layer.
func layer(e *gorgonia.Engine) error {
	x, err := gorgonia.From(e, []float32{1, 2, 3, -1, 0, 1}, 2, 3)
	if err != nil {
		return err
	}
	weight, err := gorgonia.From(e, []float32{1, 0, 1, 0, 1, -1}, 2, 3)
	if err != nil {
		return err
	}
	if err := weight.T(); err != nil { // changes strides alone
		return err
	}
	y, err := x.MatMul(weight)
	if err != nil {
		return err
	}
	sum, err := host.Add(y, float32(1))
	if err != nil {
		return err
	}
	values, err := gorgonia.Read[float32](sum) // waits
	fmt.Println(values)
	return err
}
