package cudadrv

import (
	"errors"
	"fmt"
)

// The errors of finding and opening a device. Drivers wrap them with details.
var (
	// ErrNoDriver is the lack of a usable GPU driver on this machine.
	ErrNoDriver = errors.New("cudadrv: no GPU driver")
	// ErrNoDevice says that the driver has no device with the wanted ordinal.
	ErrNoDevice = errors.New("cudadrv: no such device")
	// ErrNotOpen refuses a call on a nil or zero value.
	ErrNotOpen = errors.New("vram: not opened: nil or zero")
)

// NotOpenError is ErrNotOpen of an argument of a call.
type NotOpenError struct {
	Argument string `json:"argument"`
}

// Error names the argument.
func (e *NotOpenError) Error() string {
	return "vram: the argument " + e.Argument + " is not opened: nil or zero"
}

// Is makes errors.Is(err, ErrNotOpen) hold.
func (e *NotOpenError) Is(target error) bool { return target == ErrNotOpen }

// Result is a CUresult. Codes that this package does not know keep their number.
type Result int32

// The results that the allocator and its drivers tell apart; numbers and names are CUDA's.
const (
	Success         Result = 0
	InvalidValue    Result = 1
	OutOfMemory     Result = 2
	NotInitialized  Result = 3
	Deinitialized   Result = 4
	StubLibrary     Result = 34
	DeviceInUse     Result = 46
	NoDevice        Result = 100
	InvalidDevice   Result = 101
	InvalidContext  Result = 201
	MapFailed       Result = 205
	UnmapFailed     Result = 206
	AlreadyMapped   Result = 208
	NotMapped       Result = 211
	OperatingSystem Result = 304
	InvalidHandle   Result = 400
	IllegalState    Result = 401
	NotFound        Result = 500
	NotReady        Result = 600
	IllegalAddress  Result = 700

	HostMemoryAlreadyRegistered Result = 712
	HostMemoryNotRegistered     Result = 713

	StackError            Result = 714
	InvalidAddressSpace   Result = 717
	InvalidProgramCounter Result = 718
	LaunchTimeout         Result = 702
	ECCUncorrectable      Result = 214
	NVLinkUncorrectable   Result = 220
	HardwareContained     Result = 721

	LaunchFailed     Result = 719
	NotPermitted     Result = 800
	NotSupported     Result = 801
	SystemNotReady   Result = 802
	DriverMismatch   Result = 803
	CompatMismatch   Result = 804
	CaptureViolation Result = 900
	CaptureBroken    Result = 901
	CaptureMerge     Result = 902
	CaptureUnmatched Result = 903
	CaptureUnjoined  Result = 904
	CaptureIsolation Result = 905
	CaptureImplicit  Result = 906
	CapturedEvent    Result = 907
	Unknown          Result = 999

	// Of kernels and graphs.
	InvalidImage             Result = 200
	NoBinaryForGPU           Result = 209
	PeerAccessUnsupported    Result = 217
	InvalidPTX               Result = 218
	CompilerNotFound         Result = 221
	UnsupportedPTXVersion    Result = 222
	LaunchOutOfResources     Result = 701
	PeerAccessAlreadyEnabled Result = 704
	AssertionFailed          Result = 710
	IllegalInstruction       Result = 715
	MisalignedAddress        Result = 716
	CaptureWrongThread       Result = 908
	UpdateFailure            Result = 910
)

var resultNames = map[Result]string{ //nolint:gochecknoglobals // a constant table
	Success:         "CUDA_SUCCESS",
	InvalidValue:    "CUDA_ERROR_INVALID_VALUE",
	OutOfMemory:     "CUDA_ERROR_OUT_OF_MEMORY",
	NotInitialized:  "CUDA_ERROR_NOT_INITIALIZED",
	Deinitialized:   "CUDA_ERROR_DEINITIALIZED",
	StubLibrary:     "CUDA_ERROR_STUB_LIBRARY",
	DeviceInUse:     "CUDA_ERROR_DEVICE_UNAVAILABLE",
	NoDevice:        "CUDA_ERROR_NO_DEVICE",
	InvalidDevice:   "CUDA_ERROR_INVALID_DEVICE",
	InvalidContext:  "CUDA_ERROR_INVALID_CONTEXT",
	MapFailed:       "CUDA_ERROR_MAP_FAILED",
	UnmapFailed:     "CUDA_ERROR_UNMAP_FAILED",
	AlreadyMapped:   "CUDA_ERROR_ALREADY_MAPPED",
	NotMapped:       "CUDA_ERROR_NOT_MAPPED",
	OperatingSystem: "CUDA_ERROR_OPERATING_SYSTEM",
	InvalidHandle:   "CUDA_ERROR_INVALID_HANDLE",
	IllegalState:    "CUDA_ERROR_ILLEGAL_STATE",
	NotFound:        "CUDA_ERROR_NOT_FOUND",
	NotReady:        "CUDA_ERROR_NOT_READY",
	IllegalAddress:  "CUDA_ERROR_ILLEGAL_ADDRESS",

	HostMemoryAlreadyRegistered: "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
	HostMemoryNotRegistered:     "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",

	StackError:            "CUDA_ERROR_HARDWARE_STACK_ERROR",
	InvalidAddressSpace:   "CUDA_ERROR_INVALID_ADDRESS_SPACE",
	InvalidProgramCounter: "CUDA_ERROR_INVALID_PC",
	LaunchTimeout:         "CUDA_ERROR_LAUNCH_TIMEOUT",
	ECCUncorrectable:      "CUDA_ERROR_ECC_UNCORRECTABLE",
	NVLinkUncorrectable:   "CUDA_ERROR_NVLINK_UNCORRECTABLE",
	HardwareContained:     "CUDA_ERROR_CONTAINED",

	LaunchFailed:     "CUDA_ERROR_LAUNCH_FAILED",
	NotPermitted:     "CUDA_ERROR_NOT_PERMITTED",
	NotSupported:     "CUDA_ERROR_NOT_SUPPORTED",
	SystemNotReady:   "CUDA_ERROR_SYSTEM_NOT_READY",
	DriverMismatch:   "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
	CompatMismatch:   "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
	CaptureViolation: "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
	CaptureBroken:    "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
	CaptureMerge:     "CUDA_ERROR_STREAM_CAPTURE_MERGE",
	CaptureUnmatched: "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
	CaptureUnjoined:  "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
	CaptureIsolation: "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
	CaptureImplicit:  "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
	CapturedEvent:    "CUDA_ERROR_CAPTURED_EVENT",
	Unknown:          "CUDA_ERROR_UNKNOWN",

	InvalidImage:             "CUDA_ERROR_INVALID_IMAGE",
	NoBinaryForGPU:           "CUDA_ERROR_NO_BINARY_FOR_GPU",
	PeerAccessUnsupported:    "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
	InvalidPTX:               "CUDA_ERROR_INVALID_PTX",
	CompilerNotFound:         "CUDA_ERROR_JIT_COMPILER_NOT_FOUND",
	UnsupportedPTXVersion:    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
	LaunchOutOfResources:     "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
	PeerAccessAlreadyEnabled: "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
	AssertionFailed:          "CUDA_ERROR_ASSERT",
	IllegalInstruction:       "CUDA_ERROR_ILLEGAL_INSTRUCTION",
	MisalignedAddress:        "CUDA_ERROR_MISALIGNED_ADDRESS",
	CaptureWrongThread:       "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
	UpdateFailure:            "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
}

// Sticky reports whether a result can come from work that has failed on the device, such as an illegal address: then each later
// call of the process on that device fails with the same result.
func (r Result) Sticky() bool {
	switch r { //nolint:exhaustive // the others are of a call alone
	case IllegalAddress, LaunchTimeout, AssertionFailed, StackError, IllegalInstruction, MisalignedAddress, InvalidAddressSpace,
		InvalidProgramCounter, LaunchFailed, ECCUncorrectable, NVLinkUncorrectable, HardwareContained:
		return true
	}
	return false
}

// String returns CUDA's name of the result, or its number where the name is not known.
func (r Result) String() string {
	if s, ok := resultNames[r]; ok {
		return s
	}
	return fmt.Sprintf("CUresult(%d)", int32(r))
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (r Result) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// CallError is a driver call that failed.
type CallError struct {
	Func   string `json:"func"` // the CUDA function: "cuMemCreate"
	Result Result `json:"result"`
	Name   string `json:"name"`   // the driver's own name of a Result that this package does not know; else empty
	Detail string `json:"detail"` // details of the wrapper beyond the code; may be empty
	Place  string `json:"place"`  // "file.go:line" of the code that made the call, where the driver notes it; may be empty
}

// Error names the call, CUDA's name of the result, the detail and the place.
func (e *CallError) Error() string {
	name := e.Name
	if name == "" {
		name = e.Result.String()
	}
	text := e.Func + ": " + name
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.Place != "" {
		text += " (" + e.Place + ")"
	}
	return text
}

// Is makes errors.Is(err, cudadrv.OutOfMemory) work: a Result is an error of its own.
func (e *CallError) Is(target error) bool {
	r, ok := target.(Result)
	return ok && r == e.Result
}

// Error makes a Result usable as the target of errors.Is.
func (r Result) Error() string { return r.String() }
