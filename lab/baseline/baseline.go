package baseline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/meter"
	"github.com/go-vram/vram/internal/trace"
)

// Way is how memory is had without an allocator.
type Way string

// The ways.
const (
	Plain  Way = "plain"   // cuMemAlloc and cuMemFree for each request
	BySize Way = "by size" // a pool with a list of free memory for each exact size
)

// Ways returns both, in the order of tables.
func Ways() []Way { return []Way{Plain, BySize} }

// Result has the figures of one way.
type Result struct {
	Way               Way     `json:"way"`
	PeakReservedBytes int64   `json:"peak_reserved_bytes"` // held from the driver, in the steps of cuMemAlloc
	ReservedOverLive  float64 `json:"reserved_over_live"`
	SizeCount         int     `json:"sizes"` // lists of the pool
	Rounds            []Round `json:"rounds"`
}

// Round is one pass over the trace.
type Round struct {
	Hits        uint64        `json:"hits"`   // allocations from a list
	Misses      uint64        `json:"misses"` // allocations from the driver, also failed ones
	FailedCount int           `json:"failed"` // of the misses: there was no memory
	DriverCalls uint64        `json:"driver_calls"`
	Driver      time.Duration `json:"driver_ns"` // time in them, modelled where the driver is
	// Fragmentation is the share of the free memory outside the longest free range, at the end.
	Fragmentation float64 `json:"fragmentation"`
}

// HitRate is the share of the allocations that a list served.
func (r *Round) HitRate() float64 {
	if r.Hits+r.Misses == 0 {
		return 0
	}
	return float64(r.Hits) / float64(r.Hits+r.Misses)
}

// block is memory from cuMemAlloc; the zero block is none.
type block struct {
	ptr   cudadrv.Ptr
	bytes int64 // requested
}

// player plays a trace in one way.
type player struct {
	device *meter.Device
	way    Way
	result Result
	round  Round

	live     []block           // by the trace's number
	free     map[int64][]block // by size; BySize
	reserved int64
}

// Options are the device, and how often the trace is played.
type Options struct {
	Driver  cudadrv.Driver
	Ordinal int // of the device
	Rounds  int
}

// Run plays a trace. Errors: the context's, and the driver's, except that there is no memory.
func Run(ctx context.Context, tr *trace.Trace, way Way, o Options) (Result, error) {
	if way != Plain && way != BySize {
		return Result{}, fmt.Errorf("baseline: there is no way %q", way)
	}
	device, err := o.Driver.Open(o.Ordinal)
	if err != nil {
		return Result{}, fmt.Errorf("baseline: %w", err)
	}
	p := &player{device: meter.New(device), way: way, live: make([]block, tr.Info.AllocCount), free: map[int64][]block{}}
	p.result.Way = way
	err = p.play(ctx, tr, o.Rounds)
	if err = errors.Join(err, p.end(), p.device.Close()); err != nil {
		return Result{}, fmt.Errorf("baseline: %w", err)
	}
	if tr.Info.PeakLiveBytes > 0 {
		p.result.ReservedOverLive = float64(p.result.PeakReservedBytes) / float64(tr.Info.PeakLiveBytes)
	}
	return p.result, nil
}

func (p *player) play(ctx context.Context, tr *trace.Trace, rounds int) error {
	left := tr.Leftovers()
	for range rounds {
		p.round = Round{}
		calls, spent := p.device.Calls(), p.device.Time()
		for i := range tr.Events {
			if err := p.event(&tr.Events[i]); err != nil {
				return err
			}
			if i%4096 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
		}
		for _, id := range left {
			if err := p.release(id); err != nil {
				return err
			}
		}
		p.round.DriverCalls, p.round.Driver = p.device.Calls()-calls, p.device.Time()-spent
		p.round.Fragmentation = p.fragmentation()
		p.result.Rounds = append(p.result.Rounds, p.round)
	}
	p.result.SizeCount = len(p.free)
	return nil
}

func (p *player) event(e *trace.Event) error {
	if e.Op == trace.Free {
		return p.release(e.ID)
	}
	if list := p.free[e.Bytes]; len(list) > 0 {
		p.live[e.ID], p.free[e.Bytes] = list[len(list)-1], list[:len(list)-1]
		p.round.Hits++
		return nil
	}
	p.round.Misses++
	ptr, err := p.device.MemAlloc(e.Bytes)
	if errors.Is(err, cudadrv.OutOfMemory) {
		p.round.FailedCount++
		return nil
	}
	if err != nil {
		return err
	}
	p.live[e.ID] = block{ptr, e.Bytes}
	p.reserved += p.held(e.Bytes)
	p.result.PeakReservedBytes = max(p.result.PeakReservedBytes, p.reserved)
	return nil
}

// release frees a buffer of the trace, unless its allocation has failed.
func (p *player) release(id uint32) error {
	b := p.live[id]
	p.live[id] = block{}
	switch {
	case b.ptr == 0:
		return nil
	case p.way == BySize:
		p.free[b.bytes] = append(p.free[b.bytes], b)
		return nil
	}
	return p.giveBack(b)
}

func (p *player) giveBack(b block) error {
	if err := p.device.MemFree(b.ptr); err != nil {
		return err
	}
	p.reserved -= p.held(b.bytes)
	return nil
}

// stepBytes is the step of cuMemAlloc below a page, as measured on an H200; above, it takes whole pages.
const stepBytes = 512

// held returns how much memory an allocation takes.
func (p *player) held(bytes int64) int64 {
	step := int64(stepBytes)
	if page := p.device.Info().GranularityBytes; bytes > page && page > 0 {
		step = page
	}
	return (bytes + step - 1) / step * step
}

// fragmentation returns the share of the free memory outside the longest block: blocks of the driver never merge.
func (p *player) fragmentation() float64 {
	var sum, longest int64
	for bytes, list := range p.free {
		if len(list) > 0 {
			sum += int64(len(list)) * bytes
			longest = max(longest, bytes)
		}
	}
	if sum == 0 {
		return 0
	}
	return 1 - float64(longest)/float64(sum)
}

// end gives all memory back, also after an error of a call: it frees as much as the driver allows.
func (p *player) end() error {
	var all []error
	for id := range p.live {
		if b := p.live[id]; b.ptr != 0 {
			all = append(all, p.giveBack(b))
		}
	}
	for _, list := range p.free {
		for _, b := range list {
			all = append(all, p.giveBack(b))
		}
	}
	return errors.Join(all...)
}
