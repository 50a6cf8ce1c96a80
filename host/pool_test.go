package host

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/cudadrv"
)

// Classes rise, hold their requests, and waste less than an eighth above 64 MiB.
func TestClasses(t *testing.T) {
	t.Parallel()
	for c := 1; c < classCount; c++ {
		require.Greater(t, classBytes(c), classBytes(c-1))
		require.Equal(t, c, classOf(classBytes(c)))
		if c+1 < classCount {
			require.Equal(t, c+1, classOf(classBytes(c)+1))
		}
		if c > powerShift {
			require.LessOrEqual(t, classBytes(c), classBytes(c-1)+classBytes(c-1)/8+1)
		}
	}
	assert.Equal(t, 0, classOf(1))
	assert.EqualValues(t, 64<<20, classBytes(powerShift))
	assert.EqualValues(t, maxBytes, classBytes(classCount-1))
}

// A freed block serves the next request of its class, and only of that.
func TestFreedMemoryServesAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(1 << 30)
	b := alloc(t, p, 5000, 0)
	at := address(b)
	free(t, b)
	for _, length := range []int64{4097, 8192, 6000} {
		b = alloc(t, p, length, 64)
		assert.Equal(t, at, address(b))
		assert.EqualValues(t, 8192, p.Stats().LiveBytes)
		free(t, b)
	}
	other := alloc(t, p, 4096, 0)
	assert.NotEqual(t, at, address(other))
	free(t, other)
	assert.EqualValues(t, 2, p.Stats().Misses)
	assert.EqualValues(t, 12<<10, p.Stats().KeptBytes)
	huge := alloc(t, p, 100<<20, 0)
	assert.EqualValues(t, 104<<20, p.Stats().LiveBytes)
	free(t, huge)
	r.end(p)
}

// The cost of rounding is the difference between the bytes of a cache and of a Track around it.
func TestRoundingIsInTheStats(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(1 << 30)
	tracked := must[*Track](t)(Tracked(p))
	b := alloc(t, tracked, 33<<20, 0)
	assert.Len(t, b.Bytes(), 33<<20)
	assert.EqualValues(t, 33<<20, tracked.Stats().LiveBytes)
	assert.EqualValues(t, 64<<20, p.Stats().LiveBytes)
	free(t, b)
	assert.EqualValues(t, 64<<20, p.Stats().KeptBytes)
	r.end(p)
}

// More blocks of one class than a shelf has slots are served again, too.
func TestManyShelves(t *testing.T) {
	t.Parallel()
	p := must[*Pool](t)(Pooled(NewAligned(), PoolConfig{KeepBytes: math.MaxInt64}))
	for range 3 {
		var live []Block
		for range 5 * shelfSlots {
			live = append(live, alloc(t, p, 64, 0))
		}
		for _, b := range live {
			free(t, b)
		}
	}
	assert.EqualValues(t, 5*shelfSlots, p.Stats().Misses)
	assert.EqualValues(t, 5*shelfSlots*64, p.Stats().KeptBytes)
	require.NoError(t, p.Close(t.Context()))
	assert.EqualValues(t, 5*shelfSlots, p.Stats().Releases)
}

// The bound holds for all classes together, and the unused part of one class is another's.
func TestTheBound(t *testing.T) {
	t.Parallel()
	p := must[*Pool](t)(Pooled(NewAligned(), PoolConfig{KeepBytes: 10_000}))
	burst := func(count int, bytes int64) {
		var live []Block
		for range count {
			live = append(live, alloc(t, p, bytes, 0))
		}
		for _, b := range live {
			free(t, b)
			require.LessOrEqual(t, p.Stats().KeptBytes, int64(10_000))
			require.NoError(t, checkBooks(p))
		}
	}
	burst(1, 10_001)
	assert.Zero(t, p.Stats().KeptBytes, "longer than the bound")
	burst(20, 1000)
	assert.EqualValues(t, 9*1024, p.Stats().KeptBytes)
	assert.EqualValues(t, 1+11, p.Stats().Releases)
	burst(1, 512)
	assert.EqualValues(t, 9*1024+512, p.Stats().KeptBytes)
	var live []Block // the allowance of the first class is not used now
	for range 9 {
		live = append(live, alloc(t, p, 1000, 0))
	}
	burst(4, 2000)
	assert.EqualValues(t, 4*2048+512, p.Stats().KeptBytes)
	for _, b := range live {
		free(t, b)
	}
	assert.EqualValues(t, 4*2048+512+1024, p.Stats().KeptBytes, "one of nine")
	require.NoError(t, p.Close(t.Context()))
}

// checkBooks compares a pool's counts with its slots. No call may be running, nor the goroutine that releases.
func checkBooks(p *Pool) error {
	sum := func(lists ...*stack) (sum [2]int64) {
		for _, l := range lists {
			for s := l.top.Load(); s != nil; s = s.next {
				sum[0]++
				sum[1] += s.shelf.bytes
			}
		}
		return sum
	}
	if got, want := [2]int64{p.pendingBlocks.Load(), p.pendingBytes.Load()}, sum(&p.pending); got != want {
		return &ConfigError{Field: "pending blocks and bytes", Value: got, Want: fmt.Sprint(want)}
	}
	if got, want := [2]int64{p.releasingBlocks.Load(), p.releasingBytes.Load()}, sum(&p.queue, &p.refused); got != want {
		return &ConfigError{Field: "blocks and bytes on their way to the source", Value: got, Want: fmt.Sprint(want)}
	}
	for sh := range p.shelves {
		for i := range sh.slots {
			s := &sh.slots[i]
			if sh.vacant.Load()&s.bit != 0 && (s.inner != Block{} || s.data != nil || s.ptr != 0) {
				return &ConfigError{Field: "vacant slot", Value: s.inner, Want: "no memory, which would not be collected"}
			}
			if sh.free.Load()&s.bit != 0 && (s.noted() || s.stamps != nil) {
				return &ConfigError{Field: "free slot", Value: s.streams(nil, s.word.Load()), Want: "no uses"}
			}
		}
	}
	return checkBound(p)
}

// checkBound compares a pool's books with its bound. No call may be running.
func checkBound(p *Pool) error {
	var granted int64
	for sh := range p.shelves {
		granted += sh.allowance.Load() * sh.bytes
		if int64(bits.OnesCount64(sh.free.Load())) > sh.allowance.Load() {
			return &ConfigError{Field: "free", Value: sh.free.Load(), Want: "within the allowance"}
		}
		if sh.free.Load()&sh.vacant.Load() != 0 {
			return &ConfigError{Field: "free", Value: sh.free.Load(), Want: "not vacant"}
		}
	}
	if granted != p.bound.granted.Load() || granted > p.bound.keep.Load() {
		return &ConfigError{Field: "granted", Value: p.bound.granted.Load(), Want: "the sum of allowances, within the bound"}
	}
	return nil
}

// The bound holds after goroutines have freed at once in classes that take allowances from each
// other.
func TestTheBoundUnderStress(t *testing.T) {
	t.Parallel()
	p := must[*Pool](t)(Pooled(NewAligned(), PoolConfig{KeepBytes: 4096}))
	for range 20 {
		var group sync.WaitGroup
		for g := range 4 {
			group.Go(func() {
				for i := range 100 {
					var live [4]Block
					for j := range live {
						live[j] = alloc(t, p, int64(64)<<((g+i+j)%5), 0)
					}
					for _, b := range live {
						assert.NoError(t, b.Free())
					}
				}
			})
		}
		group.Wait()
		require.NoError(t, checkBooks(p))
		require.LessOrEqual(t, p.Stats().KeptBytes, int64(4096))
		require.Zero(t, p.Stats().LiveBlocks)
	}
	require.NoError(t, p.Close(t.Context()))
	require.NoError(t, checkBooks(p))
	assert.Zero(t, p.Stats().KeptBytes)
}

// Frees and requests during a Close leave nothing in the cache.
func TestCloseUnderStress(t *testing.T) {
	t.Parallel()
	for range 50 {
		source := NewAligned()
		p := must[*Pool](t)(Pooled(source, PoolConfig{KeepBytes: 1 << 20}))
		var group sync.WaitGroup
		for g := range 4 {
			group.Go(func() {
				for i := range 50 {
					b, err := p.Alloc(int64(64)<<((g+i)%4), 0)
					if err != nil {
						assert.ErrorIs(t, err, ErrClosed)
						return
					}
					assert.NoError(t, b.Free())
				}
			})
		}
		group.Go(func() { _ = p.Close(t.Context()) }) // blocks may be live
		group.Wait()
		assert.Zero(t, source.Stats().LiveBlocks, "the last frees have returned what the Close has left")
		require.NoError(t, p.Close(t.Context()))
		require.NoError(t, checkBooks(p))
	}
}

// Requests, frees, trims and a Close that run between any two steps of a change of the bound leave the books in order. Once no
// call runs, free memory is within the bound, and a closed pool keeps none: its last blocks return with their frees.
func TestTheBoundBetweenItsSteps(t *testing.T) {
	t.Parallel()
	reached := 0
	rapid.Check(t, func(t *rapid.T) {
		for range 100 { // few of these interleavings are a danger
			boundBetweenSteps(t, &reached)
		}
	})
	assert.Positive(t, reached, "nothing ran between two steps")
}

// boundBetweenSteps adds the places between steps that it came to.
func boundBetweenSteps(t *rapid.T, reached *int) {
	source := NewAligned()
	p, err := Pooled(source, PoolConfig{KeepBytes: 256})
	require.NoError(t, err)
	var live []Block
	closed, shut, depth := false, false, 0 // Close has begun, and has returned
	step := func() {
		switch call := rapid.IntRange(0, 9).Draw(t, "call"); {
		case call < 4:
			late := shut
			b, err := p.Alloc(64<<rapid.IntRange(0, 1).Draw(t, "class"), 0)
			if err == nil {
				require.False(t, late, "a closed pool serves nothing")
				for i := range b.Bytes() {
					b.Bytes()[i] = byte(len(live) + 1)
				}
				live = append(live, b)
			} else {
				require.True(t, closed, err)
			}
		case call < 8:
			if len(live) > 0 {
				i := rapid.IntRange(0, len(live)-1).Draw(t, "block")
				b := live[i]
				live = slices.Delete(live, i, i+1)
				require.Len(t, b.Bytes(), int(b.Len()), "a live block has its memory")
				require.Equal(t, bytes.Repeat(b.Bytes()[:1], int(b.Len())), b.Bytes(), "and no other has it")
				require.NoError(t, b.Free())
			}
		case call < 9 || closed:
			_, err := p.Trim(context.Background())
			require.NoError(t, err)
		default:
			closed = true
			_ = p.Close(context.Background()) // blocks may be live
			shut = true
		}
	}
	p.bound.reach = func() {
		if *reached++; depth < 2 && rapid.Bool().Draw(t, "another runs") {
			depth++
			step()
			depth--
		}
	}
	for range 20 {
		step()
		require.NoError(t, checkBooks(p))
		if closed {
			require.EqualValues(t, len(live), source.Stats().LiveBlocks, "a closed pool keeps no memory")
		}
	}
	p.bound.reach = nil
	for _, b := range live {
		require.NoError(t, b.Free())
	}
	require.NoError(t, p.Close(context.Background()))
	require.Zero(t, source.Stats().LiveBlocks)
}

// Trim releases free memory at once, pending memory after its uses, and no live block.
func TestTrim(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(1 << 20)
	a := must[*Log](t)(Logged(must[*Zero](t)(Zeroed(p)), &lines{}))
	s := r.stream()
	live, kept, pending := alloc(t, a, 4096, 0), alloc(t, a, 4096, 0), alloc(t, a, 8192, 0)
	r.busy(s, time.Second)
	require.NoError(t, pending.Use(s))
	free(t, kept)
	free(t, pending)
	released, err := Trim(t.Context(), a)
	require.NoError(t, err)
	assert.EqualValues(t, 12<<10, released)
	assert.Equal(t, time.Second, r.sim.Now(), "it has waited")
	assert.True(t, live.Live())
	released, err = Trim(t.Context(), a)
	require.NoError(t, err)
	assert.Zero(t, released)
	released, err = Trim(t.Context(), NewAligned())
	require.NoError(t, err)
	assert.Zero(t, released)
	_, err = p.Trim(nil) //nolint:staticcheck // a nil context is refused
	require.ErrorIs(t, err, ErrNilContext)
	free(t, live)
	r.end(a)
}

// The settings that cannot be are refused.
func TestPoolSettings(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var refused *ConfigError
	_, err := Pooled(nil, PoolConfig{})
	require.ErrorAs(t, err, &refused)
	_, err = Pooled(NewAligned(), PoolConfig{KeepBytes: -1})
	require.ErrorAs(t, err, &refused)
	_, err = Pooled(must[*PageLockedMemory](t)(PageLockedSource(r.device)), PoolConfig{})
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, "Device", refused.Field)
	_, err = NewPageLocked(r.device, PoolConfig{KeepBytes: -1})
	require.ErrorAs(t, err, &refused)
	_, err = NewPageLocked(nil, PoolConfig{})
	require.ErrorAs(t, err, &refused)
	_, err = NewPageLocked(plainDevice{r.device}, PoolConfig{})
	var missing *CapabilityError
	require.ErrorAs(t, err, &missing)
	require.NoError(t, r.device.Close())
}

// plainDevice has no optional interface.
type plainDevice struct{ cudadrv.Device }
