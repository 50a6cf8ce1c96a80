package cuda

import (
	"errors"
	"slices"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/streams"
)

// Launch submits a kernel. It does not wait. On buffers of the context's own stream it makes one driver call and allocates
// nothing; each other stream costs an event more. In a capture the launch becomes part of the graph.
//
// A buffer of another device may be an argument if vram.Device.EnablePeerAccess has given this one access, but not in a
// capture, and not a buffer of a graph. As with Context.CopyPeer, the launch waits for the work of the buffer's stream so far,
// and later work of that stream waits for the launch, so a free does. That costs two events for each stream of another device.
//
// Errors: *ArgumentError, with which nothing was submitted; *LaunchError; ErrNotOpen, ErrUnloaded, ErrForeign for a function of
// another device, vram.ErrClosed; the driver's, with buffers of another device. With an *OrderError the launch was submitted.
// The error is, or wraps, a *vram.CaptureError, with which nothing was submitted, while a stream is being captured whose
// buffers or work the launch has to wait for, and as a capture of the context's own stream begins or ends.
func (c *Context) Launch(f *Function, g Geometry, args ...Arg) error {
	if err := c.runs(f); err != nil {
		return err
	}
	if err := f.accepts(0, len(f.params), args); err != nil {
		return err
	}
	p := c.borrow()
	done, err := c.launchQuickly(f, g, p, args, false)
	if !done && err == nil {
		err = c.launchSlowly(f, g, p, args, false)
	}
	c.giveBack(p)
	return err
}

// runs returns the error of a function that the context cannot launch.
func (c *Context) runs(f *Function) error {
	if !c.opened() {
		return ErrNotOpen
	}
	if f == nil {
		return notOpen("function")
	}
	if err := f.usable(); err != nil {
		return err
	}
	if f.module.on != c.submission && !c.work.SameDevice(f.module.on.work) {
		return ErrForeign
	}
	return nil
}

// launchQuickly places the arguments, and submits the kernel if no argument needs an order and nothing else is to be done. done
// is false if the launch takes the slow way. Packed parameters are in place, and their arguments are the buffers that the caller
// declares.
func (c *submission) launchQuickly(f *Function, g Geometry, p *params, args []Arg, packed bool) (done bool, err error) {
	quick := c.special.Load() == 0 && c.work.EnterQuick() == nil // else the slow way says why
	if quick {
		defer c.work.LeaveQuick()
	}
	var plain bool
	if packed {
		plain, err = c.declared(f.name, args)
	} else {
		plain, err = c.placeAll(f, p, args)
	}
	if err != nil || !plain || !quick {
		return false, err
	}
	if err := c.kernels.LaunchKernel(f.handle, g, p.bytes[:p.size], c.handle); err != nil {
		return true, &LaunchError{f.name, g, c.failure(err)}
	}
	return true, nil
}

// launch submits a kernel whose arguments are in place: for a capture, or for nil outside of any.
func (c *submission) launch(f *Function, g Geometry, p *params, held *capture, accesses []cudadrv.Access) error {
	if err := c.enter(held); err != nil {
		return err
	}
	defer c.work.Leave()
	var err error
	if accesses != nil {
		err = c.checked.LaunchKernelTouching(f.handle, g, p.bytes[:p.size], c.handle, accesses)
	} else {
		err = c.kernels.LaunchKernel(f.handle, g, p.bytes[:p.size], c.handle)
	}
	if err != nil {
		return &LaunchError{f.name, g, c.failure(err)}
	}
	return nil
}

// launchSlowly submits a launch that touches buffers of other streams, is part of a capture, or is profiled, checked or recorded.
// The arguments of packed parameters are the buffers that the caller declares.
func (c *submission) launchSlowly(f *Function, g Geometry, p *params, args []Arg, packed bool) error {
	if c.special.Load() == 0 {
		if done, err := c.launchInOrder(f, g, p, args); done {
			return err
		}
	}
	return c.recorded(f.name, args, c.capture.Load(), func() error {
		return c.ordered(f.name, g, args, func(held *capture, accesses []cudadrv.Access) error {
			if held == nil {
				return c.launch(f, g, p, nil, accesses)
			}
			return held.launch(newNode(f, g, p, args, packed), func() error { return c.launch(f, g, p, held, accesses) })
		})
	})
}

// launchInOrder is ordered for a launch that is neither captured, profiled, checked nor recorded, as most on buffers of several
// streams are: it calls no function values. done is false if a buffer is another device's; then nothing was submitted.
func (c *submission) launchInOrder(f *Function, g Geometry, p *params, args []Arg) (done bool, err error) {
	crossing := c.work.Crossing()
	defer crossing.Leave()
	for i := range args {
		a := &args[i]
		if a.mode == byValue {
			continue
		}
		err := crossing.Touch(a.buffer, a.writes(), i)
		if errors.Is(err, ErrForeign) {
			return false, nil
		}
		if err != nil {
			return true, &ArgumentError{Kernel: f.name, Index: i, Err: ofBytes(err, a.buffer)}
		}
	}
	if i, err := crossing.Begin(); err != nil {
		return true, &ArgumentError{Kernel: f.name, Index: i, Err: ofBytes(err, args[i].buffer)}
	}
	if err := c.launch(f, g, p, nil, nil); err != nil {
		return true, err
	}
	crossing.After()
	return true, nil
}

// ordered submits work that waits for other work on its buffers, and announces it. submit gets nil accesses if there is no
// checker. In a capture the graph gets the buffers.
func (c *submission) ordered(name string, g Geometry, args []Arg, submit func(*capture, []cudadrv.Access) error) error {
	var accesses []cudadrv.Access
	if c.checked != nil {
		accesses = accessesOf(args)
	}
	held := c.capture.Load()
	crossing := c.work.Crossing()
	defer crossing.Leave()
	var owners []streams.Submitter // of buffers of other devices
	for i := range args {
		if args[i].mode == byValue {
			continue
		}
		var err error
		if held != nil {
			err = held.touch(c, args[i].buffer, args[i].writes())
		} else if err = crossing.Touch(args[i].buffer, args[i].writes(), i); errors.Is(err, ErrForeign) {
			owners, err = c.touchForeign(&crossing, owners, &args[i], i)
		}
		if err != nil {
			return &ArgumentError{Kernel: name, Index: i, Err: ofBytes(err, args[i].buffer)}
		}
	}
	if i, err := crossing.Begin(); err != nil {
		return &ArgumentError{Kernel: name, Index: i, Err: ofBytes(err, args[i].buffer)}
	}
	if held != nil {
		return submit(held, accesses)
	}
	work := func() error { return submit(nil, accesses) }
	if profile := c.profile.Load(); profile != nil {
		work = func() error { return profile.launch(name, g, func() error { return submit(nil, accesses) }) }
	}
	err := c.between(owners, work)
	if err == nil || submitted(err) {
		crossing.After()
	}
	return err
}

// reachable returns the error of an argument whose buffer is refused as one of another device: nil if kernels reach that
// memory.
func (c *submission) reachable(a *Arg, err error) error {
	if !errors.Is(err, ErrForeign) {
		return err
	}
	if _, err := c.work.Reach(a.buffer); err != nil {
		return err
	}
	return within(a.buffer, a.offset, a.bytes)
}

// touchForeign touches a buffer of another device by its stream, and adds that.
func (c *submission) touchForeign(crossing *streams.Crossing, owners []streams.Submitter, a *Arg, index int) ([]streams.Submitter, error) {
	owner, err := c.work.Reach(a.buffer)
	if err != nil {
		return nil, err
	}
	if err := crossing.TouchFor(owner, a.buffer, a.writes(), index); err != nil {
		return nil, err
	}
	if slices.Contains(owners, owner) {
		return owners, nil
	}
	return append(owners, owner), nil
}

// between submits work that waits for the work of streams of other devices so far, and that their later work waits for.
func (c *submission) between(owners []streams.Submitter, submit func() error) error {
	if len(owners) == 0 {
		return submit()
	}
	var late error // of another stream's order; this one must wait anyway
	err := c.work.Between(owners[0], func() error {
		err := c.between(owners[1:], submit)
		if submitted(err) {
			late, err = err, nil
		}
		return err
	})
	if late != nil {
		return errors.Join(late, err)
	}
	return err
}

// submitted reports whether err comes from ordering with another device after the work was submitted.
func submitted(err error) bool {
	_, late := errors.AsType[*OrderError](err)
	return late
}

// accessesOf returns the memory that a kernel may access through its arguments.
func accessesOf(args []Arg) []cudadrv.Access {
	all := []cudadrv.Access{}
	for i := range args {
		all = append(all, args[i].accesses()...)
	}
	return all
}

// accesses returns the memory that a kernel may access through the argument.
func (a *Arg) accesses() []cudadrv.Access {
	at := cudadrv.Access{Ptr: a.buffer.Ptr() + cudadrv.Ptr(a.offset), Bytes: a.bytes} //nolint:gosec // within the buffer
	written := at
	written.Write = true
	switch a.mode {
	case reads:
		return []cudadrv.Access{at}
	case writes:
		return []cudadrv.Access{written}
	case readsAndWrites:
		return []cudadrv.Access{at, written}
	case byValue:
	}
	return nil
}
