package sleep_test

import (
	"testing"

	"github.com/go-vram/vram/cuda/sleep"
	"github.com/go-vram/vram/internal/eachcall"
)

// Each method of a value that is nil or zero refuses the call: Sleep first refuses contents that are neither saved nor dropped.
func TestValuesThatAreNotOpenRefuse(t *testing.T) {
	eachcall.NotOpen(t, sleep.ErrNotOpen, []string{"Arena.Sleep", "Arena.Spent"}, (*sleep.Arena)(nil), new(sleep.Arena))
}
