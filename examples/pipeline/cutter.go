package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-vram/vram/examples/internal/schedule"
	"github.com/go-vram/vram/internal/trace"
)

// cutter cuts the events of one stage into operations. A recording has no marks; these are the signs:
//
//   - A forward begins where its first layer's bias and weight are cast to half precision. It ends where
//     the cast copies are freed, the first of which is its first allocation.
//   - A backward begins where the previous operation ends. It frees the saved buffers of its forward, and
//     ends when it has freed its own temporary buffers.
//   - The rest of a step is the optimizer.
//   - The buffer of a forward that lives longest is its output, and likewise of a backward, among buffers as large as the
//     micro-batch. Their frees belong to no operation of this stage: they wait for the neighbour.
//   - The first stage allocates its input right before its forward. Here it arrives like the others'.
type cutter struct {
	events  []trace.Event
	micros  []int64
	allocAt map[uint32]int // of a buffer, the event
	freeAt  map[uint32]int // likewise; absent for buffers that the recording never frees

	forwards []stretch
	outputs  map[uint32]bool // freed by a neighbour
	inputs   map[uint32]bool // arrive from a neighbour

	steps      []program
	stateBytes []int64
}

// stretch is the range of events from begin up to end.
type stretch struct{ begin, end int }

// The bias and the weight of a layer's first projection in half precision: 3 times 2048 values, and 2048
// times as many.
const (
	biasBytes   = 2 * 3 * 2048
	weightBytes = biasBytes * 2048
)

// layersOfForward is the number of layers of a stage.
const layersOfForward = 2

func newCutter(tr *trace.Trace, stream uint16) *cutter {
	c := &cutter{
		allocAt: map[uint32]int{}, freeAt: map[uint32]int{},
		outputs: map[uint32]bool{}, inputs: map[uint32]bool{},
	}
	for i, e := range tr.Events {
		if e.Stream != stream {
			continue
		}
		at := c.allocAt
		if e.Op == trace.Free {
			at = c.freeAt
		}
		at[e.ID] = len(c.events)
		c.events = append(c.events, e)
		c.micros = append(c.micros, tr.Micros[i])
	}
	return c
}

// cut fills steps and stateBytes. The first stage appends the sizes of the micro-batches to inputBytes,
// the others read them.
func (c *cutter) cut(inputBytes *[]int64) error {
	c.findForwards()
	if n := len(c.forwards); n == 0 || n%microBatchCount != 0 {
		return fmt.Errorf("%d forwards, want a multiple of %d", n, microBatchCount)
	}
	first := len(*inputBytes) == 0
	last := c.events[0].Stream == stageCount
	for k, f := range c.forwards {
		if out := c.longest(f, 0); !last {
			c.outputs[out] = true
			if first {
				*inputBytes = append(*inputBytes, c.events[c.allocAt[out]].Bytes)
			}
		}
		if first {
			c.inputs[c.inputBefore(f.begin, (*inputBytes)[k])] = true
		}
	}
	for k := 0; k < len(c.forwards); k += microBatchCount {
		p, err := c.step(k, (*inputBytes)[k:k+microBatchCount])
		if err != nil {
			return fmt.Errorf("step %d: %w", k/microBatchCount, err)
		}
		c.steps = append(c.steps, p)
	}
	return nil
}

func (c *cutter) findForwards() {
	layers := 0
	for i, e := range c.events {
		if e.Op != trace.Alloc || e.Bytes != biasBytes || !c.weightFollows(i) {
			continue
		}
		if layers++; layers%layersOfForward != 1 {
			continue
		}
		end := len(c.events)
		if at, ok := c.freeAt[e.ID]; ok {
			end = at + 1
		}
		for end < len(c.events) && c.events[end].Op == trace.Free && c.allocAt[c.events[end].ID] >= i {
			end++
		}
		c.forwards = append(c.forwards, stretch{i, end})
	}
}

// weightFollows looks two events ahead: the free of something else may come between.
func (c *cutter) weightFollows(i int) bool {
	for _, e := range c.events[i+1 : min(i+3, len(c.events))] {
		if e.Op == trace.Alloc && e.Bytes == weightBytes {
			return true
		}
	}
	return false
}

// longest returns the buffer of a stretch with the given size, or with any size if bytes is 0, that is
// freed last.
func (c *cutter) longest(s stretch, bytes int64) (id uint32) {
	freed := 0
	for _, e := range c.events[s.begin:s.end] {
		if at, ok := c.freeAt[e.ID]; ok && e.Op == trace.Alloc && at > freed && (bytes == 0 || e.Bytes == bytes) {
			id, freed = e.ID, at
		}
	}
	return id
}

func (c *cutter) inputBefore(begin int, bytes int64) uint32 {
	for i := begin - 1; i >= 0; i-- {
		if e := c.events[i]; e.Op == trace.Alloc && e.Bytes == bytes {
			return e.ID
		}
	}
	return 0
}

// step cuts the step whose forwards begin with number k.
func (c *cutter) step(k int, inputBytes []int64) (program, error) {
	stage := int(c.events[0].Stream) - 1
	n := numbering{cutter: c, buffers: map[uint32]int{}}
	p := program{operations: map[turn]operation{}}
	end := c.forwards[k].begin
	for _, t := range schedule.OneF1B(stage, stageCount, microBatchCount, fullAhead) {
		f := c.forwards[k+t.MicroBatch]
		var s stretch
		var out uint32
		switch t.Kind {
		case forward:
			s, out = f, c.longest(f, 0)
		case backward:
			first, last := c.saved(f)
			if first < end || first > last {
				return p, fmt.Errorf("%v does not free what its forward has saved", t)
			}
			out = c.longest(stretch{end, last + 1}, inputBytes[t.MicroBatch])
			c.outputs[out] = true
			s = c.backward(end, last)
		case optimizer:
			p.operations[t] = c.optimizer(end, k+microBatchCount)
			continue
		}
		if s.begin < end {
			return p, fmt.Errorf("%v begins before the operation before it has ended", t)
		}
		end = s.end
		o := operation{chunks: n.chunks(s), out: none}
		if c.outputs[out] && (stage > 0 || t.Kind == forward) { // the first stage has no neighbour before it
			o.out = n.buffers[out]
		}
		p.operations[t] = o
	}
	p.bufferCount = len(n.buffers)
	return p, nil
}

// saved returns the first and the last free of the buffers that outlive a forward.
func (c *cutter) saved(f stretch) (first, last int) {
	first = len(c.events)
	for _, e := range c.events[f.begin:f.end] {
		if at, ok := c.freeAt[e.ID]; ok && e.Op == trace.Alloc && at >= f.end && !c.outputs[e.ID] {
			first, last = min(first, at), max(last, at)
		}
	}
	return first, last
}

// backward returns the backward that begins at an event, and whose forward's last saved buffer is freed at event last.
func (c *cutter) backward(begin, last int) stretch {
	next := last + 1 // the next operation's: a forward's first event, or the free of something older
	for next < len(c.events) && !c.beginsForward(next) && !c.freesOlder(next, begin) {
		next++
	}
	s := stretch{begin, last + 1}
	for i := s.begin; i < s.end; i++ {
		e := c.events[i]
		if at, ok := c.freeAt[e.ID]; ok && e.Op == trace.Alloc && at < next && !c.outputs[e.ID] {
			s.end = max(s.end, at+1)
		}
	}
	return s
}

func (c *cutter) beginsForward(i int) bool {
	return slices.ContainsFunc(c.forwards, func(f stretch) bool { return f.begin == i })
}

// freesOlder reports whether an event frees a buffer that was allocated before begin and that no neighbour waits for.
func (c *cutter) freesOlder(i, begin int) bool {
	e := c.events[i]
	return e.Op == trace.Free && c.allocAt[e.ID] < begin && !c.outputs[e.ID] && !c.inputs[e.ID]
}

// optimizer returns the operation between the last backward and the forward with that number.
func (c *cutter) optimizer(begin, nextForward int) operation {
	end := len(c.events)
	if nextForward < len(c.forwards) {
		end = c.forwards[nextForward].begin
	}
	o := operation{out: none}
	first, last := 0, 0
	for i := begin; i < end; i++ {
		e := c.events[i]
		if e.Op == trace.Free || c.inputs[e.ID] {
			continue
		}
		if at, ok := c.freeAt[e.ID]; !ok || at >= end {
			c.stateBytes = append(c.stateBytes, e.Bytes)
			continue
		}
		if len(o.batchBytes) == 0 {
			first = i
		}
		o.batchBytes = append(o.batchBytes, e.Bytes)
		last = max(last, c.freeAt[e.ID])
	}
	o.batchTime = time.Duration(c.micros[last]-c.micros[first]) * time.Microsecond
	return o
}

// numbering gives a step's buffers their numbers.
type numbering struct {
	cutter  *cutter
	buffers map[uint32]int
}

// kernelTime is the shortest gap between two frees that counts as work of the device. Launching a kernel
// took the recorded program longer than that.
const kernelTime = 5 * time.Microsecond

// chunks converts the events of a stretch to chunks of a program.
func (n *numbering) chunks(s stretch) []chunk {
	c := n.cutter
	chunks := []chunk{{}}
	before := int64(-1)
	for i := s.begin; i < s.end; i++ {
		e := c.events[i]
		if c.inputs[e.ID] || e.Op == trace.Free && c.outputs[e.ID] {
			continue
		}
		now := &chunks[len(chunks)-1]
		var gap time.Duration
		if before >= 0 {
			gap = time.Duration(c.micros[i]-before) * time.Microsecond
		}
		before = c.micros[i]
		now.compute += gap
		if e.Op == trace.Alloc {
			now.allocs = append(now.allocs, request{len(n.buffers), e.Bytes})
			n.buffers[e.ID] = len(n.buffers)
			continue
		}
		if len(now.allocs) > 0 || gap >= kernelTime { // the kernel that used it comes first
			chunks = append(chunks, chunk{})
			now = &chunks[len(chunks)-1]
		}
		now.frees = append(now.frees, n.buffers[e.ID])
	}
	return chunks
}
