//go:build linux && (amd64 || arm64) && gpu

package share

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Questions that only a GPU answers. The answers are printed with -v.

// The memory goes back to the GPU when its last process closes it, and not before.
func TestMemoryGoesBackToTheGPU(t *testing.T) {
	s := openFirst(t, "")
	p, conn := start(t, "", "")
	p.does("new")
	p.tell("export")
	m, err := Import(s.c, conn)
	require.NoError(t, err)
	p.says("ok")
	p.does("fill g", "publish")
	require.NoError(t, m.Await(t.Context(), s.c))
	p.kill()
	s.holds(m, 'g')
	free := func() int64 {
		freeBytes, _, err := m.device.MemGetInfo()
		require.NoError(t, err)
		return freeBytes
	}
	before := free()
	require.NoError(t, m.Close())
	t.Logf("free before Close %d, after %d", before, free())
}
