package model

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cudadrv"
)

// divide refuses places and micro-batches that copies cannot divide.
func divide(places []Place, t Training, copies int) error {
	switch {
	case copies < 1:
		return &ConfigError{fmt.Sprintf("want at least 1 copy, not %d", copies)}
	case copies == 1:
		return nil
	case len(places) < copies || len(places)%copies != 0:
		return &ConfigError{fmt.Sprintf("%d copies want as many devices each, and there are %d", copies, len(places))}
	case t.Parts%copies != 0:
		return &ConfigError{fmt.Sprintf("%d copies cannot divide %d micro-batches", copies, t.Parts)}
	}
	of := map[int]int{} // copies by device
	for i, at := range places {
		info, number := at.Context.Info(), i*copies/len(places)
		if first, ok := of[info.Ordinal]; ok && first != number {
			return &ConfigError{fmt.Sprintf("device %d is in two copies", info.Ordinal)}
		}
		if of[info.Ordinal] = number; !info.Capabilities.Has(cudadrv.PeerAccess) {
			return &ConfigError{fmt.Sprintf("device %d cannot copy from others, as copies of the model do", info.Ordinal)}
		}
	}
	return nil
}

// failed returns an error of a stage.
func (p position) failed(err error) error {
	if p.copies > 1 {
		return fmt.Errorf("copy %d: stage %d: %w", p.copy, p.number, err)
	}
	return fmt.Errorf("stage %d: %w", p.number, err)
}

// copies returns the stages of each copy.
func (p *Pipeline) copies() [][]*stage { return slices.Collect(slices.Chunk(p.stages, p.stages[0].of)) }

// connect makes the links, and the peers.
func (p *Pipeline) connect() {
	for _, stages := range p.copies() {
		p.connectCopy(stages)
	}
	for number := range p.stages[0].of {
		var peers []*stage
		for _, stages := range p.copies() {
			peers = append(peers, stages[number])
		}
		accompany(peers)
	}
}

// connectCopy makes the links of a copy.
func (p *Pipeline) connectCopy(stages []*stage) {
	link := func(from, to *stage) *link {
		l := newLink(from, to)
		p.links = append(p.links, l)
		return l
	}
	for i, to := range stages[1:] {
		from := stages[i]
		to.activations, from.gradients = link(from, to), link(to, from)
		from.onward, to.back = to.activations, from.gradients
	}
	if first, last := stages[0], stages[len(stages)-1]; first != last {
		first.tied, first.table = link(last, first), link(first, last)
		last.tied, last.table = first.tied, first.table
	}
}

// accompany makes the stages of one number in all copies peers of each other.
func accompany(peers []*stage) {
	for _, st := range peers {
		st.peers, st.marks = peers, make([]*vram.Handover[mark], len(peers))
		for to, peer := range peers {
			if peer != st {
				st.marks[to] = vram.NewHandover[mark](st.stream(), peer.stream(), marksAhead)
			}
		}
	}
}

// parcelsAhead is the number of parcels of a link for which memory is left: one on its way, and the next one.
const parcelsAhead = 2

// leave allocates the memory of parcels, and of sums.
func (p *Pipeline) leave(ctx context.Context) (all []vram.Batch, err error) {
	for _, l := range p.links {
		var like []*tensor.Tensor
		switch l {
		case l.from.onward:
			like = l.from.slots[0].out[:]
		case l.from.back:
			like = []*tensor.Tensor{l.from.slots[0].dx}
		case l.from.table:
			like = []*tensor.Tensor{l.from.Model.table.Value}
		case l.from.tied:
			like = []*tensor.Tensor{l.from.head.table.gradient, l.from.head.table.gradient} // and where it arrives
		}
		r, err := ranges(like...)
		if err != nil {
			return all, err
		}
		bytes := bytesOf(r)
		if l != l.from.tied && l != l.from.table {
			bytes = slices.Repeat(bytes, parcelsAhead)
		}
		b, err := l.from.stream().AllocBatchFor(ctx, vram.BatchRequest{Bytes: bytes})
		if err != nil {
			return all, err
		}
		all = append(all, b)
	}
	for _, st := range p.stages {
		bytes, err := st.mostSumBytes()
		if err != nil {
			return all, err
		}
		if len(bytes) == 0 {
			continue
		}
		b, err := st.stream().AllocBatchFor(ctx, vram.BatchRequest{Bytes: bytes})
		if err != nil {
			return all, err
		}
		all = append(all, b)
	}
	return all, nil
}
