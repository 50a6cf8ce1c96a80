//go:build linux && (amd64 || arm64)

package share

import (
	"context"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
)

const (
	mib   = int64(1) << 20
	bytes = 3 * mib // one granule and a half
)

// side is one process's part of a test: a device with a context, and a buffer to copy from and to.
type side struct {
	*testing.T
	faults *fault.Driver
	dev    *vram.Device
	c      *cuda.Context
	x      cuda.Buffer
}

// newSide opens a driver's device. It is closed at the end.
func newSide(t *testing.T, driver cudadrv.Driver) *side {
	t.Helper()
	s := &side{T: t, faults: fault.Wrap(driver)}
	var err error
	s.dev, err = vram.Open(vram.Config{Driver: s.faults})
	require.NoError(t, err)
	s.c = s.context()
	s.x, err = s.c.Alloc(bytes)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, s.x.Free())
		assert.NoError(t, s.c.Close())
		assert.NoError(t, s.dev.Close())
	})
	return s
}

func (s *side) context() *cuda.Context {
	s.Helper()
	stream, err := s.dev.NewStream()
	require.NoError(s, err)
	c, err := cuda.NewContext(stream)
	require.NoError(s, err)
	return c
}

func (s *side) make() *Memory {
	s.Helper()
	m, err := New(s.c, bytes)
	require.NoError(s, err)
	s.Cleanup(func() { assert.NoError(s, m.Close()) })
	return m
}

// fill submits a fill of the whole memory.
func (s *side) fill(m *Memory, value byte) {
	s.Helper()
	require.NoError(s, s.c.Fill8(cuda.Whole(s.x), value))
	require.NoError(s, m.CopyFrom(s.c, 0, cuda.Whole(s.x)))
}

// holds asserts that the memory holds a value, first and last.
func (s *side) holds(m *Memory, value byte) {
	s.Helper()
	got, err := read(s.c, m, s.x)
	require.NoError(s, err)
	assert.Equal(s, [2]byte{value, value}, got)
}

// read returns the first and the last byte.
func read(c *cuda.Context, m *Memory, x cuda.Buffer) (got [2]byte, err error) {
	if err := m.CopyTo(c, 0, cuda.Whole(x)); err != nil {
		return got, err
	}
	all := make([]byte, bytes)
	err = c.CopyOutAt(all, x, 0)
	return [2]byte{all[0], all[bytes-1]}, err
}

// connection returns a pair of connected sockets, which are closed at the end.
func connection(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	var both [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		conn, err := net.FileConn(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		both[i] = conn.(*net.UnixConn)
		t.Cleanup(func() { _ = conn.Close() })
	}
	return both[0], both[1]
}

// inBackground runs a function, whose error waits in the channel.
func inBackground(f func() error) <-chan error {
	failed := make(chan error, 1)
	go func() { failed <- f() }()
	return failed
}

// linkSides exports new memory of one side to the other.
func linkSides(t *testing.T, from, to *side) (mine, theirs *Memory) {
	t.Helper()
	a, b := connection(t)
	mine = from.make()
	exported := inBackground(func() error { return mine.Export(a) })
	theirs, err := Import(to.c, b)
	require.NoError(t, err)
	require.NoError(t, <-exported)
	t.Cleanup(func() { assert.NoError(t, theirs.Close()) })
	return mine, theirs
}

// descriptors counts the open files of this process by type.
func descriptors(t *testing.T) map[string]int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	kinds := map[string]int{}
	for _, e := range entries {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil {
			continue // the folder that is being read
		}
		kind, _, _ := strings.Cut(to, ":[")
		kinds[kind]++
	}
	return kinds
}

// inheritable are descriptors that a program which is started now would have, but for its first three.
func inheritable(t *testing.T) (all []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fdinfo")
	require.NoError(t, err)
	for _, e := range entries {
		info, err := os.ReadFile("/proc/self/fdinfo/" + e.Name())
		to, _ := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || len(e.Name()) == 1 && e.Name() < "3" {
			continue
		}
		for line := range strings.Lines(string(info)) {
			if flags, ok := strings.CutPrefix(line, "flags:"); ok && !strings.Contains(octal(flags), "2") {
				all = append(all, e.Name()+" "+to)
			}
		}
	}
	return all
}

// octal returns the digit of O_CLOEXEC (02000000), as "2" or "3" become "2".
func octal(flags string) string {
	flags = strings.TrimSpace(flags)
	if len(flags) < 7 {
		return ""
	}
	return map[byte]string{'2': "2", '3': "2", '6': "2", '7': "2"}[flags[len(flags)-7]]
}

// as asserts that a tree of errors has one of a type.
func as[E error](t *testing.T, err error) {
	t.Helper()
	var want E
	if assert.ErrorAs(t, err, &want) {
		assert.NotContains(t, want.Error(), "%!")
	}
}

func background() context.Context { return context.Background() }
