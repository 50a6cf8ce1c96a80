package vram

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cudadrv/dynamic"
	"github.com/go-vram/vram/internal/units"
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

// roomInterval is how old the driver's word about free memory may be. Not shorter: cuMemGetInfo takes microseconds, and placements may
// come by the thousand. Not longer: other processes on the GPU take memory, too.
const roomInterval = 100 * time.Millisecond

// OpenAll opens the driver's devices of those ordinals, all of them where none is named, each as Open does with a copy of cfg, whose
// Ordinal must be 0. So LimitBytes is for each device, and functions of Events are called for all of them. It touches no GPU. The caller
// closes the set; after an error nothing is open. Errors: those of Open, *ConfigError.
func OpenAll(cfg Config, ordinals ...int) (*Set, error) {
	if cfg.Ordinal != 0 {
		return nil, badField("Ordinal", cfg.Ordinal, "0: the ordinals are arguments of OpenAll")
	}
	if cfg.Driver == nil {
		cfg.Driver = dynamic.New(dynamic.Config{})
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

// Devices are those of the set, in the order of OpenAll. The slice is the caller's.
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

// Place chooses the device of the set with the most room, that of the lowest place in the set among equals, and books the bytes there: so
// goroutines that place at the same time are spread, before any of them has allocated. Done ends the booking: call it once the memory
// is allocated, or not wanted any more.
//
// The room of a device is its limit less the memory in use, and no more than the driver has for it: memory that is held there and
// not in use, and free memory of the whole GPU, which is looked at most ten times a second; less the bookings. Memory in use is that
// of streams, their caches included, and of reservations. A placement reserves nothing: memory may be gone by the time of the
// allocation, which fails then. Place is a use of each device, and waits for the message that each pool is serving.
//
// Errors: *PlaceError, *ConfigError, ErrNotOpen, and those of the first use of any of the devices.
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

// room is how many bytes more could be in use on a device.
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
		freeBytes, _, err := e.driver.MemGetInfo()
		if err != nil {
			return 0, failed("", err)
		}
		seen = &driverMemory{freeBytes, books.ReservedBytes, time.Now()}
		s.rooms[number].last.Store(seen)
	}
	heldOrFree := seen.freeBytes + seen.reservedBytes // memory that the device took since was free then
	return min(books.LimitBytes, heldOrFree) - usedBytes, nil
}

// PlaceError reports that no device of a set has so much room. It is ErrOutOfMemory.
type PlaceError struct {
	RequestedBytes int64
	RoomBytes      int64 // of the device with the most
	Ordinal        int   // of that device
}

// Error has the sizes.
func (e *PlaceError) Error() string {
	return fmt.Sprintf("vram: no device has room for %s: device %d has the most, %s",
		units.AtLeast(e.RequestedBytes), e.Ordinal, units.Bytes(e.RoomBytes))
}

// Is makes errors.Is(err, ErrOutOfMemory) hold.
func (e *PlaceError) Is(target error) bool { return target == ErrOutOfMemory }
