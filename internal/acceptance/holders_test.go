package acceptance_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/pool"
)

// listed are the live buffers by their addresses.
func (h *house) listed() map[vram.Ptr]pool.LiveBuffer {
	h.t.Helper()
	list, err := h.LiveBuffers(h.t.Context())
	require.NoError(h.t, err)
	all := map[vram.Ptr]pool.LiveBuffer{}
	var sum int64
	for i, b := range list.Buffers {
		require.NotContains(h.t, all, b.Ptr)
		all[b.Ptr] = b
		sum += b.Bytes
		if i > 0 {
			require.LessOrEqual(h.t, b.Bytes, list.Buffers[i-1].Bytes, "the largest first")
		}
	}
	require.Equal(h.t, sum, list.Bytes)
	return all
}

// Tags and tenants are those that requests named, on every way of a request to its buffer; the
// requested size and the age are known with them.
func TestTagsAndTenantsAreKnownOnEveryWay(t *testing.T) {
	for _, debug := range []bool{false, true} {
		t.Run(fmt.Sprintf("debug=%t", debug), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := openHouse(t, vram.Config{LimitBytes: 64 * mib, Debug: debug}, sim.Config{})
				s, other := h.stream(), h.stream()
				tenant := h.tenant("gold", vram.Quota{})
				ctx := context.Background()
				freeAll(t, must(t, s, 5*kib)) // its magazine has a block
				type want struct {
					buffer      vram.Buffer
					tag, tenant string
				}
				var wants []want
				one := func(r vram.Request) {
					b, err := s.AllocFor(ctx, r)
					require.NoError(t, err)
					wants = append(wants, want{b, r.Tag, r.Tenant.Name()})
				}
				many := func(r vram.BatchRequest) {
					batch, err := s.AllocBatchFor(ctx, r)
					require.NoError(t, err)
					for _, b := range batch.Buffers() {
						wants = append(wants, want{b, r.Tag, r.Tenant.Name()})
					}
				}
				for range 2 { // from a miss, and from memory that is there
					one(vram.Request{Bytes: 5 * kib, Tag: "small"})
					one(vram.Request{Bytes: 3 * mib, Tag: "large"})
					one(vram.Request{Bytes: 3 * mib, Tenant: tenant})
					one(vram.Request{Bytes: 5 * kib, Tag: "both", Tenant: tenant, Zero: true})
					one(vram.Request{Bytes: 7 * kib, Tag: "aligned", Align: 4096})
					many(vram.BatchRequest{Bytes: []int64{kib, 300 * kib, 2 * mib}, Tag: "batch"})
					many(vram.BatchRequest{Bytes: []int64{kib, 300 * kib}, Tag: "charged batch", Tenant: tenant})
				}
				rest := must(t, other, h.Stats().LimitBytes-h.Stats().ReservedBytes)
				waited := waitFor(s, vram.Request{Bytes: 12 * mib, Tag: "waited"})
				nameless := waitFor(s, vram.Request{Bytes: 2 * mib})
				batch := s.AllocBatchForAsync(ctx, vram.BatchRequest{Bytes: []int64{mib, mib}, Wait: true, Tag: "waited batch", Tenant: tenant})
				waits(t, waited, nameless)
				require.NoError(t, rest.Free())
				wants = append(wants, want{got(t, waited), "waited", ""}, want{got(t, nameless), "", ""})
				b, err := batch.Await(ctx)
				require.NoError(t, err)
				wants = append(wants, want{b.Buffers()[0], "waited batch", "gold"}, want{b.Buffers()[1], "waited batch", "gold"})

				<-time.After(time.Minute) // virtual
				all := h.listed()
				require.Len(t, all, len(wants))
				for _, w := range wants {
					have := all[w.buffer.Ptr()]
					assert.Equal(t, w.tag, have.Tag)
					assert.Equal(t, w.tenant, have.Tenant, "of %q", w.tag)
					assert.Equal(t, w.buffer.Bytes(), have.RequestedBytes, "of %q", w.tag)
					assert.InDelta(t, time.Minute, have.Age, float64(time.Second), "of %q", w.tag)
					assert.Equal(t, s.ID(), have.Stream)
					assert.Equal(t, debug, have.Allocated.Known(), "of %q", w.tag)
					require.NoError(t, w.buffer.Free())
				}
				assert.Empty(t, h.listed())
				plain := must(t, s, 3*mib) // a block that had a tag
				assert.Equal(t, "", h.listed()[plain.Ptr()].Tag)
				assert.Equal(t, "", h.listed()[plain.Ptr()].Tenant)
				freeAll(t, plain)
			})
		})
	}
}

// The list has all live buffers of the streams after any history, and its sum is
// Stats.LiveBytes.
func TestTheListIsWhatLives(t *testing.T) {
	for seed := range uint64(8) {
		h := openHouse(t, vram.Config{LimitBytes: 2 * gib}, sim.Config{})
		random := rand.New(rand.NewPCG(seed, 18))
		all := []*vram.Stream{h.stream(), h.stream()}
		live := map[vram.Ptr]vram.Buffer{}
		var order []vram.Buffer
		for step := range 400 {
			if len(order) > 0 && random.IntN(5) < 2 {
				at := random.IntN(len(order))
				b := order[at]
				order = append(order[:at], order[at+1:]...)
				delete(live, b.Ptr())
				require.NoError(t, b.Free())
				continue
			}
			bytes := 1 + random.Int64N(int64(1)<<(10+random.IntN(13)))
			var b vram.Buffer
			var err error
			switch s := all[random.IntN(2)]; random.IntN(3) {
			case 0:
				b, err = s.AllocFor(t.Context(), vram.Request{Bytes: bytes, Tag: fmt.Sprint(step)})
			default:
				b, err = s.Alloc(bytes)
			}
			require.NoError(t, err)
			if random.IntN(8) == 0 { // memory that stays pending when it is freed
				require.NoError(t, b.RecordStream(all[random.IntN(2)]))
			}
			live[b.Ptr()] = b
			order = append(order, b)
			if step%40 == 0 {
				listed := h.listed()
				require.Len(t, listed, len(live))
				for p := range live {
					require.Contains(t, listed, p)
				}
				var sum int64
				for _, b := range listed {
					sum += b.Bytes
				}
				require.Equal(t, h.Stats().LiveBytes, sum)
			}
		}
		freeAll(t, order...)
		require.Empty(t, h.listed())
	}
}

// The list can be read while buffers come and go; those that stay are always in it, once.
func TestTheListIsReadWhileBuffersComeAndGo(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 4 * gib}, sim.Config{})
	s := h.stream()
	tenant := h.tenant("gold", vram.Quota{})
	stay := map[vram.Ptr]string{}
	for i, bytes := range []int64{kib, 100 * kib, 3 * mib} {
		b, err := s.AllocFor(t.Context(), vram.Request{Bytes: bytes, Tag: fmt.Sprint("stays ", i), Tenant: tenant})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, b.Free()) })
		stay[b.Ptr()] = fmt.Sprint("stays ", i)
	}
	var work sync.WaitGroup
	for i := range 4 {
		work.Go(func() {
			for k := range 400 {
				request := vram.Request{Bytes: int64(1+k%7) * 40 * kib}
				switch i {
				case 0:
					request.Tag = "comes and goes"
				case 1:
					request.Tenant = tenant
				}
				x, err := s.AllocFor(context.Background(), request)
				assert.NoError(t, err)
				y, err := s.Alloc(int64(1+k%5) * kib)
				assert.NoError(t, err)
				assert.NoError(t, x.Free())
				assert.NoError(t, y.Free())
			}
		})
	}
	stop := make(chan struct{})
	go func() { work.Wait(); close(stop) }()
	for done := false; !done; {
		select {
		case <-stop:
			done = true
		default:
		}
		list := h.listed()
		for p, tag := range stay {
			require.Equal(t, tag, list[p].Tag)
			require.Equal(t, "gold", list[p].Tenant)
		}
		_, err := h.Waiters(t.Context())
		require.NoError(t, err)
	}
	assert.Len(t, h.listed(), len(stay))
}

// Sums are by the tags, tenants, streams and places of buffers, the largest first; the text is a table
// of them.
func TestTheListSumsByOwners(t *testing.T) {
	h := openHouse(t, vram.Config{Debug: true}, sim.Config{})
	a, b := h.stream(), h.stream()
	tenant := h.tenant("gold", vram.Quota{})
	var all []vram.Buffer
	for i, r := range []vram.Request{
		{Bytes: 4 * mib, Tag: "weights"}, {Bytes: 2 * mib, Tag: "cache", Tenant: tenant}, {Bytes: 3 * mib, Tag: "weights", Tenant: tenant}, {Bytes: mib},
	} {
		s := a
		if i == 3 {
			s = b
		}
		x, err := s.AllocFor(t.Context(), r)
		require.NoError(t, err)
		all = append(all, x)
	}
	list, err := h.LiveBuffers(t.Context())
	require.NoError(t, err)
	sums := func(groups []vram.BufferGroup) (text string) {
		for _, g := range groups {
			text += fmt.Sprintf("%s=%d*%d/%d ", g.Name, g.Count, g.Bytes/mib, g.MaxBytes/mib)
		}
		return text
	}
	assert.Equal(t, "weights=2*7/4 cache=1*2/2 =1*1/1 ", sums(list.ByTag()))
	assert.Equal(t, "=2*5/4 gold=2*5/3 ", sums(list.ByTenant()))
	assert.Equal(t, "stream 1=3*9/4 stream 2=1*1/1 ", sums(list.ByStream()))
	require.Len(t, list.ByPlace(), 1)
	assert.Contains(t, list.ByPlace()[0].Name, "holders_test.go")
	assert.Equal(t, all[0].Ptr(), list.Largest(1)[0].Ptr)
	assert.Len(t, list.Largest(9), 4)
	text := list.String()
	for _, part := range []string{"4 live buffers, 10 MiB in all\n", "by tag:\n", "       7 MiB  2 buffers       weights", "no tenant", "largest buffers:\n       4 MiB  at "} {
		assert.Contains(t, text, part)
	}
	freeAll(t, all...)
	require.NoError(t, h.Close())
	_, err = h.LiveBuffers(t.Context())
	require.ErrorIs(t, err, vram.ErrClosed)
	_, err = h.Waiters(t.Context())
	require.ErrorIs(t, err, vram.ErrClosed)
}

// Bad calls are refused, and a device that was not used has nothing.
func TestListsOfNoDevice(t *testing.T) {
	var none *vram.Device
	_, err := none.LiveBuffers(t.Context())
	require.ErrorIs(t, err, vram.ErrNotOpen)
	_, err = none.Waiters(t.Context())
	require.ErrorIs(t, err, vram.ErrNotOpen)
	h := openHouse(t, vram.Config{}, sim.Config{})
	_, err = h.LiveBuffers(nil) //nolint:staticcheck // that is the test
	require.ErrorIs(t, err, vram.ErrNilContext)
	list, err := h.LiveBuffers(t.Context())
	require.NoError(t, err)
	assert.Empty(t, list.Buffers)
	waiters, err := h.Waiters(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "0 requests wait for 0 B in all\n", waiters.String())
	h.stream()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = h.LiveBuffers(ended)
	require.ErrorIs(t, err, context.Canceled)
	_, err = h.Waiters(ended)
	require.ErrorIs(t, err, context.Canceled)
}

// A deferred CloseInto loses no error: neither the leak nor the function's own.
func TestCloseIntoKeepsBothErrors(t *testing.T) {
	own := errors.New("own")
	run := func(fails error) (err error) {
		h := openHouse(t, vram.Config{}, sim.Config{})
		defer vram.CloseInto(&err, h.Device)
		_, _ = h.stream().AllocFor(t.Context(), vram.Request{Bytes: mib, Tag: "forgotten"})
		return fails
	}
	var leak *vram.InUseError
	require.ErrorAs(t, run(nil), &leak)
	err := run(own)
	require.ErrorIs(t, err, own)
	require.ErrorAs(t, err, &leak)
	vram.CloseInto(&own, nil)
	require.EqualError(t, own, "own", "nothing was closed")
	h := openHouse(t, vram.Config{}, sim.Config{})
	vram.CloseInto(nil, h.Device)
	require.ErrorIs(t, second(h.NewStream()), vram.ErrClosed)
}

// The report of a leak has the leaked buffers by owner, the largest first.
func TestTheReportOfALeak(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	s := h.stream()
	for i := range 30 {
		_, err := s.AllocFor(t.Context(), vram.Request{Bytes: mib, Tag: "cache"})
		require.NoError(t, err)
		if i < 2 {
			_, err := s.AllocFor(t.Context(), vram.Request{Bytes: 40 * mib, Tag: "weights", Tenant: h.tenant("gold", vram.Quota{})})
			require.NoError(t, err)
		}
	}
	var leak *vram.InUseError
	require.ErrorAs(t, h.Close(), &leak)
	report := leak.Report()
	for _, part := range []string{
		"leak: 32 buffers not freed before the device was closed, 110 MiB in all\n",
		"by tenant:\n      80 MiB  2 buffers       gold", "by tag:\n      80 MiB  2 buffers       weights", "      30 MiB  30 buffers      cache",
		"largest buffers:\n      40 MiB  at ", "open the device with Config.Debug",
	} {
		assert.Contains(t, report, part)
	}
}

// With SampleBytes, also when it is set at run time, live buffers that are sampled are listed with their ages and places.
func TestSampledBuffersAreListedWithTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{}, sim.Config{})
		s := h.stream()
		before := must(t, s, 128*mib)
		require.NoError(t, sampling(h.Device))
		since := must(t, s, 64*mib)
		<-time.After(time.Minute) // virtual
		list, err := h.LiveBuffers(t.Context())
		require.NoError(t, err)
		require.Len(t, list.Buffers, 2)
		assert.False(t, list.Buffers[0].Allocated.Known())
		assert.True(t, list.Buffers[1].Allocated.Known())
		assert.Equal(t, time.Minute, list.Buffers[1].Age)
		freeAll(t, before, since)
	})
}

// A stream that was closed has not failed: no list says that it could not be read.
func TestAClosedStreamIsNotUnread(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	s, other := h.stream(), h.stream()
	x, y := must(t, s, mib), must(t, other, mib)
	freeAll(t, x)
	require.NoError(t, s.Close())
	list, err := h.LiveBuffers(t.Context())
	require.NoError(t, err)
	assert.Empty(t, list.Unread)
	assert.Len(t, list.Buffers, 1)
	waiters, err := h.Waiters(t.Context())
	require.NoError(t, err)
	assert.Empty(t, waiters.Unread)
	freeAll(t, y)
}
