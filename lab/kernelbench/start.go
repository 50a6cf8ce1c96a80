package kernelbench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/store"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
)

// StartOptions say which kernels a start makes ready, and how.
type StartOptions struct {
	Kernels int
	Threads int    // that compile
	Folder  string // of the store; "": none. The environment variable of package store is preferred.
}

// Start has the times of a start, in microseconds.
type Start struct {
	OpenMicros    float64 `json:"open_us"`    // until the device is open
	KernelsMicros float64 `json:"kernels_us"` // from there until the kernels are ready
	Compiled      int64   `json:"compiled"`
	Stored        int64   `json:"stored"` // that came from the store
}

// starts is how many processes a row starts.
const starts = 3

// start measures starts of a process.
func (b *rig) start(w workload) (rows []Row, err error) {
	shape := b.shape(w)
	o := StartOptions{Kernels: shape[0], Threads: shape[1]}
	start := b.options.Start
	if start == nil {
		start = func(ctx context.Context, o StartOptions) (Start, error) {
			return StartHere(ctx, b.options.Config, b.options.NewDriver(), o)
		}
	}
	wantStored := int64(0)
	if w.Stored {
		if o.Folder, err = os.MkdirTemp("", "vram-kernels-"); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.Folder)) }()
		if _, err = start(b.ctx, o); err != nil {
			return nil, err
		}
		wantStored = int64(o.Kernels)
	}
	var samples []sample
	for range starts {
		took, err := start(b.ctx, o)
		if err != nil {
			return nil, err
		}
		if took.Stored != wantStored || took.Compiled != int64(o.Kernels)-wantStored {
			return nil, fmt.Errorf("a start compiled %d kernels and took %d from the store: want %d of %d from there",
				took.Compiled, took.Stored, wantStored, o.Kernels)
		}
		samples = append(samples, sample{wallMicros: took.KernelsMicros})
	}
	return []Row{w.figure(PathLaunched, shape, samples)}, nil
}

// StartHere makes kernels ready in this process: it opens a device, and loads different kernels of element-wise expressions,
// reductions and rows.
func StartHere(ctx context.Context, config vram.Config, driver cudadrv.Driver, o StartOptions) (took Start, err error) {
	if o.Kernels < 1 || o.Threads < 1 {
		return took, errors.New("a start has at least one kernel and one thread")
	}
	from := time.Now()
	config.Driver = driver
	device, err := vram.Open(config)
	if err != nil {
		return took, err
	}
	defer func() { err = errors.Join(err, device.Close()) }() //nolint:contextcheck // it is closed, also when ctx has ended
	stream, err := device.NewStream()                         //nolint:contextcheck // it takes none
	if err != nil {
		return took, err
	}
	c, err := cuda.NewContext(stream)
	if err != nil {
		return took, err
	}
	defer func() { err = errors.Join(err, c.Close()) }() //nolint:contextcheck // as the device
	took.OpenMicros = micros(time.Since(from))

	from = time.Now()
	with := []kernel.Option{kernel.Threads(o.Threads)}
	if o.Folder != "" {
		with = append(with, kernel.WithStore(store.Open(store.Config{Folder: o.Folder}).On(c.Info())))
	}
	kernels, err := kernel.NewCompiler(c, with...)
	if err != nil {
		return took, err
	}
	defer func() { err = errors.Join(err, kernels.Close()) }()
	needs, err := startNeeds(kernels, o.Kernels)
	if err != nil {
		return took, err
	}
	err = kernels.WarmUp(ctx, needs, nil)
	took.KernelsMicros = micros(time.Since(from))
	stats := kernels.Stats()
	took.Compiled, took.Stored = stats.Compiled, stats.Stored
	return took, err
}

// startNeeds returns so many kernels with the layouts that they will have.
func startNeeds(by *kernel.Compiler, count int) ([]kernel.Need, error) {
	whole, err := layout.Of(64, 256)
	if err != nil {
		return nil, err
	}
	rows, err := layout.Of(64, 1)
	if err != nil {
		return nil, err
	}
	needs := make([]kernel.Need, count)
	for i := range needs {
		k, row, err := startKernel(by, i)
		if err != nil {
			return nil, err
		}
		out := whole
		if row {
			out = rows
		}
		needs[i] = kernel.Need{Kernel: k, Layouts: []layout.Layout{whole, whole, out}}
	}
	return needs, nil
}

// startKernel returns the kernel of a number: no two have the same text. row: it has one element a row.
func startKernel(by *kernel.Compiler, number int) (k *kernel.Kernel, row bool, err error) {
	x, y := expr.Input(0, tensor.Float32), expr.Input(1, tensor.Float32)
	of := x.Mul(expr.Number(float64(number + 2))).Add(y)
	switch number % 5 {
	case 0:
		k, err = by.Elementwise(of)
	case 1:
		k, err = by.Elementwise(of.Gelu())
	case 2:
		k, err = by.Reduction([]int{-1}, of.Sum())
		row = true
	case 3:
		k, err = by.Reduction([]int{-1}, of.Softmax())
	default:
		k, err = by.Reduction([]int{-1}, of.LayerNorm(epsilon))
	}
	return k, row, err
}
