package model

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cudadrv"
)

// mark is a point of a stage's stream. A peer has its own stream wait for it.
type mark struct {
	reached cudadrv.Event
	of      *stage
}

// drop destroys the event: waits that were submitted before stay as they are.
func (m mark) drop() error { return m.of.driver.EventDestroy(m.reached) }

// marksAhead is the number of marks that a peer has not received yet: it may be one meeting later.
const marksAhead = 2

// others returns the peers in the order of the copies' numbers, without the stage itself.
func (st *stage) others() []*stage {
	return slices.DeleteFunc(slices.Clone(st.peers), func(x *stage) bool { return x == st })
}

// meet has the stream wait, on the device, for all work that the peers' streams have until they meet. The goroutine waits until all
// peers have submitted theirs.
func (st *stage) meet(ctx context.Context) error {
	if err := st.announce(ctx); err != nil {
		return err
	}
	return st.await(ctx)
}

// announce sends a mark to each peer.
func (st *stage) announce(ctx context.Context) error {
	for _, peer := range st.others() {
		m := mark{of: st}
		err := st.context().Submit(func(d cudadrv.Device, on cudadrv.Stream) (err error) {
			if m.reached, err = d.EventCreate(); err != nil {
				return err
			}
			if err = d.EventRecord(m.reached, on); err != nil {
				err = errors.Join(err, d.EventDestroy(m.reached))
			}
			return err
		})
		if err != nil {
			return err
		}
		if err := st.marks[peer.copy].Send(ctx, m); err != nil {
			return errors.Join(err, m.drop())
		}
	}
	return nil
}

// await has the stream wait for a mark of each peer.
func (st *stage) await(ctx context.Context) error {
	for _, peer := range st.others() {
		road := peer.marks[st.copy]
		if road.Len() == 0 { // the neighbors may wait for memory of parcels that this stage has received
			if err := st.work.drain(); err != nil {
				return err
			}
		}
		start := time.Now()
		m, err := road.Receive(ctx)
		st.work.waited += time.Since(start)
		if err != nil {
			return err
		}
		err = st.context().Submit(func(d cudadrv.Device, on cudadrv.Stream) error { return d.StreamWaitEvent(on, m.reached) })
		if err := errors.Join(err, m.drop()); err != nil {
			return err
		}
	}
	return nil
}

// pull copies tensors of a peer, which its work before the last meeting wrote. The peer writes them again after the next one.
func (st *stage) pull(peer *stage, into, from []*tensor.Tensor) error {
	to, err := ranges(into...)
	if err != nil {
		return err
	}
	source, err := ranges(from...)
	if err != nil {
		return err
	}
	return st.context().Submit(func(d cudadrv.Device, on cudadrv.Stream) error {
		for i, r := range to {
			if err := st.copyFrom(peer, d, on, r, source[i].Ptr()); err != nil {
				return err
			}
		}
		return nil
	})
}

// reduce adds up the gradients of all copies, in the order of the copies' numbers: each copy the gradients of the units whose state of
// training it has. The first copy gets the losses of the others.
func (st *stage) reduce(ctx context.Context) error {
	if st.copies == 1 {
		return nil
	}
	first, end := st.owned(st.copy)
	if first < end {
		if err := st.orderSum(ctx, first); err != nil {
			return err
		}
	}
	if err := st.meet(ctx); err != nil {
		return err
	}
	if st.isLast() && st.copy == 0 {
		for _, peer := range st.others() {
			part, err := st.losses.Narrow(0, peer.copy*st.share(), st.share())
			if err != nil {
				return err
			}
			if err := st.pull(peer, []*tensor.Tensor{part}, []*tensor.Tensor{peer.losses}); err != nil {
				return err
			}
		}
	}
	for unit := first; unit < end; unit++ {
		memory, err := st.sums.take(ctx, &st.work)
		if err != nil {
			return err
		}
		err = st.work.run(func() error { return st.sum(unit, memory) })
		if err := errors.Join(err, memory.Free()); err != nil {
			return err
		}
		if unit+1 < end {
			if err := st.orderSum(ctx, unit+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// sumBytes returns the sizes of the gradients that arrive while a unit's are added up: of one copy at a time, and of the sum where it
// cannot be in the stage's own.
func (st *stage) sumBytes(unit int) ([]int64, error) {
	all, err := ranges(st.gradientsOf(unit)...)
	if err != nil {
		return nil, err
	}
	if st.copy > 0 && st.copies > 2 {
		all = slices.Repeat(all, 2)
	}
	return bytesOf(all), nil
}

// mostSumBytes is sumBytes for the unit that takes the most, of a copy that has several.
func (st *stage) mostSumBytes() (most []int64, err error) {
	first, end := st.owned(st.copy)
	for unit := first; unit < end && st.copies > 1; unit++ {
		bytes, err := st.sumBytes(unit)
		if err != nil {
			return nil, err
		}
		if bytesIn(bytes) > bytesIn(most) {
			most = bytes
		}
	}
	return most, nil
}

// bytesIn returns the sum of sizes.
func bytesIn(all []int64) (sum int64) {
	for _, n := range all {
		sum += n
	}
	return sum
}

// orderSum orders the memory of a sum.
func (st *stage) orderSum(ctx context.Context, unit int) error {
	bytes, err := st.sumBytes(unit)
	if err == nil {
		st.sums.order(ctx, st.stream(), vram.BatchRequest{Bytes: bytes, Priority: 2 * st.of, Tag: "copies" + ofGradients})
	}
	return err
}

// sum adds up the gradients of a unit.
func (st *stage) sum(unit int, memory vram.Batch) error {
	own := st.gradientsOf(unit)
	arrived := make([]*tensor.Tensor, len(memory.Buffers()))
	for i, b := range memory.Buffers() {
		var err error
		if arrived[i], err = tensor.Over(st.context(), b, tensor.Float32, own[i%len(own)].Layout()); err != nil {
			return err
		}
	}
	total, next := own, arrived[len(arrived)-len(own):]
	if st.copy > 0 {
		total = arrived[:len(own)]
		if err := st.pull(st.peers[0], total, st.peers[0].gradientsOf(unit)); err != nil {
			return err
		}
	}
	for _, peer := range st.peers[1:] {
		added, into := own, total
		if peer != st {
			added = next
			if err := st.pull(peer, added, peer.gradientsOf(unit)); err != nil {
				return err
			}
		}
		if peer.copy == st.copies-1 {
			into = own
		}
		for i := range own {
			if err := st.ops.AddInto(st.scope, into[i], total[i], added[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// gatherNorms gets the norms of the units whose gradients other copies have added up. After it they have read the stage's gradients.
func (st *stage) gatherNorms(ctx context.Context) error {
	if st.copies == 1 {
		return nil
	}
	if err := st.meet(ctx); err != nil || st.training.Clip <= 0 {
		return err
	}
	for _, peer := range st.others() {
		first, end := st.owned(peer.copy)
		if first == end {
			continue
		}
		into, err := st.units.Narrow(0, first, end-first)
		if err != nil {
			return err
		}
		from, err := peer.units.Narrow(0, first, end-first)
		if err != nil {
			return err
		}
		if err := st.pull(peer, []*tensor.Tensor{into}, []*tensor.Tensor{from}); err != nil {
			return err
		}
	}
	return nil
}

// gatherValues gets the new values of the parameters whose state other copies have.
func (st *stage) gatherValues(ctx context.Context) error {
	if st.copies == 1 {
		return nil
	}
	if err := st.meet(ctx); err != nil {
		return err
	}
	return st.pullValues()
}

// pullValues copies the values of the parameters whose state other copies have.
func (st *stage) pullValues() error {
	for _, peer := range st.others() {
		first, end := st.owned(peer.copy)
		for unit := first; unit < end; unit++ {
			var into, from []*tensor.Tensor
			theirs := peer.unit(unit)
			for i, p := range st.unit(unit) {
				into, from = append(into, p.Value), append(from, theirs[i].Value)
			}
			if err := st.pull(peer, into, from); err != nil {
				return err
			}
		}
	}
	return nil
}

// releaseMarks gives back what a failed step has left. All stages have stopped.
func (st *stage) releaseMarks() (err error) {
	for _, road := range st.marks {
		for road != nil {
			m, ok := road.TryReceive()
			if !ok {
				break
			}
			err = errors.Join(err, m.drop())
		}
	}
	return errors.Join(err, st.sums.release())
}
