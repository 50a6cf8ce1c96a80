package gpus

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
)

const (
	// mostDevices bounds the devices: a machine has 16 GPUs at most today.
	mostDevices = 1024
	// mostBytes bounds a size.
	mostBytes = 1 << 62
	// mostPID is Linux's largest.
	mostPID = 1 << 22

	// firstRoom, mostProcesses and mostTries bound a list of processes: room for the first question, for the last, and questions. Not
	// fewer: processes start while they are counted.
	firstRoom     = 64
	mostProcesses = 4096
	mostTries     = 6

	// Words of 8 bytes of a record, nvmlProcessInfo_t: the PID in 4 bytes and 4 that are not used, its bytes, and the instances of MIG
	// in 4 bytes each. The long one, of drivers 535.43 to 535.86, has the protected bytes, too.
	recordWords     = 3
	longRecordWords = 4
	// unwritten fills the room of a list.
	unwritten = 0xa5a5a5a5a5a5a5a5
	// notAvailable is NVML_VALUE_NOT_AVAILABLE.
	notAvailable = math.MaxUint64
)

// devices reads all devices, with their processes as the files show them.
func (l *library) devices(files fs.FS) ([]Device, error) {
	l.count = 0
	if err := l.call(deviceCount, at(&l.count)); err != nil {
		return nil, err
	}
	if l.count > mostDevices {
		return nil, &AnswerError{l.found[deviceCount], fmt.Sprintf("%d devices", l.count)}
	}
	all := make([]Device, 0, l.count)
	for i := range int(l.count) {
		all = append(all, l.device(i, files))
	}
	return all, nil
}

// device reads a device. Failures are its problems.
func (l *library) device(index int, files fs.FS) Device {
	d := Device{Index: index}
	failed := func(err error) bool {
		if err != nil {
			d.Problems = append(d.Problems, err)
		}
		return err != nil
	}
	l.handle = 0
	if failed(l.call(handleByIndex, uintptr(index), at(&l.handle))) {
		return d
	}
	var err error
	d.Name, err = l.ask(deviceName)
	failed(err)
	d.UUID, err = l.ask(deviceUUID)
	failed(err)
	d.PCI, err = l.pciAddress()
	failed(err)
	d.MemoryKnown = !failed(l.memory(&d))
	d.ProcessesKnown = !failed(l.processes(&d, files))
	return d
}

// pciAddress returns the address of the device, as cudadrv.Info has it.
func (l *library) pciAddress() (string, error) {
	l.address = pci{}
	if err := l.call(pciInfo, l.handle, at(&l.address)); err != nil {
		return "", err
	}
	a := &l.address
	if a.bus > 0xff || a.device > 31 {
		return "", &AnswerError{l.found[pciInfo], fmt.Sprintf("bus %#x, device %#x", a.bus, a.device)}
	}
	return fmt.Sprintf("%04x:%02x:%02x.0", a.domain, a.bus, a.device), nil
}

// memory reads the memory of the device.
func (l *library) memory(d *Device) error {
	l.memory2 = memory2{version: memoryVersion}
	f, code := memoryInfo2, int32(functionMissing)
	if l.functions[f] != 0 {
		code = l.code(f, l.handle, at(&l.memory2))
	}
	m := l.memory2
	switch code {
	case success:
	case functionMissing, versionMismatch: // of a driver before 510
		f, l.memory1 = memoryInfo1, memory1{}
		if err := l.call(f, l.handle, at(&l.memory1)); err != nil {
			return err
		}
		m = memory2{total: l.memory1.total, free: l.memory1.free, used: l.memory1.used}
	default:
		return &CallError{l.found[f], int(code), l.describe(code)}
	}
	if m.total > mostBytes || m.free > m.total || m.used > m.total || m.reserved > m.total {
		return &AnswerError{l.found[f], fmt.Sprintf("%d bytes, %d free, %d used, %d reserved", m.total, m.free, m.used, m.reserved)}
	}
	d.TotalBytes, d.FreeBytes, d.UsedBytes, d.ReservedBytes = int64(m.total), int64(m.free), int64(m.used), int64(m.reserved) //nolint:gosec // at most mostBytes
	return nil
}

// processes reads the lists of processes. A device without one of them, as without graphics, has the others.
func (l *library) processes(d *Device, files fs.FS) error {
	type key struct{ pid, instance int }
	places := map[key]int{}
	var all []Process
	var failure error
	answered := false
	for _, list := range []struct {
		function function
		kind     Kind
	}{{computeProcesses, Compute}, {graphicsProcesses, Graphics}, {mpsProcesses, MPS}} {
		if l.functions[list.function] == 0 && list.kind != Compute {
			continue
		}
		some, err := l.list(list.function, d)
		if err != nil {
			if failed, ok := errors.AsType[*CallError](err); list.kind == Compute || !ok || failed.Code != notSupported {
				failure = errors.Join(failure, err)
			}
			continue
		}
		answered = true
		for _, p := range some {
			at, known := places[key{p.PID, p.Instance}]
			if !known { // a process with several contexts is in several lists, each with all of its bytes
				at = len(all)
				places[key{p.PID, p.Instance}] = at
				all = append(all, p)
			}
			q := &all[at]
			q.Kinds |= list.kind
			q.Bytes, q.BytesKnown = max(q.Bytes, p.Bytes), q.BytesKnown || p.BytesKnown
		}
	}
	for i := range all {
		identify(files, &all[i])
	}
	sortProcesses(all)
	if answered {
		d.Processes = all
	}
	return failure
}

// list reads one list. It asks again with more room while there is too little.
func (l *library) list(f function, d *Device) ([]Process, error) {
	room := firstRoom
	for range mostTries {
		if words := room * longRecordWords; len(l.records) < words {
			l.records = make([]uint64, words)
		}
		for i := range l.records {
			l.records[i] = unwritten
		}
		l.count = uint32(room) //nolint:gosec // at most mostProcesses
		if l.functions[f] == 0 {
			return nil, l.call(f)
		}
		code := l.code(f, l.handle, at(&l.count), at(&l.records[0]))
		count := int(l.count)
		switch {
		case code == success && count <= room:
			return l.read(f, count, d)
		case code == success:
			return nil, &AnswerError{l.found[f], fmt.Sprintf("%d processes in room for %d", count, room)}
		case code != insufficientSize:
			return nil, &CallError{l.found[f], int(code), l.describe(code)}
		case room == mostProcesses:
			return nil, &AnswerError{l.found[f], fmt.Sprintf("more than %d processes", mostProcesses)}
		}
		room = min(max(2*room, count+count/4), mostProcesses)
	}
	return nil, &AnswerError{l.found[f], fmt.Sprintf("a list that grew in each of %d questions", mostTries)}
}

// read reads the records of a list.
func (l *library) read(f function, count int, d *Device) ([]Process, error) {
	words := recordWords
	for _, w := range l.records[recordWords*count : longRecordWords*count] {
		if w != unwritten {
			words = longRecordWords
		}
	}
	all := make([]Process, 0, count)
	for i := range count {
		record := l.records[words*i:]
		pid, instance := uint32(record[0]), uint32(record[2]) //nolint:gosec // halves, the first one first
		if pid > mostPID {
			return nil, &AnswerError{l.found[f], fmt.Sprintf("process %d", pid)}
		}
		p := Process{PID: int(pid), Instance: NoInstance, Own: int(pid) == os.Getpid()}
		if instance <= math.MaxInt16 {
			p.Instance = int(instance)
		}
		used := record[1]
		if used != notAvailable && used <= mostBytes && (!d.MemoryKnown || used <= uint64(d.TotalBytes)) { //nolint:gosec // not negative
			p.Bytes, p.BytesKnown = int64(used), true //nolint:gosec // at most mostBytes
		}
		all = append(all, p)
	}
	return all, nil
}
