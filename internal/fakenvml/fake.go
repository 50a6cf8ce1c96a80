package fakenvml

import (
	"runtime"
	"unsafe"

	"github.com/go-vram/vram/cudadrv/dynamic/library"
)

// Fake controls a built library that is open in this process. Its methods panic where the library lacks a function.
type Fake struct {
	path string
	of   *library.Library
}

// Open opens a built library, which then has the state of its path.
func Open(path string) (*Fake, error) {
	of, err := library.Open(path)
	if err != nil {
		return nil, err
	}
	return &Fake{path, of}, nil
}

// Path returns the path of the library.
func (f *Fake) Path() string { return f.path }

// Kinds of processes.
const (
	Compute = iota
	Graphics
	MPS
)

// NoInstance is the instance of a process without MIG, and NotAvailable the bytes of a process that are not known.
const (
	NoInstance   = 0xffffffff
	NotAvailable = ^uint64(0)
)

// Device is a GPU of the fake.
type Device struct {
	Name, UUID                  string
	Domain, Bus, Slot           uint32
	Total, Reserved, Free, Used uint64
}

// SetDevices sets the devices.
func (f *Fake) SetDevices(devices ...Device) {
	for i, d := range devices {
		name, uuid, at := text(d.Name), text(d.UUID), uintptr(i)
		f.call("fakenvml_set_names", at, address(name), address(uuid))
		runtime.KeepAlive(name)
		runtime.KeepAlive(uuid)
		f.call("fakenvml_set_pci", at, uintptr(d.Domain), uintptr(d.Bus), uintptr(d.Slot))
		f.call("fakenvml_set_memory", at, uintptr(d.Total), uintptr(d.Reserved), uintptr(d.Free), uintptr(d.Used))
	}
	f.SetCount(uint32(len(devices))) //nolint:gosec // a few
}

// SetCount sets the number of devices alone.
func (f *Fake) SetCount(count uint32) { f.call("fakenvml_set_devices", uintptr(count)) }

// SetFreed sets the bytes of a device that become free after each question for its memory.
func (f *Fake) SetFreed(device int, bytes uint64) {
	f.call("fakenvml_set_freed", uintptr(device), uintptr(bytes))
}

// AddProcess adds a process to a list of a device.
func (f *Fake) AddProcess(device, kind int, pid uint32, bytes uint64, instance uint32) {
	f.call("fakenvml_add_process", uintptr(device), uintptr(kind), uintptr(pid), uintptr(bytes), uintptr(instance))
}

// SetLongRecords has lists written with records of 32 bytes.
func (f *Fake) SetLongRecords(long bool) { f.call("fakenvml_set_records", number(long)) }

// SetEndless has texts written without a 0 at their end.
func (f *Fake) SetEndless(endless bool) { f.call("fakenvml_set_endless", number(endless)) }

// SetGrowth adds so many processes to each list before it is written.
func (f *Fake) SetGrowth(processes uint32) { f.call("fakenvml_set_growth", uintptr(processes)) }

// SetClaimed sets the count of processes that each list claims; 0: the true one.
func (f *Fake) SetClaimed(count uint32) { f.call("fakenvml_set_claimed", uintptr(count)) }

// Hold has each call wait until it is false.
func (f *Fake) Hold(hold bool) { f.call("fakenvml_hold", number(hold)) }

// Await waits for a call that is held.
func (f *Fake) Await() { f.call("fakenvml_await") }

// Fail has a call of a function fail with a result: the call of that number from now on; -1: all; 0: none.
func (f *Fake) Fail(function string, occurrence, result int) {
	name := text(function)
	f.call("fakenvml_fail", address(name), uintptr(occurrence), uintptr(result))
	runtime.KeepAlive(name)
}

// Calls returns the number of calls of a function.
func (f *Fake) Calls(function string) int {
	name := text(function)
	defer runtime.KeepAlive(name)
	return int(f.call("fakenvml_calls", address(name))) //nolint:gosec // a few
}

// Started returns the number of calls of nvmlInit_v2 less calls of nvmlShutdown.
func (f *Fake) Started() int { return int(int32(f.call("fakenvml_started"))) } //nolint:gosec // an int

func (f *Fake) call(name string, args ...uintptr) uintptr {
	function, err := f.of.Function(name)
	if err != nil {
		panic(err)
	}
	return function.Call(args)
}

// text returns a C string in Go's heap.
func text(s string) []byte { return append(make([]byte, 0, len(s)+1), s+"\x00"...) }

func address(text []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(text))) }

func number(b bool) uintptr {
	if b {
		return 1
	}
	return 0
}
