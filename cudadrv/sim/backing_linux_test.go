//go:build amd64 || arm64 || loong64 || ppc64le || riscv64

package sim

import (
	"bytes"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// A part of the file that was emptied reads as zeros; the rest stays.
func TestAnEmptiedPartReadsAsZeros(t *testing.T) {
	const part = 1 << 20
	b, err := newBacking()
	require.NoError(t, err)
	base, err := b.reserve(2 * part)
	require.NoError(t, err)
	require.NoError(t, b.show(base, 2*part, part))
	memory := unsafe.Slice((*byte)(base), 2*part)
	for i := range memory {
		memory[i] = 1
	}
	require.NoError(t, b.empty(part, part))
	assert.Equal(t, make([]byte, part), memory[:part])
	assert.Equal(t, bytes.Repeat([]byte{1}, part), memory[part:])
	require.NoError(t, b.release(base, 2*part))
	require.NoError(t, b.close())
}

// A device whose file cannot be made is not opened: Open returns no device with the error.
func TestADeviceWithoutItsFile(t *testing.T) {
	var usual syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &usual))
	none := usual
	none.Cur = 0
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	dev, err := New(Config{Bytes: true}).Open(0)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &usual))
	require.ErrorIs(t, err, cudadrv.ErrNoDriver)
	require.ErrorIs(t, err, syscall.EMFILE)
	assert.True(t, dev == nil, "an interface with a nil pointer is none") //nolint:testifylint // Nil takes both for nil
}

// Each call on a file that is not there says so.
func TestABackingPassesErrorsOn(t *testing.T) {
	none := memfd{noFile}
	base, err := none.reserve(4096)
	require.NoError(t, err)
	for name, err := range map[string]error{
		"show":  none.show(base, 4096, 0),
		"empty": none.empty(4096, 0),
		"close": none.close(),
	} {
		require.ErrorIs(t, err, syscall.EBADF, name)
	}
	require.NoError(t, none.release(base, 4096))
	for name, err := range map[string]error{
		"hide":     none.hide(unsafe.Add(base, 1), 4096), // between two pages
		"release":  none.release(unsafe.Add(base, 1), 4096),
		"reserve":  second(none.reserve(0)),
		"allocate": second(none.allocate(0)),
	} {
		require.ErrorIs(t, err, syscall.EINVAL, name)
	}
}

func second[T any](_ T, err error) error { return err }
