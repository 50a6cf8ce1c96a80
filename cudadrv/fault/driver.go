package fault

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
	"github.com/go-vram/vram/cudadrv/internal/intercept"
)

// Unlimited as a capacity leaves the memory to the wrapped driver.
const Unlimited int64 = -1

var (
	_ cudadrv.Driver   = (*Driver)(nil)
	_ cudadrv.Modelled = (*modelledDevice)(nil)
)

// Driver is a driver whose calls fail by rules. Make one with Wrap. It is safe for concurrent use.
type Driver struct {
	inner cudadrv.Driver

	rules    atomic.Pointer[[]*live]
	before   atomic.Pointer[func(function string)]
	capacity atomic.Int64
	injected atomic.Uint64
	calls    [call.Count]atomic.Uint64

	mu      sync.Mutex // guards the fields below, and orders the changes of rules
	ledgers map[int]*ledger
}

// Wrap returns a driver that behaves as inner until rules are added.
func Wrap(inner cudadrv.Driver) *Driver {
	d := &Driver{inner: inner, ledgers: map[int]*ledger{}}
	d.rules.Store(&[]*live{})
	d.capacity.Store(Unlimited)
	return d
}

// Add appends rules; each counts all calls of its function from now on, also calls that another rule makes fail. On an error, which
// wraps ErrBadRule, none is added.
func (d *Driver) Add(rules ...Rule) error {
	added := make([]*live, 0, len(rules))
	for _, r := range rules {
		l, err := r.complete()
		if err != nil {
			return err
		}
		added = append(added, l)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	next := append(append([]*live(nil), *d.rules.Load()...), added...)
	d.rules.Store(&next)
	return nil
}

// Clear drops all rules. The hook and the capacity stay.
func (d *Driver) Clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rules.Store(&[]*live{})
}

// SetBefore sets a function that is called ahead of each driver call, failing or not, with CUDA's
// name of it, on the caller's goroutine and under no lock: it may block, panic or make calls itself.
// nil: none.
func (d *Driver) SetBefore(before func(function string)) {
	if before == nil {
		d.before.Store(nil)
		return
	}
	d.before.Store(&before)
}

// SetCapacity limits the physical memory of each device: cuMemAlloc and cuMemCreate fail with CUDA_ERROR_OUT_OF_MEMORY if plain
// allocations and unreleased handles would exceed it. A handle counts until its cuMemRelease, even if a mapping keeps it
// longer. Below the bytes in use it only makes further allocations fail. Unlimited, or any negative number: the wrapped driver
// alone decides.
func (d *Driver) SetCapacity(bytes int64) { d.capacity.Store(max(bytes, Unlimited)) }

// Injected returns the number of calls that failed by a rule or by the capacity.
func (d *Driver) Injected() uint64 { return d.injected.Load() }

// Calls returns the number of calls of the function since Wrap, failed ones included.
func (d *Driver) Calls(function string) uint64 {
	c, ok := call.Named(function)
	if !ok {
		return 0
	}
	return d.calls[c].Load()
}

// Unwrap returns the wrapped driver.
func (d *Driver) Unwrap() cudadrv.Driver { return d.inner }

// Name returns the wrapped driver's name.
func (d *Driver) Name() string { return d.inner.Name() }

// DeviceCount counts as cuDeviceGetCount for rules and hook.
func (d *Driver) DeviceCount() (int, error) {
	if err := d.ask(call.DeviceGetCount); err != nil {
		return 0, err
	}
	return d.inner.DeviceCount()
}

// Open counts as cuDevicePrimaryCtxRetain for rules and hook. The device is cudadrv.Modelled if the wrapped one is.
func (d *Driver) Open(ordinal int) (cudadrv.Device, error) {
	if err := d.ask(call.PrimaryCtxRetain); err != nil {
		return nil, err
	}
	inner, err := d.inner.Open(ordinal)
	if err != nil {
		return nil, err
	}
	dev := intercept.Wrap(&limited{Device: inner, driver: d, ordinal: ordinal, ledger: d.ledgerOf(ordinal)}, hook{d})
	if m, ok := inner.(cudadrv.Modelled); ok {
		return &modelledDevice{Device: dev, Modelled: m}, nil
	}
	return &dev, nil
}

// modelledDevice passes the modelled time through.
type modelledDevice struct {
	intercept.Device
	cudadrv.Modelled
}

// ask counts a call, runs the hook and says whether a rule makes the call fail.
func (d *Driver) ask(c call.Call) error {
	d.calls[c].Add(1)
	if before := d.before.Load(); before != nil {
		(*before)(c.String())
	}
	var first *live // of the rules that the call matches
	var at uint64
	for _, l := range *d.rules.Load() { // each counts the call
		if number, hit := l.hits(c); hit && first == nil {
			first, at = l, number
		}
	}
	if first == nil {
		return nil
	}
	d.injected.Add(1)
	return &cudadrv.CallError{
		Func: c.String(), Result: first.rule.Result,
		Detail: fmt.Sprintf("injected into call %d by %v", at, first.rule),
	}
}

// hook puts ask in front of a device's calls.
type hook struct{ driver *Driver }

func (h hook) Before(c call.Call) (mark int64, err error) { return 0, h.driver.ask(c) }
func (h hook) After(call.Call, int64, bool)               {}
