package fault

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// limited is an opened device with the capacity in force. The interceptor stands in front of it, so
// that hook and rules see each call first. Of the optional calls it has those that take device memory.
type limited struct {
	cudadrv.Device
	driver  *Driver
	ordinal int
	ledger  *ledger
	closed  atomic.Bool
}

// ledger is the memory in use by the views of one device.
type ledger struct {
	opens     int // under Driver.mu
	usedBytes atomic.Int64

	mu      sync.Mutex
	plain   map[cudadrv.Ptr]int64
	handles map[cudadrv.Handle]int64
}

// ledgerOf counts a view of the device and gives its ledger.
func (d *Driver) ledgerOf(ordinal int) *ledger {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.ledgers[ordinal]
	if l == nil {
		l = &ledger{plain: map[cudadrv.Ptr]int64{}, handles: map[cudadrv.Handle]int64{}}
		d.ledgers[ordinal] = l
	}
	l.opens++
	return l
}

// Close closes the view. The memory of a device is forgotten with its last view.
func (d *limited) Close() error {
	if err := d.Device.Close(); err != nil {
		return err
	}
	if d.closed.Swap(true) {
		return nil
	}
	d.driver.mu.Lock()
	defer d.driver.mu.Unlock()
	d.ledger.opens--
	if d.ledger.opens == 0 {
		delete(d.driver.ledgers, d.ordinal)
	}
	return nil
}

// take counts bytes, or returns the error of a full capacity.
func (d *limited) take(c call.Call, bytes int64) error {
	for {
		used, capacity := d.ledger.usedBytes.Load(), d.driver.capacity.Load()
		if capacity >= 0 && bytes > capacity-used {
			d.driver.injected.Add(1)
			return &cudadrv.CallError{
				Func: c.String(), Result: cudadrv.OutOfMemory,
				Detail: fmt.Sprintf("%d bytes wanted, %d in use of an injected capacity of %d", bytes, used, capacity),
			}
		}
		if d.ledger.usedBytes.CompareAndSwap(used, used+bytes) {
			return nil
		}
	}
}

// allocate makes a call that takes memory: the bytes are booked ahead, so that calls at the same time
// cannot exceed the capacity together, and taken back where the call fails, or panics.
func allocate[K cudadrv.Ptr | cudadrv.Handle](d *limited, c call.Call, bytes int64, book map[K]int64,
	allocate func(int64) (K, error),
) (K, error) {
	if bytes <= 0 { // the wrapped driver refuses it
		return allocate(bytes)
	}
	if err := d.take(c, bytes); err != nil {
		return 0, err
	}
	failed := true // until it has returned without an error
	defer func() {
		if failed {
			d.ledger.usedBytes.Add(-bytes)
		}
	}()
	key, err := allocate(bytes)
	if err != nil {
		return 0, err
	}
	failed = false
	d.ledger.mu.Lock()
	defer d.ledger.mu.Unlock()
	book[key] = bytes
	return key, nil
}

// free makes a call that gives memory back. The entry leaves the book ahead of the call, so that another
// goroutine that gets the same name from the driver finds no entry of the old one, and comes back
// where the call fails, or panics.
func free[K cudadrv.Ptr | cudadrv.Handle](d *limited, key K, book map[K]int64, free func(K) error) error {
	d.ledger.mu.Lock()
	bytes, held := book[key]
	delete(book, key)
	d.ledger.mu.Unlock()
	if !held {
		return free(key)
	}
	failed := true // as in allocate
	defer func() {
		if !failed {
			d.ledger.usedBytes.Add(-bytes)
			return
		}
		d.ledger.mu.Lock()
		defer d.ledger.mu.Unlock()
		book[key] = bytes
	}()
	err := free(key)
	failed = err != nil
	return err
}

// MemAlloc calls cuMemAlloc within the capacity.
func (d *limited) MemAlloc(bytes int64) (cudadrv.Ptr, error) {
	return allocate(d, call.MemAlloc, bytes, d.ledger.plain, d.Device.MemAlloc)
}

// MemFree returns memory of MemAlloc to the capacity.
func (d *limited) MemFree(p cudadrv.Ptr) error { return free(d, p, d.ledger.plain, d.Device.MemFree) }

// MemCreate calls cuMemCreate within the capacity.
func (d *limited) MemCreate(bytes int64) (cudadrv.Handle, error) {
	return allocate(d, call.MemCreate, bytes, d.ledger.handles, d.Device.MemCreate)
}

// MemRelease returns memory of MemCreate to the capacity.
func (d *limited) MemRelease(h cudadrv.Handle) error {
	return free(d, h, d.ledger.handles, d.Device.MemRelease)
}

// Unwrap returns the wrapped device, for calls that take no device memory.
func (d *limited) Unwrap() cudadrv.Device { return d.Device }

// lacking returns the error of an optional call that the wrapped device does not have.
func lacking(c call.Call) error {
	return &cudadrv.CallError{Func: c.String(), Result: cudadrv.NotSupported, Detail: "the device does not have the call"}
}

// MemGetInfo returns the wrapped device's numbers, or the rest of the capacity if that is less.
func (d *limited) MemGetInfo() (freeBytes, totalBytes int64, err error) {
	freeBytes, totalBytes, err = d.Device.MemGetInfo()
	capacity := d.driver.capacity.Load()
	if err != nil || capacity < 0 {
		return freeBytes, totalBytes, err
	}
	return min(freeBytes, max(capacity-d.ledger.usedBytes.Load(), 0)), totalBytes, nil
}
