package modes_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/internal/trace"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

// rounds of each play: the first maps, the second settles, the third repeats.
const rounds = 3

// madeSeeds are the made traces of each shape.
const madeSeeds = uint64(8)

func simulator() cudadrv.Driver { return sim.New(sim.Config{}) }

func open(t *testing.T, name string) *trace.Trace {
	t.Helper()
	tr, err := trace.Open(name)
	require.NoError(t, err)
	return tr
}
