package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
)

// A parcel lives until the receiver's copy, which waits for the sender's work, has finished on the device.
func TestHandedOverBufferLivesUntilItsCopyIsOver(t *testing.T) {
	t.Parallel()
	tr, gpu := steppedTraining(t, 1)
	const bytes = 64 << 20
	sender, receiver := tr.stages[0], tr.stages[1]
	from, err := sender.stream.Alloc(bytes)
	require.NoError(t, err)
	const work = 5 * time.Millisecond
	require.NoError(t, gpu.Launch(sender.stream.Handle(), work))
	sender.held = append(sender.held, from)
	began := gpu.Now()
	require.NoError(t, sender.handOver(turn{Kind: forward, MicroBatch: 0}, &operation{out: len(sender.held) - 1}))
	assert.Zero(t, sender.held[0], "it is the receiver's now")

	p, err := receiver.activations.receive(t.Context(), turn{Kind: forward, MicroBatch: 0})
	require.NoError(t, err)
	assert.Equal(t, from, p.buffer)
	require.NoError(t, receiver.queue.room())
	require.NoError(t, receiver.queue.add(turn{Kind: forward, MicroBatch: 0}, p))
	for range queueDepth - 1 {
		require.NoError(t, receiver.queue.room())
		assert.True(t, from.Live(), "its copy has not run")
		require.NoError(t, receiver.queue.add(turn{Kind: forward, MicroBatch: 1}, parcel{}))
	}
	assert.Equal(t, began, gpu.Now(), "nobody has waited so far")
	require.NoError(t, receiver.queue.room())
	assert.False(t, from.Live())
	copyTime := gpu.Now() - began - work
	assert.Positive(t, copyTime, "the copy ran behind the sender's work")
	require.NoError(t, tr.close())
}

// Buffers are freed in every state when the stages stop: ordered, on the road, arrived.
func TestReleaseFindsEverything(t *testing.T) {
	t.Parallel()
	tr, _ := steppedTraining(t, 1)
	const bytes = 64 << 20 // no less than the receiver has ordered and copies
	sender, receiver := tr.stages[0], tr.stages[1]
	for m := range 3 {
		b, err := sender.stream.Alloc(bytes)
		require.NoError(t, err)
		sender.held = []vram.Buffer{b}
		require.NoError(t, sender.handOver(turn{Kind: forward, MicroBatch: m}, &operation{out: 0}))
	}
	p, err := receiver.activations.receive(t.Context(), turn{Kind: forward, MicroBatch: 0})
	require.NoError(t, err)
	receiver.activations.order(t.Context(), 1<<20)
	require.NoError(t, receiver.queue.add(turn{Kind: forward, MicroBatch: 0}, p))
	receiver.batch, receiver.batchOrdered = receiver.stream.AllocBatchAsync(t.Context(), []int64{1, 2 << 20}), true
	require.NoError(t, tr.close(), "no buffer is left")
}
