//go:build !linux || !(amd64 || arm64)

package dynamic

import (
	"errors"

	"github.com/go-vram/vram/cudadrv"
)

// library is nothing here: libcuda is called on Linux on amd64 and arm64 only.
type library struct{}

var errUnsupported = errors.New("libcuda is called on Linux on amd64 and arm64 only")

func loadLibrary(string) (*library, error) {
	return nil, &LibraryError{Tried: []string{"libcuda.so.1"}, Errs: []error{errUnsupported}}
}

func (*library) deviceCount() (int, error) { return 0, errUnsupported }

func (*library) open(int, uintptr) (cudadrv.Device, error) { return nil, errUnsupported }

func (*library) info(int) (cudadrv.Info, error) { return cudadrv.Info{}, errUnsupported }
