package expvars_test

import (
	"encoding/json"
	"expvar"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/monitor/expvars"
)

func TestPublish(t *testing.T) {
	assert.Nil(t, expvar.Get("vram"), "nothing is published before the call")
	d, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	require.NoError(t, expvars.Publish("vram", d))
	require.ErrorIs(t, expvars.Publish("vram", d), expvars.ErrPublished)
	s, err := d.NewStream()
	require.NoError(t, err)
	b, err := s.Alloc(3 << 20)
	require.NoError(t, err)
	read := func() (got struct {
		LiveBytes  int64  `json:"live_bytes"`
		AllocCount uint64 `json:"alloc_count"`
	},
	) {
		require.NoError(t, json.Unmarshal([]byte(expvar.Get("vram").String()), &got))
		return got
	}
	assert.Equal(t, int64(3<<20), read().LiveBytes)
	require.NoError(t, b.Free())
	assert.Zero(t, read().LiveBytes)
	require.NoError(t, d.Close())
	assert.Equal(t, uint64(1), read().AllocCount)
}

func Example() {
	device, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{})})
	if err != nil {
		panic(err)
	}
	defer device.Close()
	err = expvars.Publish("gpu", device)
	fmt.Println(err, expvar.Get("gpu") != nil)
	// Output: <nil> true
}
