package dynamic

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-vram/vram/cudadrv"
)

// LibraryError says that no CUDA driver library could be opened. It is a cudadrv.ErrNoDriver.
type LibraryError struct {
	Tried []string // names and paths, in order
	Errs  []error  // the system's error for each
}

// Error lists the places searched, and advice.
func (e *LibraryError) Error() string {
	tried := make([]string, 0, len(e.Tried))
	for i, name := range e.Tried {
		if i < len(e.Errs) {
			tried = append(tried, strings.TrimPrefix(e.Errs[i].Error(), "library: "))
		} else {
			tried = append(tried, name)
		}
	}
	return fmt.Sprintf("no CUDA driver library (%s): install NVIDIA's driver; in a container, start it with the GPU passed in; "+
		"or put the library's folder into LD_LIBRARY_PATH", strings.Join(tried, "; "))
}

// Unwrap makes it a cudadrv.ErrNoDriver.
func (e *LibraryError) Unwrap() []error { return append([]error{cudadrv.ErrNoDriver}, e.Errs...) }

// VersionError says that the driver is too old. It is a cudadrv.ErrNoDriver.
type VersionError struct {
	Library      string
	Have, Needed int // CUDA's notation: 11080 is 11.8
}

// Error includes the driver's version and the required one.
func (e *VersionError) Error() string {
	return fmt.Sprintf("%s is of CUDA %s, needed is %s or later: update NVIDIA's driver",
		e.Library, versionText(e.Have), versionText(e.Needed))
}

// Unwrap makes it a cudadrv.ErrNoDriver.
func (e *VersionError) Unwrap() error { return cudadrv.ErrNoDriver }

// SymbolError says that the library lacks functions that no device works without. It is a cudadrv.ErrNoDriver.
type SymbolError struct {
	Library string
	Symbols []string
	Feature string // the feature that needs them
}

// Error names the functions and their feature.
func (e *SymbolError) Error() string {
	return fmt.Sprintf("%s lacks %s, needed for %s: is it NVIDIA's driver library of CUDA %s or later?",
		e.Library, strings.Join(e.Symbols, ", "), e.Feature, versionText(leastVersion))
}

// Unwrap makes it a cudadrv.ErrNoDriver.
func (e *SymbolError) Unwrap() error { return cudadrv.ErrNoDriver }

// InitError says that the library is there and its start (cuInit) failed. It is a cudadrv.ErrNoDevice where CUDA
// found no device, and a cudadrv.ErrNoDriver otherwise.
type InitError struct {
	Library string
	Call    *cudadrv.CallError
}

// Error includes CUDA's error and advice.
func (e *InitError) Error() string {
	if e.Call == nil {
		return e.Library + ": its start failed"
	}
	return fmt.Sprintf("%s: %v: %s", e.Library, e.Call, initAdvice(e.Call.Result))
}

// Unwrap returns the failed call's error, and its kind for the caller.
func (e *InitError) Unwrap() []error {
	if e.Call == nil {
		return []error{cudadrv.ErrNoDriver}
	}
	if e.Call.Result == cudadrv.NoDevice {
		return []error{cudadrv.ErrNoDevice, e.Call}
	}
	return []error{cudadrv.ErrNoDriver, e.Call}
}

func initAdvice(r cudadrv.Result) string {
	switch r { //nolint:exhaustive // the others have no advice of their own
	case cudadrv.NoDevice:
		return "nvidia-smi should list a GPU, CUDA_VISIBLE_DEVICES should not hide it, and /dev/nvidia* should be readable and writable"
	case cudadrv.StubLibrary:
		return "this is the library to link with, not the driver: take the folder stubs out of LD_LIBRARY_PATH"
	case cudadrv.DriverMismatch, cudadrv.CompatMismatch:
		return "the library and the kernel's module are of different versions: restart after an update of the driver, and take " +
			"CUDA's compatibility libraries out of LD_LIBRARY_PATH"
	case cudadrv.SystemNotReady:
		return "the GPUs are not ready: on machines with NVSwitch the fabric manager has to run"
	case cudadrv.DeviceInUse:
		return "the GPU is in use by another process in exclusive mode"
	case cudadrv.NotPermitted, cudadrv.OperatingSystem, cudadrv.Unknown:
		return "the modules nvidia and nvidia-uvm should be loaded and /dev/nvidia* readable and writable"
	default:
		return "nvidia-smi should list a GPU"
	}
}

// ContextError says that Config.Context cannot be used.
type ContextError struct {
	Context uintptr
	Want    string // the allowed contexts
	Err     error  // the driver's error; may be nil
}

// Error names the context and the allowed ones.
func (e *ContextError) Error() string {
	text := fmt.Sprintf("Context is %#x, want %s", e.Context, e.Want)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the driver's error.
func (e *ContextError) Unwrap() error { return e.Err }

// versionText writes CUDA's notation as people do.
func versionText(version int) string { return fmt.Sprintf("%d.%d", version/1000, version%1000/10) }

// noOrdinal returns the error of Open with a number that no device has.
func noOrdinal(ordinal, count int) error {
	return fmt.Errorf("%w: %w", cudadrv.ErrNoDevice, &cudadrv.CallError{
		Func: "cuDeviceGet", Result: cudadrv.InvalidDevice, Detail: fmt.Sprintf("ordinal %d of %d", ordinal, count),
	})
}

// Missing reports whether an error of DeviceCount or Open says that this machine has no GPU for us: no library,
// or no device that it can see. A driver that is there and does not work is not missing.
func Missing(err error) bool {
	var noLibrary *LibraryError
	return errors.As(err, &noLibrary) || errors.Is(err, cudadrv.ErrNoDevice)
}
