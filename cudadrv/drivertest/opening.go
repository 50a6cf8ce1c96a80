package drivertest

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

func testOpening(b *bench) {
	assert.NotEmpty(b, b.drv.Name())
	count, err := b.drv.DeviceCount()
	require.NoError(b, err)
	require.Positive(b, count)
	for _, ordinal := range []int{-1, count, count + 1000} {
		dev, err := b.drv.Open(ordinal)
		assert.ErrorIs(b, err, cudadrv.ErrNoDevice, "ordinal %d", ordinal)
		assert.Nil(b, dev)
	}

	assert.Equal(b, b.drv.Name(), b.info.Driver)
	assert.NotEmpty(b, b.info.Name)
	assert.Zero(b, b.info.Ordinal)
	assert.Positive(b, b.info.DriverVersion)
	assert.Positive(b, b.info.TotalBytes)
	if g := b.info.GranularityBytes; b.hasVirtualMemory() {
		assert.Positive(b, g)
		assert.Zero(b, g&(g-1), "%d is no power of two", g)
	} else {
		assert.Zero(b, g)
	}
	assert.Equal(b, b.info, b.dev.Info(), "it does not change")
	assert.NotZero(b, b.info.UUID)
}

// One view frees allocations of another, and closing one does not affect the other.
func testSharedDevice(b *bench) {
	other := must(b.drv.Open(0))(b)
	assert.Equal(b, b.info, other.Info())
	p := must(b.dev.MemAlloc(4096))(b)
	s := b.stream()
	e := must(other.EventCreate())(b)
	b.ok(other.MemsetD8Async(p, 1, 4096, s))
	b.ok(other.EventRecord(e, s))
	b.ok(b.dev.EventSynchronize(e))
	b.ok(other.MemFree(p))
	kept := must(other.MemAlloc(4096))(b)
	b.ok(other.Close())
	_, err := other.MemAlloc(4096)
	var callError *cudadrv.CallError
	assert.ErrorAs(b, err, &callError, "a call on a closed view while another is open")
	b.ok(b.dev.MemsetD8Async(kept, 2, 4096, s))
	b.ok(b.dev.MemFree(kept))
	b.ok(b.dev.EventDestroy(e))
	b.ok(b.dev.StreamDestroy(s))
}

func testClosedDevice(b *bench) {
	s, e := b.stream(), b.event()
	b.ok(b.dev.StreamDestroy(s))
	b.ok(b.dev.EventDestroy(e))
	b.ok(b.dev.Close())
	b.closed = true

	var callError *cudadrv.CallError
	_, err := b.dev.MemAlloc(4096)
	assert.ErrorAs(b, err, &callError, "an allocation after Close")
	_, _, err = b.dev.MemGetInfo()
	assert.ErrorAs(b, err, &callError)
	_, err = b.dev.StreamCreate()
	assert.ErrorAs(b, err, &callError)
	_, err = b.dev.EventCreate()
	assert.ErrorAs(b, err, &callError)
	assert.ErrorAs(b, b.dev.CtxSynchronize(), &callError)

	// The driver itself is not closed.
	again := must(b.drv.Open(0))(b)
	p := must(again.MemAlloc(4096))(b)
	b.ok(again.MemFree(p))
	b.ok(again.Close())
}
