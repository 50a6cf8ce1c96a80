package expvars_test

import (
	"encoding/json"
	"errors"
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
	name := fmt.Sprintf("vram %d", published()) // names are for the whole process, and the test may run again in it
	d, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	before := published()
	require.NoError(t, expvars.Publish(name, d))
	require.ErrorIs(t, expvars.Publish(name, d), expvars.ErrPublished)
	assert.Equal(t, before+1, published())
	s, err := d.NewStream()
	require.NoError(t, err)
	b, err := s.Alloc(3 << 20)
	require.NoError(t, err)
	read := func() (got struct {
		LiveBytes  int64  `json:"live_bytes"`
		AllocCount uint64 `json:"alloc_count"`
	},
	) {
		require.NoError(t, json.Unmarshal([]byte(expvar.Get(name).String()), &got))
		return got
	}
	assert.Equal(t, int64(3<<20), read().LiveBytes)
	require.NoError(t, b.Free())
	assert.Zero(t, read().LiveBytes)
	require.NoError(t, d.Close())
	assert.Equal(t, uint64(1), read().AllocCount)
}

// published is the number of names.
func published() (count int) {
	expvar.Do(func(expvar.KeyValue) { count++ })
	return count
}

func Example() {
	device, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{})})
	if err != nil {
		panic(err)
	}
	defer device.Close()
	if err := expvars.Publish("gpu", device); err != nil && !errors.Is(err, expvars.ErrPublished) {
		panic(err)
	}
	fmt.Println(expvar.Get("gpu") != nil)
	// Output: true
}
