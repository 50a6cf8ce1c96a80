package cuda

import "github.com/go-vram/vram/cudadrv"

// Launch submits a kernel. It does not wait. On buffers of the context's own stream it makes one driver call and allocates
// nothing; each other stream costs an event more. In a capture the launch becomes part of the graph. Errors: *ArgumentError,
// with which nothing was submitted; *LaunchError; ErrNotOpen, ErrUnloaded, ErrForeign for a function of another device, vram.ErrClosed.
func (c *Context) Launch(f *Function, g Geometry, args ...Arg) error {
	if !c.opened() {
		return ErrNotOpen
	}
	if err := f.usable(); err != nil {
		return err
	}
	if f.module.on != c.submission && !c.work.SameDevice(f.module.on.work) {
		return ErrForeign
	}
	p := freeParams.Get().(*params) //nolint:forcetypeassert // of this pool
	plain, err := c.place(f, p, args)
	switch {
	case err != nil:
	case plain && c.special.Load() == 0:
		err = c.launch(f, g, p, nil)
	default:
		err = c.launchSlowly(f, g, p, args)
	}
	freeParams.Put(p)
	return err
}

// launch submits a kernel whose arguments are in place.
func (c *submission) launch(f *Function, g Geometry, p *params, accesses []cudadrv.Access) error {
	if err := c.work.Begin(); err != nil {
		return err
	}
	var err error
	if accesses != nil {
		err = c.checked.LaunchKernelTouching(f.handle, g, p.bytes[:p.size], c.handle, accesses)
	} else {
		err = c.kernels.LaunchKernel(f.handle, g, p.bytes[:p.size], c.handle)
	}
	c.work.End()
	if err != nil {
		return &LaunchError{f.name, g, err}
	}
	return nil
}

// launchSlowly is a launch that touches buffers of others, is part of a capture, or is watched.
func (c *submission) launchSlowly(f *Function, g Geometry, p *params, args []Arg) error {
	return c.ordered(f.name, g, args, func(accesses []cudadrv.Access) error { return c.launch(f, g, p, accesses) },
		func(held *capture) { held.launched(f, g) })
}

// ordered submits work behind other work on its buffers, and announces it. The accesses that submit gets are nil where nothing
// checks them. In a capture the graph gets the buffers, and captured is called.
func (c *submission) ordered(name string, g Geometry, args []Arg, submit func([]cudadrv.Access) error, captured func(*capture)) error {
	var accesses []cudadrv.Access
	if c.checked != nil {
		accesses = accessesOf(args)
	}
	held := c.capture.Load()
	crossing := c.work.Crossing()
	for i := range args {
		if args[i].mode == byValue {
			continue
		}
		var err error
		if held != nil {
			err = held.touch(c, args[i].buffer)
		} else {
			err = crossing.Before(args[i].buffer)
		}
		if err != nil {
			return &ArgumentError{Kernel: name, Index: i, Err: err}
		}
	}
	if held != nil {
		err := submit(accesses)
		if err == nil {
			captured(held)
		}
		return err
	}
	var err error
	if profile := c.profile.Load(); profile != nil {
		err = profile.launch(name, g, func() error { return submit(accesses) })
	} else {
		err = submit(accesses)
	}
	if err == nil {
		crossing.After()
	}
	return err
}

// accessesOf is what a kernel may touch by its arguments.
func accessesOf(args []Arg) []cudadrv.Access {
	all := []cudadrv.Access{}
	for i := range args {
		a := &args[i]
		at := cudadrv.Access{Ptr: a.buffer.Ptr() + cudadrv.Ptr(a.offset), Bytes: a.bytes} //nolint:gosec // within the buffer
		if a.mode == reads || a.mode == readsAndWrites {
			all = append(all, at)
		}
		if a.mode == writes || a.mode == readsAndWrites {
			at.Write = true
			all = append(all, at)
		}
	}
	return all
}
