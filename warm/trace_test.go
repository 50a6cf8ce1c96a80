package warm_test

import (
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/warm"
)

const recording = `t_us,op,id,size,stream
0,a,0,100,0
1,a,1,7,0
2,f,0,100,0
3,a,2,100,1
4,a,3,7,1
5,f,2,100,1
6,f,3,7,1
7,a,4,107,0
`

// The demand has the buffers of the first peak, by size.
func TestFromTrace(t *testing.T) {
	want, err := warm.FromTrace("short", strings.NewReader(recording))
	require.NoError(t, err)
	assert.Equal(t, []vram.Demand{{Bytes: 100, Count: 1}, {Bytes: 7, Count: 2}}, want)

	_, err = warm.FromTrace("wrong", strings.NewReader(recording+"8,f,9,1,0\n"))
	require.ErrorContains(t, err, "wrong:10")
	_, err = warm.FromTrace("cut off", io.MultiReader(strings.NewReader(recording), iotest.ErrReader(io.ErrNoProgress)))
	require.ErrorIs(t, err, io.ErrNoProgress)
	require.ErrorContains(t, err, "cut off:10")
}

// A device maps the peak of GPT-2's recording, and at most one page more for each run.
func TestADeviceTakesWhatATraceHeld(t *testing.T) {
	file, err := os.Open("../internal/trace/data/gpt2_train.csv.gz")
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	want, err := warm.FromTrace("gpt2_train", file)
	require.NoError(t, err)
	assert.EqualValues(t, 13594206920, total(want))
	dev, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	require.NoError(t, dev.Warm(t.Context(), want...))
	reserved := dev.Stats().ReservedBytes
	assert.InEpsilon(t, 13594206920, reserved, 0.01)
	require.NoError(t, dev.Close())
}
