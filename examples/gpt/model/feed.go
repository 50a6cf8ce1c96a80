package model

import (
	"context"
	"encoding/binary"
	"errors"
	"math"

	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/host"
)

// feed brings the numbers of a step to the device: tokens and targets as int64, the learning rate and the number of the step as
// float32, one after the other.
//
// With page-locked memory a batch is copied on a stream of its own while the step before it computes: to one of two stages, from
// which a copy on the device brings it to the input that steps read. The host waits until the copy of the batch before has
// finished, and that one until its stage was read: so the host is at most three steps ahead of the device.
type feed struct {
	on      *cuda.Context // of the trainer
	input   cuda.Buffer
	bytes   int64
	heap    []byte        // without page-locked memory
	locked  host.Block    // page-locked
	copying *cuda.Context // the stream of copies from it, or nil
	stages  [2]cuda.Buffer
	next    int
}

const (
	idBytes     = 8 // of a token
	numberBytes = 4
)

// newFeed makes a feed for a number of tokens. close frees it.
func newFeed(c *cuda.Context, tokens int, memory host.Allocator) (f *feed, err error) {
	f = &feed{on: c, bytes: 2*idBytes*int64(tokens) + 2*numberBytes}
	complete := false
	defer func() {
		if !complete { // also after a panic of the driver
			err = errors.Join(err, f.close())
		}
	}()
	if f.input, err = c.AllocZeroed(f.bytes); err != nil {
		return f, err
	}
	if memory == nil {
		f.heap = make([]byte, f.bytes)
		complete = true
		return f, nil
	}
	if f.locked, err = memory.Alloc(f.bytes, 0); err != nil {
		return f, err
	}
	if f.copying, err = c.NewStream(); err != nil {
		return f, err
	}
	for i := range f.stages {
		if f.stages[i], err = f.copying.Alloc(f.bytes); err != nil {
			return f, err
		}
	}
	complete = true
	return f, nil
}

// close frees the memory, after the copies.
func (f *feed) close() (err error) {
	free := func(b cuda.Buffer) {
		if b.Live() {
			err = errors.Join(err, b.Free())
		}
	}
	free(f.input)
	for _, stage := range f.stages {
		free(stage)
	}
	if f.copying != nil {
		err = errors.Join(err, f.copying.Close())
	}
	return errors.Join(err, f.locked.Free())
}

// views returns the parts of the input: tokens and targets of a shape, the rate, and the number of the step.
func (f *feed) views(p *pass, tokens, targets []int) (x, y, rate, count *tensor.Tensor) {
	view := func(of tensor.Type, offset int, shape ...int) *tensor.Tensor {
		l, err := layout.Of(shape...)
		if err == nil {
			l, err = layout.New(shape, l.Strides(), offset)
		}
		if err != nil || p.err != nil {
			p.did(err)
			return nil
		}
		return p.got(tensor.Over(f.on, f.input, of, l))
	}
	n := int(f.bytes-2*numberBytes) / (2 * idBytes)
	first := 2 * idBytes / numberBytes * n
	return view(tensor.Int64, 0, tokens...), view(tensor.Int64, n, targets...), view(tensor.Float32, first), view(tensor.Float32, first+1)
}

// put submits the copies of a step's numbers. It allocates nothing on Go's heap.
func (f *feed) put(tokens, targets []int64, rate, count float32) error {
	if f.copying == nil {
		pack(f.heap, tokens, targets, rate, count)
		return f.on.CopyInAt(f.input, 0, f.heap)
	}
	if err := f.copying.Synchronize(context.Background()); err != nil {
		return err
	}
	pack(f.locked.Bytes(), tokens, targets, rate, count)
	stage := f.stages[f.next]
	if err := f.copying.CopyInAsync(cuda.Whole(stage), f.locked.Bytes()); err != nil {
		return err
	}
	f.next = (f.next + 1) % len(f.stages)
	return f.on.Copy(cuda.Whole(f.input), cuda.Whole(stage))
}

// pack writes the numbers of a step.
func pack(to []byte, tokens, targets []int64, rate, count float32) {
	for _, ids := range [...][]int64{tokens, targets} {
		for i, id := range ids {
			binary.LittleEndian.PutUint64(to[idBytes*i:], uint64(id)) //nolint:gosec // the same bits
		}
		to = to[idBytes*len(ids):]
	}
	binary.LittleEndian.PutUint32(to, math.Float32bits(rate))
	binary.LittleEndian.PutUint32(to[numberBytes:], math.Float32bits(count))
}
