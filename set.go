package vram

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/pool"
)

// Set is several devices of one driver. OpenAll makes one, Close ends it. Any number of goroutines may use it at once.
type Set struct {
	devices []*Device
	rooms   []driverRoom
	booked  atomic.Pointer[[]int64] // bytes of placements by device; replaced, never changed
}

// driverRoom is the driver's last report about a device's memory.
type driverRoom struct{ last atomic.Pointer[driverMemory] }

type driverMemory struct {
	freeBytes, reservedBytes int64 // of the whole GPU; of them that the device held then
	at                       time.Time
}

// roomInterval bounds the age of the driver's report of free memory. Not shorter: cuMemGetInfo takes microseconds, and
// placements may come by the thousand. Not longer: other processes on the GPU take memory, too.
const roomInterval = 100 * time.Millisecond

// OpenAll opens the driver's devices with the given ordinals, or all devices without ordinals, each as Open does with a copy of
// cfg, whose Ordinal must be 0. So LimitBytes is for each device, and functions of Events are called for all devices. It
// touches no GPU. The caller closes the set; after an error nothing is open. Errors: the errors of Open, *ConfigError.
func OpenAll(cfg Config, ordinals ...int) (*Set, error) {
	if cfg.Ordinal != 0 {
		return nil, badField("Ordinal", cfg.Ordinal, "0: the ordinals are arguments of OpenAll")
	}
	if err := cfg.findDriver(); err != nil {
		return nil, err
	}
	if len(ordinals) == 0 {
		count, err := cfg.Driver.DeviceCount()
		if err != nil {
			return nil, failed("", err)
		}
		if count == 0 {
			return nil, failed("", ErrNoDevice)
		}
		for ordinal := range count {
			ordinals = append(ordinals, ordinal)
		}
	}
	s := &Set{}
	for i, ordinal := range ordinals {
		err := error(nil)
		if slices.Contains(ordinals[:i], ordinal) {
			err = badArgument("OpenAll", "ordinals", ordinals, "each of them once")
		}
		var d *Device
		if err == nil {
			cfg.Ordinal = ordinal
			d, err = Open(cfg)
		}
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.devices = append(s.devices, d)
	}
	s.rooms = make([]driverRoom, len(s.devices))
	s.booked.Store(new(make([]int64, len(s.devices))))
	return s, nil
}

// Devices returns the devices of the set in the order of OpenAll. The caller owns the slice.
func (s *Set) Devices() []*Device {
	if s == nil {
		return nil
	}
	return slices.Clone(s.devices)
}

// String counts the devices.
func (s *Set) String() string {
	if s == nil {
		return "no set"
	}
	return "set of " + units.Count(len(s.devices), "device")
}

// Close closes all devices, and joins their errors: see Device.Close. Idempotent.
func (s *Set) Close() error {
	if s == nil {
		return ErrNotOpen
	}
	var errs []error
	for _, d := range s.devices {
		errs = append(errs, d.Close())
	}
	return joined(errs...)
}

// Placement is a device that was chosen for so many bytes, which are booked there until Done.
type Placement struct {
	Device *Device
	Bytes  int64

	set    *Set
	number int
	done   *atomic.Bool
}

// Place chooses the device of the set with the most room, the first of the set among equals, and books the bytes there: so
// goroutines that place at the same time are spread, before any of them has allocated. Done ends the booking: call it once the
// memory is allocated, or not wanted any more.
//
// The room of a device is its limit less the memory in use, and no more than the driver has for it: memory that is held there
// and not in use, and free memory of the whole GPU, which is read at most ten times a second; less the bookings. Streams,
// with their caches, and reservations use memory. A placement reserves nothing: memory may be gone by the
// time of the allocation, which fails then. Place is a use of each device, and waits for the message that each pool is serving.
//
// Errors: *PlaceError, *ConfigError, ErrNotOpen, and the errors of any device's first use.
func (s *Set) Place(bytes int64) (Placement, error) {
	switch {
	case s == nil || len(s.devices) == 0:
		return Placement{}, ErrNotOpen
	case bytes < 0:
		return Placement{}, badArgument("Set.Place", "bytes", bytes, "0 or more")
	}
	rooms := make([]int64, len(s.devices))
	for i := range s.devices {
		var err error
		if rooms[i], err = s.room(i); err != nil {
			return Placement{}, fmt.Errorf("%w (device %d)", err, s.devices[i].config.Load().Ordinal)
		}
	}
	for {
		booked := s.booked.Load()
		best := 0
		for i := range rooms {
			if rooms[i]-(*booked)[i] > rooms[best]-(*booked)[best] {
				best = i
			}
		}
		if room := rooms[best] - (*booked)[best]; room < bytes {
			return Placement{}, &PlaceError{RequestedBytes: bytes, RoomBytes: max(0, room), Ordinal: s.devices[best].config.Load().Ordinal}
		}
		if s.book(booked, best, bytes) {
			return Placement{Device: s.devices[best], Bytes: bytes, set: s, number: best, done: new(atomic.Bool)}, nil
		}
	}
}

// Done ends the booking of a placement. Idempotent, also by copies.
func (p Placement) Done() {
	if p.done == nil || p.done.Swap(true) {
		return
	}
	for !p.set.book(p.set.booked.Load(), p.number, -p.Bytes) {
	}
}

// String names the device.
func (p Placement) String() string {
	if p.Device == nil {
		return "no placement"
	}
	return fmt.Sprintf("%s on device %d", units.Bytes(p.Bytes), p.Device.config.Load().Ordinal)
}

// book adds bytes to those that are booked for a device, unless they were changed since they were read.
func (s *Set) book(read *[]int64, number int, bytes int64) bool {
	next := slices.Clone(*read)
	next[number] += bytes
	return s.booked.CompareAndSwap(read, &next)
}

// room returns the number of additional bytes that could be in use on a device.
func (s *Set) room(number int) (int64, error) {
	e, err := s.devices[number].use()
	if err != nil {
		return 0, err
	}
	books, err := e.pool.Snapshot(context.Background())
	switch {
	case s.devices[number].closed.Load():
		return 0, deviceClosed()
	case err != nil:
		return 0, failed("", err)
	}
	usedBytes := books.LentBytes + books.BusyBytes
	seen := s.rooms[number].last.Load()
	if seen == nil || time.Since(seen.at) >= roomInterval {
		m, err := s.devices[number].GPUMemory()
		if err != nil {
			return 0, err
		}
		seen = &driverMemory{m.FreeBytes, books.ReservedBytes, time.Now()}
		s.rooms[number].last.Store(seen)
	}
	heldOrFree := seen.freeBytes + seen.reservedBytes // memory that the device took since was free then
	return min(books.LimitBytes, heldOrFree) - usedBytes, nil
}

// PlaceError reports that no device of a set has so much room. It is ErrOutOfMemory.
type PlaceError struct {
	RequestedBytes int64 `json:"requested_bytes"`
	RoomBytes      int64 `json:"room_bytes"` // of the device with the most
	Ordinal        int   `json:"ordinal"`    // of that device
}

// Error prints the sizes.
func (e *PlaceError) Error() string {
	return fmt.Sprintf("vram: no device has room for %s: device %d has the most, %s",
		units.AtLeast(e.RequestedBytes), e.Ordinal, units.Bytes(e.RoomBytes))
}

// Is makes errors.Is(err, ErrOutOfMemory) hold.
func (e *PlaceError) Is(target error) bool { return target == ErrOutOfMemory }

// neighbours are the devices of this process that are in use. Two devices on one GPU, of two
// libraries perhaps, each hold memory that the other cannot see: before a request of one fails for
// want of memory of the driver's, the other releases free memory.
var neighbours table //nolint:gochecknoglobals // the process is watched: all that use one GPU

// neighbourTimeout bounds the wait for a neighbour that cannot release memory at once: one with
// plain segments, whose release waits for all work of the GPU. Not shorter: a trim of 100 GiB takes
// the driver 0.4 s on an H200.
const neighbourTimeout = time.Second

// table has the devices in use, with their GPUs. It is replaced, never changed.
type table struct {
	rows atomic.Pointer[[]row]
}

type row struct {
	gpu    cudadrv.UUID
	device *Device
}

// all returns the rows, and the slice that was read, for its replacement.
func (t *table) all() (rows []row, read *[]row) {
	if read = t.rows.Load(); read == nil {
		return nil, nil
	}
	return *read, read
}

// add enters a device. One whose driver names no GPU has no neighbours.
func (t *table) add(gpu cudadrv.UUID, d *Device) {
	for gpu != (cudadrv.UUID{}) {
		rows, read := t.all()
		more := append(rows[:len(rows):len(rows)], row{gpu, d})
		if t.rows.CompareAndSwap(read, &more) {
			return
		}
	}
}

func (t *table) remove(d *Device) {
	for {
		rows, read := t.all()
		var rest []row
		for _, r := range rows {
			if r.device != d {
				rest = append(rest, r)
			}
		}
		if len(rest) == len(rows) || t.rows.CompareAndSwap(read, &rest) {
			return
		}
	}
}

// of returns the other devices on the GPU of a device that is in use.
func (t *table) of(d *Device) (others []*Device) {
	rows, _ := t.all()
	gpu := cudadrv.UUID{}
	for _, r := range rows {
		if r.device == d {
			gpu = r.gpu
		}
	}
	for _, r := range rows {
		if r.gpu == gpu && r.device != d {
			others = append(others, r.device)
		}
	}
	return others
}

// captureTimeout bounds the wait for captures on a GPU whose work is waited for.
const captureTimeout = 10 * time.Second

// holdCaptures waits for the captures of devices, and keeps others from beginning until release is
// called. Its error is a *CaptureError after captureTimeout.
func holdCaptures(devices []*Device) (release func(), err error) {
	var held []func()
	release = func() {
		for _, leave := range held {
			leave()
		}
	}
	deadline := time.Now().Add(captureTimeout)
	for _, d := range devices {
		for _, s := range d.streams.Load().open {
			leave, ok := s.HoldCaptures()
			for ; !ok; leave, ok = s.HoldCaptures() {
				if time.Now().After(deadline) {
					release()
					return nil, &CaptureError{Stream: s.ID(), Call: "cuCtxSynchronize"}
				}
				time.Sleep(time.Millisecond)
			}
			held = append(held, leave)
		}
	}
	return release, nil
}

// handlesShortage reports whether anything can be done for a request that the pool refuses.
func (d *Device) handlesShortage() bool {
	return d.config.Load().OnOutOfMemory != nil || len(neighbours.of(d)) > 0
}

// handleShortage is called with a request that the pool refuses, outside every turn. It reports
// whether memory may be free now.
func (d *Device) handleShortage(short *OutOfMemoryError) (retry bool) {
	if d.askNeighbours(context.Background(), short) {
		return true
	}
	ask := d.config.Load().OnOutOfMemory
	return ask != nil && ask(short)
}

// askNeighbours has other devices on the GPU release as much free memory as is missing, if it was
// the driver that had none. It reports whether any was released, and tells the Logger.
func (d *Device) askNeighbours(ctx context.Context, short *OutOfMemoryError) bool {
	if short.Cause == nil { // the limit has refused
		return false
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer time.AfterFunc(neighbourTimeout, cancel).Stop() // no WithTimeout: all of time's formats would be linked with it
	released := int64(0)
	for _, other := range neighbours.of(d) {
		n, err := other.releaseFree(ctx, short.MissingBytes-released)
		released += n
		if d.notices != nil && (n > 0 || err != nil) {
			d.notices.post(func() {
				d.notices.log.Info("vram: another device on the GPU was asked for memory", "wantedBytes", short.MissingBytes, "releasedBytes", n, "error", err)
			})
		}
		if released >= short.MissingBytes {
			break
		}
	}
	d.neighbourBytes.Add(released)
	return released > 0
}

// releaseFree releases so many bytes of free memory to the driver, or all if there are fewer.
func (d *Device) releaseFree(ctx context.Context, bytes int64) (released int64, err error) {
	e := d.engine.Load()
	if e == nil {
		return 0, nil
	}
	books, err := e.pool.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	return e.pool.Trim(ctx, max(0, books.ReservedBytes-bytes))
}

// ErrNoPeerAccess reports that a device cannot reach the memory of another one: the hardware has no way, the driver has no call
// for it, or the memory is plain segments.
var ErrNoPeerAccess = pool.ErrNoPeerAccess

// CanAccessPeer reports whether kernels of the device can reach memory of another one, once EnablePeerAccess was called. It is
// a use of both devices. Errors: ErrNotOpen, ErrClosed, and the driver's.
func (d *Device) CanAccessPeer(peer *Device) (bool, error) {
	e, other, err := enginesOf(d, peer)
	if err != nil {
		return false, err
	}
	return e.reaches(other)
}

// EnablePeerAccess lets kernels of this device read and write the memory of another one, which is opened with the same driver:
// all that is mapped there, now and later. Then cuda.Context.Launch takes buffers of that device. It works in one direction, as
// cuCtxEnablePeerAccess does, and is idempotent; on one GPU there is nothing to do. Mappings there make no more driver calls
// than before; one that cannot be made accessible to all devices fails, and nothing of it is left. Access lasts as long as the
// other device is open. Copies between devices (cuda.Context.CopyPeer) need none of this, but without it they go through the
// host's memory. It is a use of both devices, and waits for the driver.
//
// Either device may be closed first. The one that has the memory waits in its Close for the work of the other one that
// cuda.Context.Launch has put on its buffers; for work that was submitted past it, the program waits.
//
// Errors: ErrNoPeerAccess, ErrNotOpen, ErrClosed, and the driver's, with which memory that is mapped later is not accessible;
// some of the present memory may be.
func (d *Device) EnablePeerAccess(peer *Device) error {
	e, other, err := enginesOf(d, peer)
	if err != nil {
		return err
	}
	ordinal, its := e.driver.Info().Ordinal, other.driver.Info().Ordinal
	if ordinal == its {
		e.peers.Reach(&other.peers)
		return nil
	}
	can, err := e.reaches(other)
	if err != nil {
		return err
	}
	if !can {
		return fmt.Errorf("%w from device %d to the memory of device %d", ErrNoPeerAccess, ordinal, its)
	}
	err = other.pool.EnablePeer(ordinal)
	switch {
	case errors.Is(err, pool.ErrClosed):
		return deviceClosed()
	case err != nil:
		return failed(fmt.Sprintf("access from device %d to the memory of device %d", ordinal, its), err)
	}
	e.peers.Reach(&other.peers)
	return nil
}

// enginesOf returns the engines of two devices that are used together.
func enginesOf(d, peer *Device) (e, other *engine, err error) {
	if e, err = d.use(); err != nil {
		return nil, nil, err
	}
	if !peer.opened() {
		return nil, nil, &NotOpenError{Argument: "peer"}
	}
	if other, err = peer.use(); err != nil {
		return nil, nil, err
	}
	if d.closed.Load() || peer.closed.Load() {
		return nil, nil, deviceClosed()
	}
	return e, other, nil
}

// reaches asks the driver whether kernels can reach memory of another device.
func (e *engine) reaches(other *engine) (bool, error) {
	peers, ok := e.driver.(cudadrv.Peers)
	if !ok || !e.driver.Info().Capabilities.Has(cudadrv.PeerAccess) {
		return false, nil
	}
	if !other.driver.Info().Capabilities.Has(cudadrv.PeerAccess) {
		return false, nil
	}
	can, err := peers.DeviceCanAccessPeer(other.driver.Info().Ordinal)
	if err != nil {
		return false, failed("", e.peers.Failed(err, e.driver))
	}
	return can, nil
}
