package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/examples/internal/kernels"
)

// optimizer is Adam over the parameters of a model, on one stream. It belongs to one goroutine.
type optimizer struct {
	gpu      *kernels.View // the program's own view of the device, for kernels and memsets
	stream   *vram.Stream
	together bool     // gradients are allocated in batches, before the backward pass
	tensors  []tensor // longest first
	bytes    []int64  // of each
	order    []int    // of the layers

	// Live from newOptimizer to close, one for each tensor.
	parameters, first, second []vram.Buffer

	// Live within a step.
	activations []vram.Buffer
	gradients   []vram.Buffer

	shareBytes int64 // most bytes of gradients at a time: halved if there is no room for them
	figures    figures
}

// figures are the results of an optimizer. Counts are of its last step.
type figures struct {
	together    bool
	stepCount   int
	partCount   int
	memsetCount int
	kernelCount int           // of the update
	hostTime    time.Duration // until everything was submitted
	stepTime    time.Duration // until the device has finished
}

// newOptimizer allocates parameters and moments in batches, and sets them to zero. After an error nothing is live.
func newOptimizer(g *kernels.View, s *vram.Stream, together bool, tensors []tensor) (*optimizer, error) {
	o := &optimizer{
		gpu: g, stream: s, together: together, tensors: tensors, order: placed(tensors), figures: figures{together: together},
		activations: make([]vram.Buffer, len(tensors)), gradients: make([]vram.Buffer, len(tensors)),
	}
	for _, p := range tensors {
		o.bytes = append(o.bytes, p.bytes)
		o.shareBytes += p.bytes
	}
	for _, list := range []*[]vram.Buffer{&o.parameters, &o.first, &o.second} {
		all := make([]vram.Buffer, len(o.bytes))
		if err := s.AllocBatch(all, o.bytes); err != nil {
			return nil, errors.Join(fmt.Errorf("parameters and moments: %w", err), o.close())
		}
		*list = all
		if err := o.clear(all); err != nil {
			return nil, errors.Join(err, o.close())
		}
	}
	return o, nil
}

// step runs a forward pass, a backward pass and an update, and waits for the device. If memory is short it computes and uses
// the gradients part by part. No buffer of a step outlives it, also after an error.
func (o *optimizer) step(ctx context.Context) (err error) {
	start := time.Now()
	defer func() {
		err = errors.Join(err, o.release(o.activations))
		o.figures.hostTime += time.Since(start)
		err = errors.Join(err, o.gpu.StreamSynchronize(o.stream.Handle()))
		o.figures.stepTime += time.Since(start)
		o.figures.stepCount++
	}()
	o.figures.partCount, o.figures.memsetCount, o.figures.kernelCount = 0, 0, 0
	for last := len(o.bytes); last > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := o.forward(last); err != nil {
			return fmt.Errorf("activations: %w", err)
		}
		first := o.part(last)
		err := errors.Join(o.advance(first, last), o.release(o.gradients[first:last])) // their last use is submitted
		switch {
		case err == nil:
			last = first
			o.figures.partCount++
		case errors.Is(err, vram.ErrOutOfMemory) && last-first > 1:
			o.shareBytes /= 2
		default:
			return fmt.Errorf("gradients %d to %d: %w", first, last-1, err)
		}
	}
	return nil
}

// forward computes the missing activations of the tensors up to last: all at first, and after a part that found no memory the
// ones that it has used up, which is the price of running out in the middle.
func (o *optimizer) forward(last int) (err error) {
	for _, i := range o.order {
		bytes := o.tensors[i].activationBytes
		if bytes == 0 || i >= last || o.activations[i] != (vram.Buffer{}) {
			continue
		}
		if o.activations[i], err = o.stream.Alloc(bytes); err != nil {
			return err
		}
		if err := o.touch(o.bytes[i]+bytes, o.activations[i]); err != nil {
			return err
		}
	}
	return nil
}

// bytesPerSecond is the attainable bandwidth of an H200's memory, which bounds an optimizer.
const bytesPerSecond = 3e12

// touch queues a kernel that writes buffers and moves the given number of bytes.
func (o *optimizer) touch(bytes int64, written ...vram.Buffer) error {
	duration := time.Duration(float64(bytes) / bytesPerSecond * float64(time.Second))
	return o.gpu.Write(o.stream.Handle(), duration, written...)
}

// part returns the first tensor of the part that ends at last.
func (o *optimizer) part(last int) (first int) {
	first = last - 1
	for bytes := o.bytes[first]; first > 0 && bytes+o.bytes[first-1] <= o.shareBytes; first-- {
		bytes += o.bytes[first-1]
	}
	return first
}

// advance submits the backward pass and the update of some tensors.
func (o *optimizer) advance(first, last int) error {
	if o.together { // all or none
		if err := o.stream.AllocBatch(o.gradients[first:last], o.bytes[first:last]); err != nil {
			return err
		}
		if err := o.clear(o.gradients[first:last]); err != nil {
			return err
		}
	}
	if err := o.backward(first, last); err != nil {
		return err
	}
	return o.update(first, last)
}

// backward visits the layers from the last to the first, and frees the activations of each computed gradient.
func (o *optimizer) backward(first, last int) (err error) {
	for _, i := range slices.Backward(o.order) {
		if i < first || i >= last {
			continue
		}
		if !o.together {
			if o.gradients[i], err = o.stream.Alloc(o.bytes[i]); err != nil {
				return err // step frees the existing ones
			}
			if err := o.clear(o.gradients[i : i+1]); err != nil {
				return err
			}
		}
		if err := o.touch(2*o.bytes[i]+o.tensors[i].activationBytes, o.gradients[i]); err != nil {
			return err
		}
		if err := o.release(o.activations[i : i+1]); err != nil {
			return err
		}
	}
	return nil
}

// adamPasses is the number of times that Adam moves a parameter's bytes: it reads gradient, parameter and moments, and writes
// the last three.
const adamPasses = 7

// update moves parameters along their gradients, a kernel for each run.
func (o *optimizer) update(first, last int) error {
	for i := first; i < last; {
		end := sideBySide(i, last, o.gradients, o.parameters, o.first, o.second)
		var written []vram.Buffer
		var bytes int64
		for _, list := range [][]vram.Buffer{o.gradients, o.parameters, o.first, o.second} {
			written = append(written, list[i:end]...)
		}
		for _, n := range o.bytes[i:end] {
			bytes += adamPasses * n
		}
		if err := o.touch(bytes, written...); err != nil {
			return err
		}
		o.figures.kernelCount++
		i = end
	}
	return nil
}

// clear sets tensors to zero, a memset for each run.
func (o *optimizer) clear(tensors []vram.Buffer) error {
	for i := 0; i < len(tensors); {
		end := sideBySide(i, len(tensors), tensors)
		begin, last := tensors[i].Ptr(), tensors[end-1]
		if err := o.gpu.MemsetD8Async(begin, 0, int64(last.Ptr()-begin)+last.Bytes(), o.stream.Handle()); err != nil {
			return err
		}
		o.figures.memsetCount++
		i = end
	}
	return nil
}

// alignBytes is the alignment of buffers. The bytes between two buffers are unused.
const alignBytes = 512

// sideBySide is the end of the longest run of tensors from i on that lie side by side in each of the lists.
func sideBySide(i, end int, lists ...[]vram.Buffer) int {
	for i++; i < end; i++ {
		for _, list := range lists {
			if gap := int64(list[i].Ptr()-list[i-1].Ptr()) - list[i-1].Bytes(); gap < 0 || gap >= alignBytes {
				return i
			}
		}
	}
	return i
}

// release frees the existing buffers.
func (o *optimizer) release(buffers []vram.Buffer) error {
	there := slices.DeleteFunc(slices.Clone(buffers), func(b vram.Buffer) bool { return b == vram.Buffer{} })
	clear(buffers)
	return o.stream.FreeBatch(there)
}

// close frees parameters and moments.
func (o *optimizer) close() error {
	return errors.Join(o.release(o.parameters), o.release(o.first), o.release(o.second))
}
