package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-vram/vram/internal/trace"
)

// In the recording pipeline_1f1b stream 0 holds the parameters, streams 1 to 4 are the stages, and every step
// has eight micro-batches.
const (
	recordingName   = "pipeline_1f1b"
	stageCount      = 4
	microBatchCount = 8
)

// recording is the trace cut into operations.
type recording struct {
	paramBytes [stageCount][]int64
	stateBytes [stageCount][]int64 // the optimizer's state, allocated in its first step
	inputBytes [microBatchCount]int64
	// peakLiveBytes is the recorded live peak.
	peakLiveBytes int64
	// steps are the recorded ones without the first, in which the program loaded libraries.
	steps []step
}

// step has the stages' programs of one step.
type step [stageCount]program

// program is a stage's part of a step. Buffers are numbered from 0.
type program struct {
	operations  map[turn]operation
	bufferCount int
}

// operation has a turn's requests to the allocator, and the time of its work.
type operation struct {
	chunks []chunk
	out    int // the buffer that goes to the neighbouring stage, or none
	// Of the optimizer: the buffers that it allocates together, and frees together with the step's remaining ones.
	batchBytes []int64
	batchTime  time.Duration
}

// none means that an operation hands nothing over.
const none = -1

// chunk is a part of an operation up to a kernel: frees, then allocations, then the kernel, which uses the
// live buffers.
type chunk struct {
	frees   []int
	allocs  []request
	compute time.Duration
}

// request is an allocation of a program.
type request struct {
	buffer int
	bytes  int64
}

// calls returns the number of single allocations and frees of the operation.
func (o *operation) calls() (n int) {
	for i := range o.chunks {
		n += len(o.chunks[i].frees) + len(o.chunks[i].allocs)
	}
	return n
}

// left returns the allocations that outlive the operation.
func (o *operation) left() (left []request) {
	for i := range o.chunks {
		for _, b := range o.chunks[i].frees {
			left = slices.DeleteFunc(left, func(r request) bool { return r.buffer == b })
		}
		left = append(left, o.chunks[i].allocs...)
	}
	return left
}

// openRecording reads the embedded trace.
func openRecording() (*recording, error) {
	tr, err := trace.Open(recordingName)
	if err != nil {
		return nil, err
	}
	return cut(tr)
}

// cut divides the trace into steps, stages and operations. The error names the place where the trace differs
// from the recording that this program knows.
func cut(tr *trace.Trace) (*recording, error) {
	if tr.Info.StreamCount != stageCount+1 {
		return nil, fmt.Errorf("recording %s: %d streams, want %d", tr.Name, tr.Info.StreamCount, stageCount+1)
	}
	r := &recording{peakLiveBytes: tr.Info.PeakLiveBytes}
	var params []int64
	for _, e := range tr.Events {
		if e.Stream == 0 && e.Op == trace.Alloc {
			params = append(params, e.Bytes)
		}
	}
	for s, part := range slices.Collect(slices.Chunk(params, len(params)/stageCount)) {
		r.paramBytes[s] = part
	}
	var inputs []int64 // by micro-batch since the start, from the first stage
	for s := range stageCount {
		c := newCutter(tr, uint16(s+1))
		if err := c.cut(&inputs); err != nil {
			return nil, fmt.Errorf("recording %s: stage %d: %w", tr.Name, s, err)
		}
		for n := range c.steps {
			if s == 0 {
				r.steps = append(r.steps, step{})
			}
			if n >= len(r.steps) {
				return nil, fmt.Errorf("recording %s: stage %d has more steps than the first", tr.Name, s)
			}
			r.steps[n][s] = c.steps[n]
		}
		r.stateBytes[s] = c.stateBytes
	}
	copy(r.inputBytes[:], inputs)
	r.steps = r.steps[1:]
	return r, nil
}
