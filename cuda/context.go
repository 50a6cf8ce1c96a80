package cuda

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/streams"
)

// Context submits work to a stream. Make one with NewContext. Its methods are safe for concurrent use. It has a method for each
// kind of work that a stream takes.
type Context struct {
	*submission
	ended atomic.Bool  // Close has released the context's resources
	owned *vram.Device // of Open, closed by Close; nil otherwise
	of    *vram.Device // of Open, also in a context of NewStream; nil otherwise
	alone bool         // of NewStream: Close closes the stream

	lazy struct {
		sync.Mutex // of cold calls; a launch never takes it
		opened     map[any]io.Closer
		workspace  Buffer
		closed     bool
	}
}

// NewContext makes the context of a stream. It makes no driver call. Several contexts of one stream are the same to the device.
// The caller closes it, before the stream. Errors: ErrNotOpen, vram.ErrClosed.
func NewContext(s *Stream) (*Context, error) {
	work, err := streams.NewSubmitter(s)
	if err != nil {
		return nil, err
	}
	return &Context{submission: submissionOf(work)}, nil
}

// Stream returns the stream of the work, also after Close.
func (c *Context) Stream() *Stream {
	if !c.made() {
		return nil
	}
	return c.work.Stream()
}

// Info describes the device.
func (c *Context) Info() cudadrv.Info {
	if !c.made() {
		return cudadrv.Info{}
	}
	return c.device.Info()
}

// made reports whether NewContext made the context.
func (c *Context) made() bool { return c != nil && c.submission != nil }

// opened reports whether the context can be used.
func (c *Context) opened() bool { return c.made() && !c.ended.Load() }

// String names the stream.
func (c *Context) String() string {
	switch {
	case !c.made():
		return "no context"
	case c.ended.Load():
		return "closed context of " + c.Stream().String()
	}
	return "context of " + c.Stream().String()
}

// Alloc allocates on the stream, and in a capture in the graph's hold. It returns the errors of vram.Stream.Alloc.
// AllocFor names the buffer.
func (c *Context) Alloc(bytes int64) (Buffer, error) {
	if !c.opened() {
		return Buffer{}, ErrNotOpen
	}
	return c.allocFor(c.capture.Load(), bytes)
}

// allocFor is Alloc for a capture, or for nil outside of any.
func (c *Context) allocFor(held *capture, bytes int64) (Buffer, error) {
	if held != nil {
		return held.alloc(c.submission, bytes)
	}
	b, err := c.Stream().Alloc(bytes)
	return b, c.failure(err)
}

// AllocBatch fills dst with buffers of the sizes, all or none: on the stream as vram.Stream.AllocBatch does, and in a capture
// one after the other in the graph's hold. With an error dst holds zero Buffers. It returns the errors of Stream.AllocBatch.
func (c *Context) AllocBatch(dst []Buffer, bytes []int64) error {
	if !c.opened() {
		clear(dst)
		return ErrNotOpen
	}
	if p := c.capture.Load(); p != nil {
		return p.allocBatch(c.submission, dst, bytes)
	}
	return c.Stream().AllocBatch(dst, bytes)
}

// FreeBatch frees buffers of any streams, and of graphs, as vram.Stream.FreeBatch does.
func (c *Context) FreeBatch(b []Buffer) error {
	if !c.opened() {
		return ErrNotOpen
	}
	return c.Stream().FreeBatch(b)
}

// Workspace returns a buffer of at least that size for one piece of work at a time, as libraries require. It belongs to the
// context: the next call may return the same buffer, or a longer one. In a capture it belongs to the graph, and each call
// allocates. Lazily, Kernel and Close wait for the call, so vram.Config.OnOutOfMemory must not call them.
func (c *Context) Workspace(bytes int64) (Buffer, error) {
	if !c.opened() {
		return Buffer{}, ErrNotOpen
	}
	if p := c.capture.Load(); p != nil {
		return p.workspace(c.submission, bytes)
	}
	c.lazy.Lock()
	defer c.lazy.Unlock()
	if c.lazy.closed {
		return Buffer{}, ErrNotOpen
	}
	if c.lazy.workspace.Bytes() >= bytes && c.lazy.workspace.Live() {
		return c.lazy.workspace, nil
	}
	b, err := c.Stream().Alloc(bytes)
	if err != nil {
		return Buffer{}, err
	}
	old := c.lazy.workspace
	c.lazy.workspace = b
	if old.Live() {
		err = old.Free() // after the work submitted with it
	}
	return b, err
}

// Lazily returns the value that open made in the first call with a key, as a library's handle. Close closes it. One open runs
// at a time.
func (c *Context) Lazily(key any, open func() (io.Closer, error)) (io.Closer, error) {
	if !c.opened() {
		return nil, ErrNotOpen
	}
	c.lazy.Lock()
	defer c.lazy.Unlock()
	if c.lazy.closed {
		return nil, ErrNotOpen
	}
	if x, ok := c.lazy.opened[key]; ok {
		return x, nil
	}
	x, err := open()
	if err != nil {
		return nil, err
	}
	if c.lazy.opened == nil {
		c.lazy.opened = map[any]io.Closer{}
	}
	c.lazy.opened[key] = x
	return x, nil
}

// NewStream returns the context of a new stream of the same device. Its Close closes the stream, too, and waits for its work. The
// context must be open only during the call. Errors: ErrNotOpen, and the errors of vram.Device.NewStream; then no stream stays open.
func (c *Context) NewStream() (made *Context, err error) {
	if !c.opened() {
		return nil, ErrNotOpen
	}
	s, err := c.work.NewStream()
	if err != nil {
		return nil, err
	}
	defer func() {
		if made == nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if made, err = NewContext(s); err == nil {
		made.of, made.alone = c.of, true
	}
	return made, err
}

// Close closes the context and the resources that it has opened: later calls return ErrNotOpen. If Kernel has loaded modules,
// Close waits for the context's work and unloads them. The context of Open also closes its device, and the stream with it; one of
// NewStream closes its stream, and waits for its work. The stream and the work of a context of NewContext, other modules, graphs,
// and other contexts of the stream are not affected. Idempotent: a further call closes only resources that could not be closed
// before, and waits for the first one. A function of vram.Events may call Close, as it may call Device.Close. Errors: of the
// resources, ErrModuleInUse while a graph has a kernel of Kernel, of a context of Open the errors of
// vram.Device.Close, as an *vram.InUseError that lists buffers which were not freed, and of a context of NewStream the errors of
// vram.Stream.Close.
func (c *Context) Close() (err error) {
	if !c.made() {
		return ErrNotOpen
	}
	defer func() { // also after a panic of the driver. Without the lock: the device waits for functions of Events, which may use the context
		first := !c.ended.Swap(true) // last: the closers below use the context
		if c.owned != nil {
			if failed := c.owned.Close(); first { // a further call waits
				err = errors.Join(err, failed)
			}
		}
		if c.alone { // again, if it could not be closed before
			err = errors.Join(err, c.Stream().Close())
		}
	}()
	return c.closeOpened()
}

// closeOpened closes the resources that the context has opened, and lets it open no more.
func (c *Context) closeOpened() error {
	c.lazy.Lock()
	defer c.lazy.Unlock()
	c.lazy.closed = true
	var all []error
	for key, x := range c.lazy.opened {
		if err := x.Close(); err != nil {
			all = append(all, err)
			continue
		}
		delete(c.lazy.opened, key)
	}
	if c.lazy.workspace.Live() {
		all = append(all, c.lazy.workspace.Free())
	}
	return errors.Join(all...)
}

// Wait makes later work of the context wait, on the device, for the work submitted to another one so far. It does not wait on
// the host. If one of the two is captured, the wait is part of the capture: a context that waits for a captured one joins the
// capture, and the captured one must wait for it in turn before the capture ends. Like the begin of a capture, joining waits
// for driver calls of others on the stream. Errors: ErrNotOpen, ErrForeign, vram.ErrClosed, the driver's, and a
// *vram.CaptureError where one of the two is in another capture.
func (c *Context) Wait(other *Context) error {
	if !c.opened() {
		return ErrNotOpen
	}
	if !other.opened() {
		return notOpen("other")
	}
	if p := other.capture.Load(); p != nil {
		return p.join(c.submission, other.submission)
	}
	if c.capture.Load() != nil {
		return c.work.Forbidden("a wait for work outside of it")
	}
	return c.Stream().WaitStream(other.Stream())
}

// Helpers returns the functions that places leave out, of vram.Config.Helpers; nil: none.
func Helpers(c *Context) *site.Helpers {
	if !c.made() {
		return nil
	}
	return c.work.Helpers()
}

// Generated leaves the functions in the file of its caller out of places, which name their callers: in errors of queues, faults and
// reports. Load of a package that the command vram kernels has written calls it; hand-written code has vram.Config.Helpers.
func Generated() { site.Generated(1) }

// Capturing reports whether a context's stream is being captured.
func Capturing(c *Context) bool { return c.made() && c.capture.Load() != nil }

// Together calls submit, whose work on the context becomes part of one capture, or of none: captured says which. A capture of the
// stream begins or ends after submit, at the latest ten seconds after it has announced that; from then on further work is refused
// with a *vram.CaptureError. It is for packages whose calls submit several pieces of work. submit must neither begin a capture nor
// close the context. Errors: ErrNotOpen, vram.ErrClosed, *vram.CaptureError as Launch, and submit's.
func Together(c *Context, submit func(captured bool) error) error {
	if !c.opened() {
		return ErrNotOpen
	}
	held := c.capture.Load()
	if err := c.enter(held); err != nil {
		return err
	}
	defer c.work.Leave()
	return submit(held != nil)
}
