//go:build gpu && gorgonia && cgo && linux && (amd64 || arm64)

package gorgonia_test

import (
	"testing"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/drivertest"
	"github.com/go-vram/vram/cudadrv/gorgonia"
)

// What holds on the fake holds on the first GPU of the machine, in the primary context and in one of the caller's.
func TestHardwareConformance(t *testing.T) {
	for name, config := range map[string]func(t *testing.T) gorgonia.Config{
		"primary": func(*testing.T) gorgonia.Config { return gorgonia.Config{} },
		"adopted": func(t *testing.T) gorgonia.Config {
			t.Helper()
			return gorgonia.Config{Context: newContext(t, 0)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			drivertest.Run(t, func(t *testing.T) cudadrv.Driver {
				t.Helper()
				return gorgonia.New(config(t))
			})
		})
	}
}
