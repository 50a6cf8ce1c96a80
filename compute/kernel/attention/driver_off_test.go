//go:build !gpu

package attention_test

import (
	"testing"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/vramtest"
)

// open opens a simulated device that executes kernels and looks for their mistakes.
func open(tb testing.TB) *vram.Device {
	tb.Helper()
	return vramtest.Open(tb, vramtest.Kernels()).Device
}
