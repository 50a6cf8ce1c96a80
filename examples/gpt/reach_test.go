package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// Several devices open whether their memory can be reached or not: plain segments cannot.
func TestDevicesReachEachOtherWhereTheyCan(t *testing.T) {
	for _, plain := range []bool{false, true} {
		driver := sim.New(sim.Config{Devices: 2, Bytes: true, TimedKernels: true, NoVirtualMemory: plain})
		all, err := openDevices(options{config: vram.Config{Driver: driver}, devices: []int{0, 1}})
		require.NoError(t, err)
		require.Len(t, all, 2)
		if err := all[0].Device().EnablePeerAccess(all[1].Device()); plain {
			require.ErrorIs(t, err, vram.ErrNoPeerAccess)
		} else {
			require.NoError(t, err)
		}
		for _, d := range all {
			assert.NoError(t, d.Close(t.Context()))
		}
	}
}
