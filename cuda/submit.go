package cuda

import "github.com/go-vram/vram/cudadrv"

// Submit calls work, which makes driver calls that submit the caller's own work to the stream: copies to and from foreign
// memory, or waits for events of other processes. The stream stays open during the call. The ranges are the buffers that the
// work may write: they are checked, ordered and announced as in Copy. In a capture Submit returns a *vram.CaptureError and does
// not call work. Captures of the stream wait for work, which must not begin one, nor submit work on these buffers by this
// package. It returns the errors of Copy and of work.
func (c *Context) Submit(work func(device cudadrv.Device, on cudadrv.Stream) error, ranges ...Range) error {
	if !c.opened() {
		return ErrNotOpen
	}
	if c.capture.Load() != nil {
		return c.work.Forbidden("work of the caller's own")
	}
	all := make([]access, len(ranges))
	for i, r := range ranges {
		all[i] = writing(r) // nobody knows
	}
	return named("Context.Submit", c.onFor(nil, c.work.CrossingOfCalls(), func() error {
		if err := c.work.Uncaptured("work of the caller's own"); err != nil {
			return err
		}
		return work(c.device, c.handle)
	}, all))
}

// LaunchWith calls submit, which lets a library such as cuBLASLt submit kernels to the stream. buffers are the buffers that the
// work touches, made with In, Out and InOut: they are checked, ordered and announced as the arguments of Launch, and in a
// capture they and the work become part of the graph. The library's name is in errors, profiles and reports. submit must not
// call this package. Call a library that needs a current context in cudadrv.ForeignCalls. Arguments by value are for a function
// that stands in for the library in a test: see vramtest.Library. Those that no kernel takes are refused, as the zero Arg of a
// nil mark is. Errors: *ArgumentError, with which submit was not called; ErrNotOpen, vram.ErrClosed, *vram.CaptureError as
// Launch, and submit's.
func (c *Context) LaunchWith(library string, submit func(device cudadrv.Device, on cudadrv.Stream) error, buffers ...Arg) error {
	if !c.opened() {
		return ErrNotOpen
	}
	if err := (&Function{name: library}).acceptsUnknown(0, buffers); err != nil {
		return err
	}
	for i := range buffers {
		a := &buffers[i]
		if a.mode == byValue {
			continue
		}
		_, err := c.work.Check(a.buffer, a.writes())
		if err == nil {
			err = within(a.buffer, a.offset, a.bytes)
		}
		if err != nil {
			return &ArgumentError{Kernel: library, Index: i, Err: err}
		}
	}
	return c.recorded(library, buffers, c.capture.Load(), func() error { return c.orderedWork(library, submit, buffers) })
}

// orderedWork is LaunchWith for buffers that were checked.
func (c *submission) orderedWork(library string, submit func(device cudadrv.Device, on cudadrv.Stream) error, buffers []Arg) error {
	return c.ordered(library, Geometry{}, buffers, func(held *capture, accesses []cudadrv.Access) error {
		return c.submit(held, func() error {
			if accesses == nil {
				return submit(c.device, c.handle)
			}
			work := cudadrv.LibraryWork{Library: library, Arguments: libraryArguments(buffers)}
			return c.checked.WorkTouching(work, c.handle, func() error { return submit(c.device, c.handle) })
		})
	})
}

// libraryArguments describes the arguments of a library's work.
func libraryArguments(args []Arg) []cudadrv.LibraryArgument {
	all := make([]cudadrv.LibraryArgument, len(args))
	for i := range args {
		a := &args[i]
		if a.mode == byValue {
			p := new(params)
			p.put(0, a, a.bits)
			all[i].Value = p.bytes[:min(a.size, maxParamBytes)]
			continue
		}
		all[i] = cudadrv.LibraryArgument{
			Ptr: a.buffer.Ptr() + cudadrv.Ptr(a.offset), Bytes: a.bytes, //nolint:gosec // within the buffer
			Read: a.mode != writes, Write: a.mode != reads,
		}
	}
	return all
}

// WithContext runs f on this thread with the device's context current, as libraries want it that are called outside of
// LaunchWith: to make a handle, say. Errors: ErrNotOpen, vram.ErrClosed, cudadrv.NotSupported on a device without a context,
// and f's.
func (c *Context) WithContext(f func() error) error {
	if !c.opened() {
		return ErrNotOpen
	}
	foreign, ok := c.device.(cudadrv.ForeignCalls)
	if !ok {
		return unsupported("cuCtxPushCurrent")
	}
	return c.open(func() error { return foreign.WithContext(f) })
}
