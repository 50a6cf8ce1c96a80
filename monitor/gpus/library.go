package gpus

import (
	"bytes"
	"runtime"
	"unsafe"

	loader "github.com/go-vram/vram/cudadrv/dynamic/library"
)

// nvmlReturn_t, as far as this package distinguishes results.
const (
	success          = 0
	notSupported     = 3
	insufficientSize = 7
	functionMissing  = 13
	versionMismatch  = 25
)

// function numbers the functions of NVML that are called.
type function int

// The functions, by nvml.h's names without versions.
const (
	initialize function = iota
	shutdown
	errorString
	deviceCount
	handleByIndex
	deviceName
	deviceUUID
	pciInfo
	memoryInfo2
	memoryInfo1
	computeProcesses
	graphicsProcesses
	mpsProcesses
	functionCount
)

// names returns the symbols of a function, the newest first; all of them take the same arguments. Functions of the list of processes
// have records of 24 bytes in their versions 2 and 3: version 1 has another record.
func (f function) names() []string {
	return [functionCount][]string{
		initialize:        {"nvmlInit_v2"},
		shutdown:          {"nvmlShutdown"},
		errorString:       {"nvmlErrorString"},
		deviceCount:       {"nvmlDeviceGetCount_v2"},
		handleByIndex:     {"nvmlDeviceGetHandleByIndex_v2"},
		deviceName:        {"nvmlDeviceGetName"},
		deviceUUID:        {"nvmlDeviceGetUUID"},
		pciInfo:           {"nvmlDeviceGetPciInfo_v3"},
		memoryInfo2:       {"nvmlDeviceGetMemoryInfo_v2"},
		memoryInfo1:       {"nvmlDeviceGetMemoryInfo"},
		computeProcesses:  {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"},
		graphicsProcesses: {"nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2"},
		mpsProcesses:      {"nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v2"},
	}[f]
}

// required reports whether no device can be listed without the function.
func (f function) required() bool { return f <= handleByIndex && f != errorString }

const (
	// longestText is the room for texts: nvml.h asks for 96 bytes at most (NVML_DEVICE_UUID_V2_BUFFER_SIZE).
	longestText = 96
	// memoryVersion is nvmlMemory_v2: the struct's 40 bytes, and its version.
	memoryVersion = 40 | 2<<24
)

// pci is nvmlPciInfo_t.
type pci struct {
	_                   [16]byte // the address as a text
	domain, bus, device uint32
	_                   [2]uint32 // IDs of the product
	_                   [32]byte  // the address as a text, with a longer domain
}

// memory2 is nvmlMemory_v2_t.
type memory2 struct {
	version                     uint32
	_                           uint32
	total, reserved, free, used uint64
}

// memory1 is nvmlMemory_t.
type memory1 struct{ total, free, used uint64 }

// library is NVML, after nvmlInit_v2. One goroutine uses it at a time. It has the memory of its calls' arguments and results, since
// C writes there: it is in the heap, which does not move.
type library struct {
	path      string
	functions [functionCount]loader.Function // 0 where the library lacks the function
	found     [functionCount]string          // the symbol that was found

	args    [3]uintptr
	handle  uintptr
	count   uint32
	text    [longestText]byte
	address pci
	memory2 memory2
	memory1 memory1
	records []uint64 // of a list of processes
}

// openLibrary opens NVML and starts it.
func openLibrary(path string) (*library, error) {
	names := []string{"libnvidia-ml.so.1"}
	if path != "" {
		names = []string{path}
	}
	failure := &LibraryError{Tried: names}
	for _, name := range names {
		opened, err := loader.Open(name)
		if err != nil {
			failure.Errs = append(failure.Errs, err)
			continue
		}
		l := &library{path: opened.Path()}
		if err := l.resolve(opened); err != nil {
			return nil, err
		}
		return l, l.call(initialize)
	}
	return nil, failure
}

// resolve looks up all functions.
func (l *library) resolve(opened *loader.Library) error {
	var missing []string
	for f := range functionCount {
		for _, name := range f.names() {
			if at, err := opened.Function(name); err == nil {
				l.functions[f], l.found[f] = at, name
				break
			}
		}
		if l.functions[f] == 0 && f.required() {
			missing = append(missing, f.names()[0])
		}
	}
	if len(missing) > 0 {
		return &SymbolError{l.path, missing}
	}
	return nil
}

// close ends the use of NVML.
func (l *library) close() error { return l.call(shutdown) }

// call calls a function. The arguments are numbers, and addresses in l.
func (l *library) call(f function, args ...uintptr) error {
	if l.functions[f] == 0 {
		return &AnswerError{f.names()[0], "the library " + l.path + " lacks it"}
	}
	if code := l.code(f, args...); code != success {
		return &CallError{l.found[f], int(code), l.describe(code)}
	}
	return nil
}

// code calls a function that the library has, and returns its result.
func (l *library) code(f function, args ...uintptr) int32 {
	n := copy(l.args[:], args)
	code := int32(l.functions[f].Call(l.args[:n])) //nolint:gosec // nvmlReturn_t is an int
	runtime.KeepAlive(l)
	return code
}

// at returns an address in l for C.
func at[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// describe returns NVML's text of a result.
func (l *library) describe(code int32) string {
	if l.functions[errorString] == 0 {
		return ""
	}
	l.args[0] = uintptr(uint32(code)) //nolint:gosec // the bits of an int
	word := [1]uintptr{l.functions[errorString].Call(l.args[:1])}
	start := *(*unsafe.Pointer)(unsafe.Pointer(&word)) // memory of the library's
	if start == nil {
		return ""
	}
	var text []byte
	for i := range longestText {
		c := *(*byte)(unsafe.Add(start, i))
		if c == 0 {
			break
		}
		text = append(text, c)
	}
	return printable(string(text), longestText)
}

// ask calls a function that writes a text, and returns it.
func (l *library) ask(f function) (string, error) {
	clear(l.text[:])
	if err := l.call(f, l.handle, at(&l.text), longestText); err != nil {
		return "", err
	}
	text, _, _ := bytes.Cut(l.text[:], []byte{0})
	return printable(string(text), longestText), nil
}
