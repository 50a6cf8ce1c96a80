//go:build linux

package mutate

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reserves is a variable of the environment that has TestReserve do its work.
const reserves = "MUTATE_RESERVES"

// TestReserve reserves more addresses than memory is allowed, as the simulated device does: in a process of the test below.
func TestReserve(t *testing.T) {
	if os.Getenv(reserves) == "" {
		return
	}
	_, err := syscall.Mmap(-1, 0, 2*memoryKiB<<10, syscall.PROT_NONE, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	require.NoError(t, err)
}

// A test that reserves addresses runs; its data is what is bounded.
func TestAddressesAreNotBounded(t *testing.T) {
	p := &program{folder: ".", binary: os.Args[0]}
	out := p.runTests(t.Context(), []*test{{name: "TestReserve"}}, 0, time.Minute, reserves+"=1")
	assert.Equal(t, Survived, out.verdict, out.said)
}
