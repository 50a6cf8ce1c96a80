package kernelbench

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
)

// rig is an open device with compiled operations and random numbers.
type rig struct {
	ctx     context.Context //nolint:containedctx // of the run: each wait of a measurement is under it
	options Options
	device  *vram.Device
	c       *cuda.Context
	ops     ops.Ops
	kernels *kernel.Compiler
	normal  []float32 // random numbers, of which each operand has some
	taken   int       // operands so far: each begins elsewhere in normal
}

func newRig(ctx context.Context, o Options) (b *rig, err error) {
	b = &rig{ctx: ctx, options: o}
	defer func() { //nolint:contextcheck // open resources are closed, also when ctx has ended
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.device, err = vram.Open(o.Config); err != nil {
		return b, err
	}
	stream, err := b.device.NewStream() //nolint:contextcheck // it takes none
	if err != nil {
		return b, err
	}
	if b.c, err = cuda.NewContext(stream); err != nil {
		return b, err
	}
	if b.ops, err = ops.New(b.c); err != nil {
		return b, err
	}
	b.kernels, err = kernel.NewCompiler(b.c)
	return b, err
}

// close closes the open resources.
func (b *rig) close() error {
	var err error
	if b.kernels != nil {
		err = errors.Join(b.c.Synchronize(context.WithoutCancel(b.ctx)), b.kernels.Close(), b.ops.Close())
	}
	if b.c != nil {
		err = errors.Join(err, b.c.Close())
	}
	if b.device != nil {
		err = errors.Join(err, b.device.Close())
	}
	return err
}

// strideBetween is how far apart the random numbers of two operands begin: they differ, and one pool serves all.
const strideBetween = 1009

// random returns so many random numbers, which the next operand does not have in this order.
func (b *rig) random(n int) []float32 {
	const most = 8 // operands before the first one comes again
	from := b.taken % most * strideBetween
	b.taken++
	if missing := from + n - len(b.normal); missing > 0 {
		source := rand.New(rand.NewPCG(1, uint64(len(b.normal)))) //nolint:gosec // numbers of a benchmark
		for range missing {
			b.normal = append(b.normal, float32(source.NormFloat64()))
		}
	}
	return b.normal[from : from+n]
}

// operand returns a tensor of random numbers, and the numbers.
func (b *rig) operand(s *tensor.Scope, shape ...int) (*tensor.Tensor, []float32, error) {
	values := b.random(elements(shape))
	t, err := tensor.From(s, values, shape...)
	return t, values, err
}
