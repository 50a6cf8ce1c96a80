package acceptance_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A sender that waits for memory once it has sent is never refused for a receiver that has yet to
// run, and then frees.
func TestASentValueIsNoDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		a, b := h.exclusive(), h.exclusive()
		parcels := vram.NewHandover[vram.Buffer](a, b, 4)
		const rounds = 200
		done := make(chan error)
		go func() {
			for range rounds {
				x, err := parcels.Receive(t.Context())
				if err != nil {
					done <- err
					return
				}
				<-time.After(time.Millisecond) // it is late
				if err = x.Free(); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		for range rounds {
			x, err := a.AllocFor(t.Context(), vram.Request{Bytes: 40 * mib, Wait: true})
			require.NoError(t, err)
			require.NoError(t, parcels.Send(t.Context(), x))
		}
		require.NoError(t, <-done)
		h.addsUp()
	})
}

// A goroutine that waits for a value, or for room, frees nothing before the other side continues: a
// wait for memory that only these two could end is refused, with any other streams.
func TestAHandoverTellsWhoWaitsForWhom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		a, b, c := h.exclusive(), h.exclusive(), h.stream()
		x := must(t, a, 48*mib)
		values := vram.NewHandover[int](b, a, 1)
		received := make(chan int)
		receive := func() {
			v, err := values.Receive(t.Context())
			assert.NoError(t, err)
			received <- v
		}
		go receive()
		synctest.Wait()
		first := waitFor(c, vram.Request{Bytes: 20 * mib})
		waits(t, first) // b is runnable, though it holds nothing and wants nothing
		second := waitFor(b, vram.Request{Bytes: 32 * mib})
		deadlocked(t, second) // the sender waits, the receiver waits for it
		waits(t, first)

		require.NoError(t, values.Send(t.Context(), 1))
		require.Equal(t, 1, <-received)
		second = waitFor(b, vram.Request{Bytes: 32 * mib})
		waits(t, second)
		freeAll(t, x)
		x = got(t, second)
		freeAll(t, got(t, first))

		full := make(chan error)
		go func() {
			assert.NoError(t, values.Send(t.Context(), 2))
			full <- values.Send(t.Context(), 3) // b waits for room, and holds x
		}()
		synctest.Wait()
		third := waitFor(a, vram.Request{Bytes: 48 * mib})
		deadlocked(t, third)
		go receive()
		require.Equal(t, 2, <-received)
		require.NoError(t, <-full)
		third = waitFor(a, vram.Request{Bytes: 48 * mib})
		waits(t, third)
		freeAll(t, x)
		freeAll(t, got(t, third))
		v, ok := values.TryReceive()
		assert.True(t, ok)
		assert.Equal(t, 3, v)
		h.addsUp()
	})
}

// The end of a context ends a call, and a value that was not sent is the caller's.
func TestAHandoverEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{}, sim.Config{})
		values := vram.NewHandover[int](h.exclusive(), nil, 0)
		require.NoError(t, values.Send(t.Context(), 1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, values.Send(ctx, 2), context.DeadlineExceeded)
		assert.Equal(t, 1, values.Len())
		v, err := values.Receive(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 1, v)
		_, err = values.Receive(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, ok := values.TryReceive()
		assert.False(t, ok)
	})
}

// One stage fills buffers, the next one empties them. Both wait for memory where it is short, and
// neither is refused for the other.
func ExampleHandover() {
	dev, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{}), LimitBytes: 64 << 20})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	var stages [2]*vram.Stream
	for i := range stages {
		if stages[i], err = dev.NewStream(); err != nil {
			fmt.Println(err)
			return
		}
		stages[i].Exclusive() // one goroutine uses it
	}
	ctx := context.Background()
	filled := vram.NewHandover[vram.Buffer](stages[0], stages[1], 8)
	go func() {
		for range 10 {
			x, err := stages[0].AllocFor(ctx, vram.Request{Bytes: 32 << 20, Wait: true})
			if err != nil {
				fmt.Println(err)
			}
			if err = filled.Send(ctx, x); err != nil {
				fmt.Println(err)
			}
		}
	}()
	count := 0
	for range 10 {
		x, err := filled.Receive(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		if err = x.Free(); err == nil {
			count++
		}
	}
	fmt.Println(count, "buffers handed over")
	// Output: 10 buffers handed over
}
