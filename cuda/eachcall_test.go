package cuda_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/eachcall"
)

// left counts the objects that a test has left on its devices, and its goroutines. It returns free memory to the driver first.
func left(machine *sim.Driver, devices ...*vram.Device) map[string]int {
	all := map[string]int{"goroutine": runtime.NumGoroutine()}
	for ordinal := range devices {
		machine.Device(ordinal).Advance(time.Hour) // the work ends
	}
	for ordinal, dev := range devices {
		_, _ = dev.Trim(context.Background(), 0) // the remaining objects are counted
		for kind, count := range machine.Device(ordinal).Objects() {
			all[kind] += count
		}
		all["live byte"] += int(dev.Stats().LiveBytes)
	}
	return all
}

// none returns an operation that leaves nothing to undo.
func none(f func() error) eachcall.Operation {
	return func() (func() error, error) { return nil, f() }
}

// Whichever driver call fails, or panics, an operation leaves no buffer, no driver object and no goroutine.
func TestAFailedCallLeavesNothing(t *testing.T) {
	r, c := newFailing(t, sim.Config{Bytes: true})
	d := r.context()
	x, y := r.alloc(c, mib/4), r.alloc(d, mib/4)
	host := make([]byte, mib/4)
	e, err := d.Record()
	require.NoError(t, err)
	pool, err := c.NewPool()
	require.NoError(t, err)
	one := cuda.Cover(1, 1)
	work := func() (err error) {
		w, err := c.Workspace(mib / 4)
		if err != nil {
			return err
		}
		b, err := c.AllocZeroed(mib / 4)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.Free()) }()
		err = errors.Join(c.Launch(r.touch, one, cuda.InOut(w)), c.Launch(r.touch, one, cuda.InOut(y)), c.CopyInAsync(cuda.Whole(b), host))
		err = errors.Join(err, d.Wait(c))
		if err == nil {
			err = errors.Join(d.Launch(r.touch, one, cuda.InOut(b)), c.Wait(d))
		}
		return err
	}
	capture := func(with ...cuda.Option) eachcall.Operation {
		return func() (func() error, error) {
			g, err := c.Capture(work, with...)
			if err != nil {
				return nil, err
			}
			return g.Close, nil
		}
	}
	graph, err := c.Capture(work)
	require.NoError(t, err)
	for _, op := range []struct {
		name string
		do   eachcall.Operation
	}{
		{"Alloc", func() (func() error, error) {
			b, err := c.Alloc(4 * mib)
			return b.Free, err
		}},
		{"AllocBatch, FreeBatch, Freeze and Thaw", func() (_ func() error, err error) {
			all := make([]cuda.Buffer, 3)
			if err := c.AllocBatch(all, []int64{4 * mib, mib, 8 * mib}); err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, c.FreeBatch(all)) }()
			return nil, errors.Join(c.Freeze(all[0]), d.Launch(r.touch, one, cuda.In(all[0])), c.Thaw(all[0]), c.Fill8(cuda.Whole(all[0]), 1))
		}},
		{"AllocBatch in a capture", func() (func() error, error) {
			g, err := c.Capture(func() (err error) {
				all := make([]cuda.Buffer, 2)
				if err := c.AllocBatch(all, []int64{4 * mib, mib}); err != nil {
					return err
				}
				defer func() { err = errors.Join(err, c.FreeBatch(all)) }()
				return c.Fill8(cuda.Whole(all[0]), 1)
			})
			if err != nil {
				return nil, err
			}
			return g.Close, nil
		}},
		{"AllocZeroed", func() (func() error, error) {
			b, err := c.AllocZeroed(4 * mib)
			return b.Free, err
		}},
		{"Together", func() (func() error, error) {
			var b cuda.Buffer
			err := cuda.Together(c, func(bool) (err error) { b, err = c.AllocZeroed(4 * mib); return err })
			return b.Free, err
		}},
		{"AllocFor", func() (func() error, error) {
			b, err := c.AllocFor(context.Background(), vram.Request{Bytes: 4 * mib, Tag: "x", Zero: true})
			return b.Free, err
		}},
		{"AllocFor in a capture", func() (func() error, error) {
			g, err := c.Capture(func() error {
				b, err := c.AllocFor(context.Background(), vram.Request{Bytes: mib, Tag: "x", Zero: true})
				if err != nil {
					return err
				}
				return b.Free()
			})
			if err != nil {
				return nil, err
			}
			return g.Close, nil
		}},
		{"NewStream", func() (func() error, error) {
			other, err := c.NewStream()
			if err != nil {
				return nil, err
			}
			return other.Close, nil
		}},
		{"Workspace", func() (func() error, error) {
			on, err := cuda.NewContext(c.Stream())
			if err != nil {
				return nil, err
			}
			_, err = on.Workspace(mib)
			if err == nil {
				_, err = on.Workspace(8 * mib)
			}
			return nil, errors.Join(err, on.Close())
		}},
		{"Launch", none(func() error { return c.Launch(r.touch, one, cuda.InOut(x)) })},
		{"Launch on another stream's buffer", none(func() error { return c.Launch(r.touch, one, cuda.InOut(y)) })},
		{"LaunchPacked", none(func() error {
			return c.LaunchPacked(r.touch, one, make([]byte, 8), cuda.InOut(y), cuda.In(x))
		})},
		{"LaunchWith", none(func() error {
			return c.LaunchWith("library", func(device cudadrv.Device, on cudadrv.Stream) error {
				return device.MemsetD8Async(y.Ptr(), 1, mib, on)
			}, cuda.InOut(y))
		})},
		{"Submit", none(func() error {
			return c.Submit(func(device cudadrv.Device, on cudadrv.Stream) error {
				return device.MemsetD8Async(y.Ptr(), 1, mib, on)
			}, cuda.Whole(y))
		})},
		{"Copy", none(func() error { return c.Copy(cuda.Whole(x), cuda.Whole(y)) })},
		{"Copy2D", none(func() error {
			return c.Copy2D(cuda.Rows{Buffer: x, Pitch: 64}, cuda.Rows{Buffer: y, Pitch: 64}, 32, 8)
		})},
		{"Fill8 and Fill16", none(func() error {
			return errors.Join(c.Fill8(cuda.Whole(y), 1), c.Fill16(cuda.Whole(y), 1))
		})},
		{"copies of slices", none(func() error {
			return errors.Join(cuda.CopyIn(c, y, host), cuda.CopyOut(c, host, y), c.CopyOutAsync(host, cuda.Whole(y)))
		})},
		{"Link", none(func() error {
			_, err := c.Link([]byte(ptx), []byte(strings.ReplaceAll(ptx, ".entry ", ".entry other_")))
			return err
		})},
		{"questions of a function", none(func() error {
			_, a := r.touch.Attribute(cudadrv.MaxThreadsPerBlock)
			_, b := r.touch.ActiveBlocks(128, 0)
			_, _, c := r.touch.BestBlock(0)
			return errors.Join(a, b, c, r.touch.SetMaxSharedBytes(1024))
		})},
		{"Record, Done and Since", none(func() error {
			first, err := c.Record()
			if err != nil {
				return err
			}
			defer func() { _ = first.Close() }()
			second, err := c.Record()
			if err != nil {
				return err
			}
			defer func() { _ = second.Close() }()
			if err := c.Synchronize(context.Background()); err != nil {
				return err
			}
			_, asked := second.Done()
			_, since := second.Since(first)
			return errors.Join(asked, since)
		})},
		{"HeldBytes", none(func() error {
			_, a := graph.HeldBytes(context.Background())
			_, b := pool.HeldBytes(context.Background())
			return errors.Join(a, b)
		})},
		{"RecordStream, Use and Transfer", none(func() (err error) {
			b, err := c.Alloc(mib)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, eachcall.Closes(r.faults, b.Free)) }()
			if err := errors.Join(b.RecordStream(d.Stream()), d.Stream().WaitStream(c.Stream())); err != nil {
				return err
			}
			use, err := b.Use(d.Stream())
			if err != nil {
				return err
			}
			if err := use.Done(); err != nil {
				return err
			}
			moved, err := b.Transfer(d.Stream())
			if err == nil {
				b = moved
			}
			return err
		})},
		{"Fill32", none(func() error { return c.Fill32(cuda.Whole(y), 1) })},
		{"CopyIn", none(func() error { return c.CopyInAt(y, 0, host) })},
		{"CopyOut", none(func() error { return c.CopyOutAt(host, y, 0) })},
		{"Wait", none(func() error { return c.Wait(d) })},
		{"WaitEvent", none(func() error { return c.WaitEvent(e) })},
		{"Synchronize", none(func() error { return c.Synchronize(context.Background()) })},
		{"Synchronize with a context", none(func() error {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			return c.Synchronize(ctx)
		})},
		{"Record", func() (func() error, error) {
			e, err := c.Record()
			return e.Close, err
		}},
		{"LoadModule", func() (func() error, error) {
			m, err := c.LoadModule([]byte(ptx))
			return m.Unload, err
		}},
		{"EncodeTensorMap", none(func() error {
			_, err := c.EncodeTensorMap(cudadrv.TensorMap{
				Ptr: x.Ptr(), Type: cudadrv.TensorFloat32, Rank: 1, Dims: [cudadrv.MaxTensorRank]int64{64}, Box: [cudadrv.MaxTensorRank]int32{64},
			})
			return err
		})},
		{"Function", none(func() error {
			m, err := c.LoadModule([]byte(ptx))
			if err == nil {
				defer func() { _ = eachcall.Closes(r.faults, m.Unload) }()
				_, err = m.Function("add")
			}
			return err
		})},
		{"Profile", none(func() error {
			p, err := c.StartProfile()
			if err != nil {
				return err
			}
			defer func() { _, _ = p.Stop() }()
			err = errors.Join(c.Launch(r.touch, one, cuda.InOut(x)), c.Launch(r.touch, one, cuda.InOut(y)))
			_, stopped := p.Stop()
			return errors.Join(err, stopped)
		})},
		{"NewPool", none(func() error {
			p, err := c.NewPool()
			if err == nil {
				err = eachcall.Closes(r.faults, p.Close)
			}
			return err
		})},
		{"Capture", capture()},
		{"Capture of a pool", capture(cuda.Shared(pool))},
		{"Capture that fails", none(func() error {
			mine := errors.New("mine")
			_, err := c.Capture(func() error { return errors.Join(work(), mine) })
			if errors.Is(err, mine) && !errors.Is(err, cudadrv.Unknown) {
				return nil
			}
			return err
		})},
		{"Launch of a graph", none(func() error { return errors.Join(graph.Launch(c), graph.Launch(d)) })},
		{"Upload", none(func() error { return graph.Upload(c) })},
		{"SetArgs", none(func() error { return graph.SetArgs(0, one, cuda.InOut(x)) })},
		{"SetArg", none(func() error { return graph.SetArg(0, 0, cuda.InOut(y)) })},
		{"life of a graph", none(func() (err error) {
			g, err := c.Capture(work)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, eachcall.Closes(r.faults, g.Close)) }()
			return errors.Join(g.SetArgs(0, one, cuda.InOut(x)), g.SetArg(1, 0, cuda.InOut(x)), g.Launch(c), g.Launch(d))
		})},
	} {
		tolerated := []string{"cuStreamIsCapturing"} // a stream that cannot be asked
		switch op.name {
		case "RecordStream, Use and Transfer": // Free waits for the use otherwise
			tolerated = append(tolerated, "cuEventRecord")
		case "SetArgs", "SetArg": // what the graph does not need any more is released later
			tolerated = append(tolerated, "cuEventRecord", "cuStreamWaitEvent", "cuEventQuery")
		}
		t.Run(op.name, func(t *testing.T) {
			b := &eachcall.Bench{
				Faults: r.faults, Tolerated: tolerated,
				Left: func() map[string]int { return left(r.machine, r.dev) },
				Prepare: func(function string) { // after an error the capture has ended, too
					if function == "cuStreamEndCapture" {
						_, _ = r.machine.Device(0).EndCapture(c.Stream().Handle())
					}
				},
			}
			b.Run(t, op.do)
		})
	}
	require.NoError(t, errors.Join(graph.Close(), pool.Close(), e.Close(), x.Free(), y.Free()))
}

// That holds of copies between two devices, too.
func TestAFailedCallBetweenDevicesLeavesNothing(t *testing.T) {
	s := newSeveral(t, sim.Config{Devices: 2}, vram.Config{})
	to, from := s.context(1), s.context(0)
	x, y := s.filled(from, mib, 1), s.filled(to, mib, 2)
	for name, op := range map[string]eachcall.Operation{
		"CopyPeer": none(func() error { return to.CopyPeer(cuda.Whole(y), from, cuda.Whole(x)) }),
		"TransferPeer": none(func() error {
			b, err := from.Alloc(mib)
			if err != nil {
				return err
			}
			defer func() {
				if b.Live() { // it was not handed over
					_ = b.Free()
				}
			}()
			there, err := to.TransferPeer(from, b)
			if err != nil {
				return err
			}
			return there.Free()
		}),
	} {
		t.Run(name, func(t *testing.T) {
			b := &eachcall.Bench{Faults: s.faults, Tolerated: []string{"cuStreamIsCapturing"}, Left: func() map[string]int { return left(s.machine, s.devices...) }}
			b.Run(t, op)
		})
	}
	s.free(x, y)
}

// Whichever driver call fails, or panics, the short forms leave no buffer, no driver object and no goroutine.
func TestAFailedCallOfAShortFormLeavesNothing(t *testing.T) {
	r, c := newFailing(t, sim.Config{Bytes: true})
	x := r.alloc(c, mib)
	values := make([]uint32, 1024)
	const text = ptx + ".visible .global .align 4 .u32 variable[4];\n"
	m, err := c.LoadModule([]byte(text))
	require.NoError(t, err)
	variable, err := m.Variable("variable")
	require.NoError(t, err)
	for _, op := range []struct {
		name string
		do   eachcall.Operation
	}{
		{"From", func() (func() error, error) {
			b, err := cuda.From(c, values)
			return b.Free, err
		}},
		{"Load", none(func() error {
			_, err := cuda.Load[uint32](c, cuda.Whole(x), 1024)
			return err
		})},
		{"Store", none(func() error { return cuda.Store(c, cuda.Whole(x), values) })},
		{"Variable", none(func() error {
			_, err := m.Variable("variable")
			return err
		})},
		{"Set", none(func() error { return cuda.Set(c, variable, values[:4]) })},
		{"Get", none(func() error {
			_, err := cuda.Get[uint32](c, variable, 4)
			return err
		})},
		{"Kernel", none(func() (err error) {
			on, err := cuda.NewContext(c.Stream())
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, eachcall.Closes(r.faults, on.Close)) }()
			_, err = on.Kernel(text, "touch")
			return err
		})},
		{"Queue", none(func() (err error) {
			q := c.NewQueue()
			defer func() { err = errors.Join(err, eachcall.Closes(r.faults, q.Close)) }()
			b := cuda.Push(q, values)
			q.Launch(r.touch, cuda.Cover(1), cuda.InOut(b))
			q.Fill8(cuda.Whole(q.Alloc(mib)), 1)
			cuda.Write(q, cuda.Whole(q.AllocZeroed(8192)), values)
			cuda.Read(q, values, cuda.Whole(b))
			q.Free(b)
			q.Synchronize(context.Background())
			return nil
		})},
	} {
		t.Run(op.name, func(t *testing.T) {
			b := &eachcall.Bench{Faults: r.faults, Tolerated: []string{"cuStreamIsCapturing"}, Left: func() map[string]int { return left(r.machine, r.dev) }}
			b.Run(t, op.do)
		})
	}
	require.NoError(t, errors.Join(m.Unload(), x.Free()))
}

// Whichever driver call of Open and of work fails, or panics, Close gives the driver's objects back.
func TestAFailedCallOfOpenLeavesNothing(t *testing.T) {
	machine := sim.New(sim.Config{Bytes: true, TimedKernels: true})
	faults := fault.Wrap(machine)
	b := &eachcall.Bench{Faults: faults, Tolerated: []string{"cuStreamIsCapturing"}, Left: func() map[string]int {
		return machine.Device(0).Objects()
	}}
	b.Run(t, func() (closes func() error, err error) {
		c, err := cuda.Open(vram.Config{Driver: faults, ReleaseAfter: -1})
		if err != nil {
			return nil, err
		}
		defer func() {
			if closes == nil { // also after a panic; the driver serves again
				faults.Clear()
				err = errors.Join(err, c.Close())
			}
		}()
		f, err := c.Kernel(ptx, "touch")
		if err != nil {
			return nil, err
		}
		x, err := cuda.From(c, []uint32{1})
		if err != nil {
			return nil, err
		}
		if err := errors.Join(c.Launch(f, cuda.Cover(1), cuda.InOut(x)), x.Free()); err != nil {
			return nil, err
		}
		return c.Close, nil
	})
}
