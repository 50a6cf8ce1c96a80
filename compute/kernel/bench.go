package kernel

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/kernel/tune"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/futures"
)

// bench has several sets of the operands of a measurement.
type bench struct {
	work    *work
	on      *cuda.Context
	sets    []*set
	want    [verified][][]byte // the reference's outputs, by set
	blocker cuda.Buffer        // filling it keeps the device busy until launches are submitted
	turn    int                // the next set
	repeats int                // launches of one time; 0: not known
}

const (
	// verified is how many sets are compared. Their values differ: see sample.
	verified = 2
	// maxSets bounds the copies: operands of 2 MiB fill 128 MiB.
	maxSets = 64
	// guardBytes follow each operand and must not change.
	guardBytes = 256

	// maxRepeats launches for one time make the clock's resolution of half a microsecond small.
	maxRepeats = 16
	// timedFor is how long those launches may last together.
	timedFor = 2 * time.Millisecond
	// blockerBytes take an H200 some 16 microseconds to fill, in which the host submits four launches or more.
	blockerBytes       = 64 << 20
	launchesPerBlocker = 4
)

// set is one copy of the operands.
type set struct {
	ranges [plan.MaxOperands]cuda.Range
	args   []cuda.Arg
}

// newBench allocates and fills the sets. Errors: ErrTuningMemory, errors of cuda.Context.Alloc and CopyIn.
func newBench(on *cuda.Context, w *work, with Tuning) (b *bench, err error) {
	var each int64
	for i := range w.count {
		if s := w.spanBytes(i); s > 0 {
			each += int64(w.lows[i]) + s + guardBytes //nolint:gosec // less than vectorBytes
		}
	}
	blocker := min(blockerBytes, with.RotateBytes)
	room := with.MemoryBytes - blocker
	if each > room/verified {
		return nil, ErrTuningMemory
	}
	count := min(max((with.RotateBytes+each-1)/each, verified), room/each, maxSets)
	b = &bench{work: w, on: on}
	filled := false
	defer func() {
		if !filled { // also after a panic of the driver
			err = errors.Join(err, b.close())
		}
	}()
	if b.blocker, err = on.Alloc(blocker); err != nil {
		return b, err
	}
	for range count {
		if err := b.add(); err != nil {
			return b, err
		}
	}
	filled = true
	return b, nil
}

// spanBytes returns the length of an operand from its lowest address.
func (w *work) spanBytes(i int) int64 {
	first, end := w.layouts[i].Bounds()
	return int64(end-first) * int64(w.program.Operands[i].Type.Size())
}

// add allocates one more set.
func (b *bench) add() error {
	w, number := b.work, len(b.sets)
	f := &set{}
	b.sets = append(b.sets, f)
	for i := range w.count {
		span, low := w.spanBytes(i), int64(w.lows[i]) //nolint:gosec // less than vectorBytes
		if span == 0 {
			continue
		}
		buffer, err := b.on.Alloc(low + span + guardBytes)
		if err != nil {
			return err
		}
		f.ranges[i] = cuda.Range{Buffer: buffer, Offset: low, Bytes: span}
		if w.program.Operands[i].Out {
			continue
		}
		if number < verified {
			err = b.fill(f.ranges[i], i, number)
		} else {
			err = b.on.Copy(f.ranges[i], b.sets[number%verified].ranges[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fill writes the values of a set, repeating their period.
func (b *bench) fill(to cuda.Range, operand, set int) error {
	period := sample(b.work.program.Operands[operand].Type, operand, set, to.Bytes)
	for at := int64(0); at < to.Bytes; at += int64(len(period)) {
		piece := period[:min(int64(len(period)), to.Bytes-at)]
		if err := b.on.CopyInAt(to.Buffer, to.Offset+at, piece); err != nil {
			return err
		}
	}
	return nil
}

// close frees the memory after the launches and waits for them, so that code can be unloaded.
func (b *bench) close() error {
	var all []error
	for _, f := range b.sets {
		for i := range b.work.count {
			if f.ranges[i].Buffer.Live() {
				all = append(all, f.ranges[i].Buffer.Free())
			}
		}
	}
	if b.blocker.Live() {
		all = append(all, b.blocker.Free())
	}
	all = append(all, b.on.Synchronize(context.Background()))
	return errors.Join(all...)
}

// launch submits a variant on a set.
func (b *bench) launch(c *candidate, set int) error {
	f := b.sets[set]
	f.args = c.ready.fill(f.args, &f.ranges)
	return c.ready.launch(b.on, f.args)
}

// verify launches a variant on the sets that are compared, and keeps the results as the reference, or compares them with it. An
// error with the state Verified is not the variant's.
func (b *bench) verify(ctx context.Context, c *candidate, reference bool) (tune.State, error) {
	p := b.work.program
	for set := range verified {
		f := b.sets[set]
		for i := p.Inputs; i < b.work.count; i++ {
			if f.ranges[i].Bytes > 0 {
				if err := b.on.Fill8(cuda.Whole(f.ranges[i].Buffer), untouched); err != nil {
					return tune.Verified, err
				}
			}
		}
		if err := b.launch(c, set); err != nil {
			return tune.Failed, err
		}
		if err := b.on.Synchronize(ctx); err != nil {
			return tune.Failed, err
		}
		for i := p.Inputs; i < b.work.count; i++ {
			got, err := b.read(f.ranges[i])
			if err != nil {
				return tune.Verified, err
			}
			if reference {
				b.want[set] = append(b.want[set], got)
				continue
			}
			o := operand{of: p.Operands[i].Type, number: i - p.Inputs, begin: int(f.ranges[i].Offset), end: int(f.ranges[i].Offset + f.ranges[i].Bytes)}
			if err := o.same(b.want[set][i-p.Inputs], got, p.Exact()); err != nil {
				return tune.Wrong, err
			}
		}
	}
	return tune.Verified, nil
}

// read copies an operand's whole buffer to the host.
func (b *bench) read(r cuda.Range) ([]byte, error) {
	if r.Bytes == 0 {
		return nil, nil
	}
	all := make([]byte, r.Offset+r.Bytes+guardBytes)
	return all, b.on.CopyOutAt(all, r.Buffer, 0)
}

// timed returns the time of one launch: the mean of several, each on another set.
func (b *bench) timed(ctx context.Context, c *candidate) (took time.Duration, err error) {
	if b.repeats == 0 {
		b.repeats = 1
		once, err := b.timed(ctx, c)
		if err != nil {
			return 0, err
		}
		b.repeats = int(min(max(timedFor/max(once, 1), 1), maxRepeats))
	}
	for range launchesPerBlocker/2 + b.repeats*len(c.ready.passes)/launchesPerBlocker {
		if err := b.on.Fill8(cuda.Whole(b.blocker), 0); err != nil {
			return 0, err
		}
	}
	start, err := b.on.Record()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, start.Close()) }()
	took, err = b.until(ctx, start, c)
	return took / time.Duration(b.repeats), err
}

// until launches a variant b.repeats times, waits, and returns the time since start.
func (b *bench) until(ctx context.Context, start *cuda.Event, c *candidate) (took time.Duration, err error) {
	for range b.repeats {
		if err := b.launch(c, b.turn%len(b.sets)); err != nil {
			return 0, err
		}
		b.turn++
	}
	end, err := b.on.Record()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, end.Close()) }()
	if err := end.Synchronize(ctx); err != nil {
		return 0, err
	}
	return end.Since(start)
}

// work is a kind of work of a kernel, with the layouts of one Run. It holds no tensors.
type work struct {
	program  *plan.Program
	name     fmt.Stringer
	key      tune.Key
	geometry plan.Geometry // with the schedule of the rule
	count    int
	layouts  [plan.MaxOperands]layout.Layout
	lows     [plan.MaxOperands]uint64 // addresses modulo vectorBytes

	compile func(plan.Variant) futures.Future[*variant]
	won     func([]tune.Row) // makes Run take the winner
	lost    func(retry bool) // ends a measurement without rows
}

// candidate is a variant in a trial.
type candidate struct {
	geometry plan.Geometry
	schedule plan.Schedule
	ready    ready // once it is compiled
}

// codeHash names the text of a variant in rows.
func codeHash(p *plan.Program, v plan.Variant) string {
	sum := sha256.Sum256([]byte(p.Code(v)))
	return hex.EncodeToString(sum[:6])
}
