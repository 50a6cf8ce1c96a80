package sim

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

var errRefused = errors.New("the host refuses")

// refusing is a backing of which one function fails.
type refusing struct {
	backing
	fails string
	held  int // allocations that were not released
}

func (r *refusing) refuses(name string) error {
	if r.fails == name {
		return errRefused
	}
	return nil
}

func (r *refusing) reserve(bytes int64) (unsafe.Pointer, error) {
	if err := r.refuses("reserve"); err != nil {
		return nil, err
	}
	return r.backing.reserve(bytes)
}

func (r *refusing) allocate(bytes int64) (unsafe.Pointer, error) {
	if err := r.refuses("allocate"); err != nil {
		return nil, err
	}
	base, err := r.backing.allocate(bytes)
	if err == nil {
		r.held++
	}
	return base, err
}

func (r *refusing) release(base unsafe.Pointer, bytes int64) error {
	r.held--
	return errors.Join(r.refuses("release"), r.backing.release(base, bytes))
}

func (r *refusing) show(at unsafe.Pointer, bytes, offsetBytes int64) error {
	if err := r.refuses("show"); err != nil {
		return err
	}
	return r.backing.show(at, bytes, offsetBytes)
}

func (r *refusing) hide(at unsafe.Pointer, bytes int64) error {
	if err := r.refuses("hide"); err != nil {
		return err
	}
	return r.backing.hide(at, bytes)
}

func (r *refusing) empty(bytes, offsetBytes int64) error {
	return errors.Join(r.refuses("empty"), r.backing.empty(bytes, offsetBytes))
}

func (r *refusing) close() error { return errors.Join(r.refuses("close"), r.backing.close()) }

// A call that the host's operating system refuses says so, and the books are right: a new object is not there, and an object that was
// released is gone, or stays as a whole.
func TestAHostThatRefuses(t *testing.T) {
	const bytes = 2 << 20
	for _, c := range []struct {
		name  string
		fails string
		call  func(d *Device, made *host) error
		left  map[string]int // objects after the call; nil: as before it
	}{
		{"cuMemAddressReserve", "reserve", func(d *Device, _ *host) error { _, err := d.MemAddressReserve(bytes); return err }, nil},
		{"cuMemAlloc", "allocate", func(d *Device, _ *host) error { _, err := d.MemAlloc(bytes); return err }, nil},
		{"cuMemHostAlloc", "allocate", func(d *Device, _ *host) error { _, err := d.MemHostAlloc(bytes); return err }, nil},
		{"cuMemMap", "show", func(d *Device, made *host) error { return d.MemMap(made.at+bytes, bytes, made.handle) }, nil},
		{"cuMemUnmap", "hide", func(d *Device, made *host) error { return d.MemUnmap(made.at, bytes) }, nil},
		{"cuMemFree", "release", func(d *Device, made *host) error { return d.MemFree(made.plain) }, map[string]int{
			"context": 1, "memory handle": 2, "mapping": 1, "address range": 1, "page-locked range": 1,
		}},
		{"cuMemFreeHost", "release", func(d *Device, made *host) error { return d.MemFreeHost(made.locked) }, map[string]int{
			"context": 1, "memory handle": 2, "mapping": 1, "address range": 2,
		}},
		{"cuMemRelease", "empty", func(d *Device, made *host) error { return d.MemRelease(made.spare) }, map[string]int{
			"context": 1, "memory handle": 1, "mapping": 1, "address range": 2, "page-locked range": 1,
		}},
		{"cuDevicePrimaryCtxRelease", "release", func(d *Device, _ *host) error { return d.Close() }, map[string]int{}},
		{"cuDevicePrimaryCtxRelease", "close", func(d *Device, _ *host) error { return d.Close() }, map[string]int{}},
	} {
		d, err := New(Config{Bytes: true}).gpus[0].open()
		if errors.Is(err, ErrNoBytes) {
			return
		}
		require.NoError(t, err)
		made := makeHost(t, d)
		before := d.Objects()
		free, _, err := d.MemGetInfo()
		require.NoError(t, err)
		host := &refusing{backing: d.gpu.backing, fails: c.fails}
		d.gpu.backing = host
		err = c.call(d, made)
		var failed *cudadrv.CallError
		require.ErrorAs(t, err, &failed, c.name)
		assert.Equal(t, c.name, failed.Func)
		assert.Equal(t, cudadrv.OperatingSystem, failed.Result, c.name)
		assert.Contains(t, failed.Detail, errRefused.Error())
		if c.left == nil {
			assert.Equal(t, before, d.Objects(), c.name)
			after, _, err := d.MemGetInfo()
			require.NoError(t, err)
			assert.Equal(t, free, after, c.name)
			host.fails = ""
			require.NoError(t, c.call(d, made), "%s: later", c.name)
		} else {
			assert.Equal(t, c.left, d.Objects(), c.name)
		}
		require.NoError(t, d.Audit(), c.name)
		host.fails = ""
		if !d.closed {
			require.NoError(t, d.Close())
		}
	}
}

// host is memory of each kind.
type host struct {
	at            cudadrv.Ptr // of two granules: the handle is mapped at the first
	plain         cudadrv.Ptr
	handle, spare cudadrv.Handle
	locked        []byte
}

func makeHost(t *testing.T, d *Device) *host {
	t.Helper()
	const bytes = 2 << 20
	var made host
	var errs [6]error
	made.at, errs[0] = d.MemAddressReserve(2 * bytes)
	made.handle, errs[1] = d.MemCreate(bytes)
	made.spare, errs[2] = d.MemCreate(bytes)
	errs[3] = d.MemMap(made.at, bytes, made.handle)
	made.plain, errs[4] = d.MemAlloc(bytes)
	made.locked, errs[5] = d.MemHostAlloc(bytes)
	require.NoError(t, errors.Join(errs[:]...))
	return &made
}

// Where no address space is left, no call takes anything.
func TestNoAddressSpaceIsLeft(t *testing.T) {
	t.Parallel()
	d, err := New(Config{Bytes: true}).gpus[0].open()
	if errors.Is(err, ErrNoBytes) {
		return
	}
	require.NoError(t, err)
	made := makeHost(t, d)
	before := d.Objects()
	free, _, err := d.MemGetInfo()
	require.NoError(t, err)
	next := d.gpu.driver.space.next
	d.gpu.driver.space.next = spaceEnd
	registered := make([]byte, 4096)
	host := &refusing{backing: d.gpu.backing}
	d.gpu.backing = host
	for name, make := range map[string]func() error{
		"cuMemAlloc":          func() error { _, err := d.MemAlloc(3 * mib); return err },
		"cuMemAddressReserve": func() error { _, err := d.MemAddressReserve(6 * mib); return err },
		"cuMemHostAlloc":      func() error { _, err := d.MemHostAlloc(3 * mib); return err },
		"cuMemHostRegister":   func() error { return d.MemHostRegister(registered) },
	} {
		var failed *cudadrv.CallError
		require.ErrorAs(t, make(), &failed, name)
		assert.Equal(t, cudadrv.OutOfMemory, failed.Result, name)
		assert.Equal(t, name, failed.Func)
		assert.Equal(t, before, d.Objects(), name)
		after, _, err := d.MemGetInfo()
		require.NoError(t, err)
		assert.Equal(t, free, after, name)
		assert.Zero(t, host.held, name)
	}
	require.NoError(t, d.Audit())
	d.gpu.driver.space.next = next
	require.NoError(t, d.MemFreeHost(made.locked))
	require.NoError(t, d.Close())
}
