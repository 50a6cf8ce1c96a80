package cuda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/internal/jsonform"
)

// Queue makes calls of a context that return no error: Err has the first one, as with a bufio.Writer. After it every call does
// nothing, so that no work is submitted which needs the results of work that is missing. Make one with Context.NewQueue.
//
//	q := c.NewQueue()
//	x := cuda.Push(q, values)
//	q.Launch(q.Kernel(ptx, "scale"), cuda.Cover(len(values)), cuda.InOut(x), cuda.Value(float32(2)))
//	cuda.Read(q, values, cuda.Whole(x))
//	return q.Close() // the first error
//
// Work is submitted by each call, in the context's order: nothing is delayed. So an error that a kernel causes on the device is
// the error of a later call, most often of one that waits, such as Read.
//
// The queue owns the buffers that it allocates, also after an error: Close frees those that are live, after the work that uses
// them. Free gives one back earlier, and Keep hands it to the caller. Kernels belong to the context.
//
// In a capture the calls become part of the graph, and buffers come from its hold: make the queue inside, and return Close from
// the function of Context.Capture, so that an error ends the capture without a graph. Calls that wait are refused there.
//
// A Queue belongs to one goroutine at a time. Several queues of one context may be used at the same time, as the context may.
type Queue struct {
	c       *Context
	owned   []Buffer
	pruneAt int // length of owned at which the freed ones are dropped
	calls   int
	err     *QueueError
	closed  bool
}

// QueueError is the first error of a queue.
type QueueError struct {
	Call   string     `json:"call"`   // the method or function, as "Launch of kernel scale"
	Number int        `json:"number"` // of the call among those of the queue; the first is 1
	Place  site.Stack `json:"place"`  // of the call in the program
	Err    error      `json:"err"`
}

// Error names the call and its place.
func (e *QueueError) Error() string {
	return fmt.Sprintf("cuda: call %d of the queue, %s, at %v: %s", e.Number, e.Call, e.Place, strings.TrimPrefix(fmt.Sprint(e.Err), "cuda: "))
}

// Unwrap returns the call's error.
func (e *QueueError) Unwrap() error { return e.Err }

// MarshalJSON implements json.Marshaler: the error is its text.
func (e *QueueError) MarshalJSON() ([]byte, error) {
	type plain QueueError
	return json.Marshal(struct {
		plain
		Err any `json:"err"`
	}{plain(*e), jsonform.Error(e.Err)})
}

// leastPruned is the shortest list of buffers that is pruned.
const leastPruned = 64

// NewQueue makes a queue of the context's calls. It makes no driver call. The caller closes it, before the context.
func (c *Context) NewQueue() *Queue { return &Queue{c: c, pruneAt: leastPruned} }

// Err returns the first error, a *QueueError, nil if every call so far worked.
func (q *Queue) Err() error {
	switch {
	case q == nil:
		return ErrNotOpen
	case q.err == nil:
		return nil
	}
	return q.err
}

// Close frees the live buffers of the queue, also after an error. It does not wait. Later calls fail with ErrNotOpen.
// Idempotent. It returns the error of Err, joined with errors of frees.
func (q *Queue) Close() error {
	if q == nil {
		return ErrNotOpen
	}
	err := q.Err()
	for _, b := range q.owned {
		if !b.Live() {
			continue
		}
		if failed := b.Free(); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	q.owned, q.closed = nil, true
	return err
}

// begin counts a call and reports whether it may be made.
func (q *Queue) begin() bool {
	if q == nil || q.err != nil {
		return false
	}
	q.calls++
	return true
}

// ready returns the error of a call on a queue that is closed, or has no context.
func (q *Queue) ready() error {
	if q.closed || !q.c.opened() {
		return ErrNotOpen
	}
	return nil
}

// fail keeps the first error.
func (q *Queue) fail(call string, err error) {
	q.err = &QueueError{Call: call, Number: q.calls, Place: site.Here(1), Err: err}
}

// do makes a call.
func (q *Queue) do(call string, f func(c *Context) error) {
	if !q.begin() {
		return
	}
	err := q.ready()
	if err == nil {
		err = f(q.c)
	}
	if err != nil {
		q.fail(call, err)
	}
}

// Do calls f with the context, for calls that have no method here. The call is named in the error.
func (q *Queue) Do(call string, f func(c *Context) error) { q.do(call, f) }

// own adds a buffer that the queue has allocated.
func (q *Queue) own(b Buffer) {
	if len(q.owned) >= q.pruneAt {
		q.prune()
	}
	q.owned = append(q.owned, b)
}

// prune drops buffers that were freed, so that the list does not grow with the number of calls.
func (q *Queue) prune() {
	kept := q.owned[:0]
	for _, b := range q.owned {
		if b.Live() {
			kept = append(kept, b)
		}
	}
	clear(q.owned[len(kept):]) // a queue that lives long keeps nothing of streams that have closed
	q.owned = kept
	q.pruneAt = max(2*len(kept), leastPruned)
}

// allocate makes a call that returns a buffer.
func (q *Queue) allocate(call string, f func(c *Context) (Buffer, error)) (b Buffer) {
	q.do(call, func(c *Context) (err error) {
		if b, err = f(c); err == nil {
			q.own(b)
		}
		return err
	})
	return b
}

// Alloc allocates as Context.Alloc does. After an error it returns the zero Buffer.
func (q *Queue) Alloc(bytes int64) Buffer {
	return q.allocate("Alloc", func(c *Context) (Buffer, error) { return c.Alloc(bytes) })
}

// AllocFor allocates as Context.AllocFor does. After an error it returns the zero Buffer.
func (q *Queue) AllocFor(ctx context.Context, want vram.Request) Buffer {
	return q.allocate("AllocFor", func(c *Context) (Buffer, error) { return c.AllocFor(ctx, want) })
}

// AllocZeroed allocates as Context.AllocZeroed does. After an error it returns the zero Buffer.
func (q *Queue) AllocZeroed(bytes int64) Buffer {
	return q.allocate("AllocZeroed", func(c *Context) (Buffer, error) { return c.AllocZeroed(bytes) })
}

// Free frees a buffer after the work that was submitted with it. After an error it does nothing, and Close frees the queue's
// buffers.
func (q *Queue) Free(b Buffer) { q.do("Free", func(*Context) error { return b.Free() }) }

// Keep hands a buffer of the queue to the caller, who frees it, and returns it. It works after an error, too.
func (q *Queue) Keep(b Buffer) Buffer {
	if q != nil {
		for i := range q.owned {
			if q.owned[i] == b {
				q.owned = append(q.owned[:i], q.owned[i+1:]...)
				break
			}
		}
	}
	return b
}

// Kernel returns a kernel as Context.Kernel does, nil after an error.
func (q *Queue) Kernel(image, name string) (f *Function) {
	q.do("Kernel of "+name, func(c *Context) (err error) {
		f, err = c.Kernel(image, name)
		return err
	})
	return f
}

// Launch submits a kernel as Context.Launch does. It allocates nothing where that does not.
func (q *Queue) Launch(f *Function, g Geometry, args ...Arg) {
	if !q.begin() {
		return
	}
	err := q.ready()
	if err == nil {
		err = q.c.Launch(f, g, args...)
	}
	if err != nil {
		q.fail("Launch of "+f.String(), err)
	}
}

// LaunchGraph submits a graph as Graph.Launch does.
func (q *Queue) LaunchGraph(g *Graph) {
	q.do("LaunchGraph", func(c *Context) error { return g.Launch(c) })
}

// Copy submits a copy as Context.Copy does.
func (q *Queue) Copy(dst, src Range) {
	q.do("Copy", func(c *Context) error { return c.Copy(dst, src) })
}

// CopyInAsync submits a copy as Context.CopyInAsync does.
func (q *Queue) CopyInAsync(dst Range, src []byte) {
	q.do("CopyInAsync", func(c *Context) error { return c.CopyInAsync(dst, src) })
}

// CopyOutAsync submits a copy as Context.CopyOutAsync does.
func (q *Queue) CopyOutAsync(dst []byte, src Range) {
	q.do("CopyOutAsync", func(c *Context) error { return c.CopyOutAsync(dst, src) })
}

// Fill8 submits a fill as Context.Fill8 does.
func (q *Queue) Fill8(r Range, value uint8) {
	q.do("Fill8", func(c *Context) error { return c.Fill8(r, value) })
}

// Fill16 submits a fill as Context.Fill16 does.
func (q *Queue) Fill16(r Range, value uint16) {
	q.do("Fill16", func(c *Context) error { return c.Fill16(r, value) })
}

// Fill32 submits a fill as Context.Fill32 does.
func (q *Queue) Fill32(r Range, value uint32) {
	q.do("Fill32", func(c *Context) error { return c.Fill32(r, value) })
}

// Wait makes later work wait as Context.Wait does.
func (q *Queue) Wait(other *Context) {
	q.do("Wait", func(c *Context) error { return c.Wait(other) })
}

// Synchronize waits as Context.Synchronize does.
func (q *Queue) Synchronize(ctx context.Context) {
	q.do("Synchronize", func(c *Context) error { return c.Synchronize(ctx) })
}

// Push allocates a buffer for values and copies them into it, as From does. After an error it returns the zero Buffer.
func Push[T Element](q *Queue, values []T) Buffer {
	return q.allocate("Push", func(c *Context) (Buffer, error) { return From(c, values) })
}

// Write copies values to the begin of a range, as Store does.
func Write[T Element](q *Queue, dst Range, values []T) {
	q.do("Write", func(c *Context) error { return Store(c, dst, values) })
}

// Read copies the begin of a range into a slice and waits until it is there. After an error, also its own, the slice may have
// its old values.
func Read[T Element](q *Queue, dst []T, src Range) {
	q.do("Read", func(c *Context) error {
		bytes := bytesOf(dst)
		short := &LengthError{DstBytes: int64(len(bytes)), SrcBytes: src.Bytes}
		if err := c.has(src, false, short.DstBytes, short); err != nil {
			return named("Read", err)
		}
		return named("Read", c.CopyOutAt(bytes, src.Buffer, src.Offset))
	})
}
