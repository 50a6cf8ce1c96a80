//go:build linux && (amd64 || arm64) && gpu

package share

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Questions that only a GPU answers. The answers are printed with -v.

// Work is behind the event of a peer that dies before the event is reached: does it ever run? Both are processes that
// can be killed.
func TestWorkBehindTheEventOfADeadPeer(t *testing.T) {
	a, b := connection(t)
	maker := startAt(t, a, "", "")
	user := startAt(t, b, "", "")
	maker.does("new")
	maker.tell("export")
	user.does("import")
	maker.says("ok")
	maker.does("busy", "publish")
	user.does("await")
	maker.kill()
	user.tell("settle")
	require.True(t, user.output.Scan())
	t.Logf("waiting for the stream: %s", user.output.Text())
	user.tell("await")
	require.True(t, user.output.Scan())
	assert.Contains(t, user.output.Text(), "connection ended")
	user.tell("close")
	require.True(t, user.output.Scan())
	t.Logf("closing the memory: %s", user.output.Text())
}

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
