package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/examples/internal/schedule"
	"github.com/go-vram/vram/futures"
)

// stage is one pipeline stage: a goroutine, its stream and its buffers. The goroutine owns all but the
// progress until run has returned.
type stage struct {
	number    int
	recording *recording
	turns     []turn
	stream    *vram.Stream
	gpu       *gpu
	queue     *queue
	patient   bool // waits for memory

	activations inlet
	gradients   inlet // unused by the last stage
	toNext      *road // nil for the last stage
	toPrevious  *road // nil for the first

	held    []vram.Buffer // by the program's number; the zero Buffer: none
	written []vram.Buffer // by the kernel at hand
	params  []vram.Buffer
	states  []vram.Buffer // the optimizer's, from the first step on

	batchBytes   []int64                    // of the optimizer's temporary buffers in this step
	batch        futures.Future[vram.Batch] // ordered with the last backward
	batchOrdered bool

	waits     waits
	callNanos []float64 // of an operation: time in the allocator for each call

	begunCount atomic.Int64 // progress: operations that have begun on the device
	now        atomic.Uint32
	computed   atomic.Int64 // ns of kernels that were queued
	stepEnd    func()       // called when the stage has queued a step
}

// showTurn returns the turn that began last.
func (st *stage) showTurn() turn {
	v := st.now.Load()
	return turn{Kind: schedule.Kind(v >> 16), MicroBatch: int(v & 0xffff)}
}

// load allocates the parameters and orders the first receive buffers, and opens the queue.
func (st *stage) load(ctx context.Context) (err error) {
	sizes := st.recording.paramBytes[st.number]
	st.params = make([]vram.Buffer, len(sizes))
	if err := st.stream.AllocBatch(st.params, sizes); err != nil {
		st.params = nil
		return fmt.Errorf("stage %d: parameters: %w", st.number, err)
	}
	for _, p := range st.params {
		if err := st.gpu.MemsetD8Async(p.Ptr(), 0, p.Bytes(), st.stream.Handle()); err != nil {
			return err
		}
	}
	st.queue, err = newQueue(st.gpu, st.stream.Handle(), func(t turn) {
		st.begunCount.Add(1)
		st.now.Store(uint32(t.Kind)<<16 | uint32(t.MicroBatch))
	})
	if err != nil {
		return err
	}
	st.activations.order(ctx, st.recording.inputBytes[0])
	if st.toNext != nil {
		st.gradients.order(ctx, st.recording.inputBytes[0])
	}
	return st.gpu.StreamSynchronize(st.stream.Handle())
}

// run executes the steps. It returns at the end of ctx, between two operations, with its cause.
func (st *stage) run(ctx context.Context, stepCount int) error {
	for n := range stepCount {
		program := &st.recording.steps[n%len(st.recording.steps)][st.number]
		if len(st.held) < program.bufferCount {
			st.held = append(st.held, make([]vram.Buffer, program.bufferCount-len(st.held))...)
		}
		st.batchBytes = program.operations[turn{Kind: optimizer}].batchBytes
		for _, t := range st.turns {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			o := program.operations[t]
			if err := st.operate(ctx, t, &o, n+1 == stepCount); err != nil {
				return fmt.Errorf("stage %d, step %d, %v: %w", st.number, n+1, t, err)
			}
		}
		st.stepEnd()
	}
	return nil
}

// finish waits for the device to finish the queued work. From then on nobody frees buffers of the stream before all stages have
// stopped.
func (st *stage) finish() error {
	err := errors.Join(st.queue.drain(), st.gpu.StreamSynchronize(st.stream.Handle()))
	st.stream.Suspend()
	return err
}

func (st *stage) operate(ctx context.Context, t turn, o *operation, lastStep bool) error {
	if err := st.queue.room(); err != nil {
		return err
	}
	var p parcel
	var err error
	if in := st.inlet(t); in != nil {
		p, err = in.receive(ctx, t)
		if next := t.MicroBatch + 1; err == nil && (next < microBatchCount || !lastStep) {
			in.order(ctx, st.recording.inputBytes[next%microBatchCount])
		}
	}
	if err = errors.Join(st.queue.add(t, p), err); err != nil {
		return err
	}
	if t.Kind == optimizer {
		return st.optimize(ctx, t, o)
	}
	if t.Kind == backward && t.MicroBatch == microBatchCount-1 {
		st.batch, st.batchOrdered = st.stream.AllocBatchAsync(ctx, st.batchBytes), true
	}
	if st.patient && t.Kind == forward {
		if err := st.provide(ctx, t, o); err != nil {
			return err
		}
	}
	if err := st.play(ctx, t, o); err != nil {
		return err
	}
	if err := st.handOver(t, o); err != nil {
		return err
	}
	if t.Kind == forward {
		return nil
	}
	err = st.activations.free(t.MicroBatch)
	if st.toNext != nil {
		err = errors.Join(err, st.gradients.free(t.MicroBatch))
	}
	return err
}

// inlet returns the inlet of an operation's input; nil if it has none.
func (st *stage) inlet(t turn) *inlet {
	switch {
	case t.Kind == forward:
		return &st.activations
	case t.Kind == backward && st.toNext != nil:
		return &st.gradients
	}
	return nil
}

// play makes the allocations and frees of an operation and queues its kernels. A free comes before the
// kernel has finished: it is ordered on the stream, and the next user of the memory runs after it.
func (st *stage) play(ctx context.Context, t turn, o *operation) error {
	var inAllocator time.Duration
	stream := st.stream.Handle()
	for i := range o.chunks {
		c := &o.chunks[i]
		start := time.Now()
		for _, b := range c.frees {
			if err := st.held[b].Free(); err != nil {
				return err
			}
			st.held[b] = vram.Buffer{}
		}
		for _, a := range c.allocs {
			if st.held[a.buffer] != (vram.Buffer{}) { // it was provided
				continue
			}
			b, err := st.alloc(ctx, a.bytes, t)
			if err != nil {
				return err
			}
			st.held[a.buffer] = b
		}
		inAllocator += time.Since(start)
		st.written = st.written[:0]
		for _, a := range c.allocs {
			st.written = append(st.written, st.held[a.buffer])
		}
		took, err := st.gpu.compute(stream, c.compute, st.written...)
		if err != nil {
			return err
		}
		st.computed.Add(int64(took))
	}
	inAllocator -= time.Duration(len(o.chunks)) * st.waits.clockCost
	st.callNanos = append(st.callNanos, float64(inAllocator)/float64(o.calls()))
	return nil
}

// handOver sends an operation's output to the neighbouring stage.
func (st *stage) handOver(t turn, o *operation) error {
	if o.out == none {
		return nil
	}
	filled, err := st.gpu.EventCreate()
	if err != nil {
		return err
	}
	to := st.toNext
	if t.Kind == backward {
		to = st.toPrevious
	}
	if err := st.gpu.EventRecord(filled, st.stream.Handle()); err != nil {
		return errors.Join(err, st.gpu.EventDestroy(filled))
	}
	if err := to.Send(context.Background(), parcel{st.held[o.out], filled, st.gpu}); err != nil { // there is room
		return errors.Join(err, st.gpu.EventDestroy(filled))
	}
	st.held[o.out] = vram.Buffer{}
	return nil
}

// optimize executes the optimizer's step in batches: it allocates and frees its temporary buffers together, and
// frees the gradients together. The first step also allocates the optimizer's state.
func (st *stage) optimize(ctx context.Context, t turn, o *operation) error {
	if st.states == nil {
		states, err := st.allocBatch(ctx, st.recording.stateBytes[st.number], t)
		if err != nil {
			return err
		}
		st.states = states.Buffers()
	}
	temporary, err := await(ctx, &st.waits, st.batch)
	if st.patient && errors.Is(err, vram.ErrOutOfMemory) {
		temporary, err = st.allocBatch(ctx, st.batchBytes, t)
	}
	if err != nil {
		return err
	}
	st.batchOrdered = false
	took, err := st.gpu.compute(st.stream.Handle(), o.batchTime, temporary.Buffers()...)
	st.computed.Add(int64(took))
	return errors.Join(err, temporary.Free(), st.freeHeld())
}

// freeHeld frees the remaining buffers of the step: the gradients.
func (st *stage) freeHeld() error {
	var left []vram.Buffer
	for i, b := range st.held {
		if b != (vram.Buffer{}) {
			left = append(left, b)
			st.held[i] = vram.Buffer{}
		}
	}
	return st.stream.FreeBatch(left)
}

// release frees all buffers of the stage. All stages must have returned from run.
func (st *stage) release() error {
	errs := []error{st.activations.release(), st.gradients.release(), st.freeHeld()}
	if st.batchOrdered {
		st.batchOrdered = false
		errs = append(errs, abandon(st.batch))
	}
	if st.queue != nil {
		errs = append(errs, st.queue.drain(), st.queue.close())
	}
	errs = append(errs, st.stream.FreeBatch(st.params), st.stream.FreeBatch(st.states))
	st.params, st.states = nil, nil
	return errors.Join(errs...)
}
