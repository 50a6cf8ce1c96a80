package sim

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

func TestByAddressAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m byAddress[int]
		dumb := map[cudadrv.Ptr]int{}
		// Enough at the start for several chunks, upwards, downwards or mixed.
		key := cudadrv.Ptr(1 << 20)
		step := rapid.SampledFrom([]cudadrv.Ptr{4, ^cudadrv.Ptr(3), 7919 * 4}).Draw(t, "step")
		for i := range rapid.IntRange(0, 4*chunkEntries).Draw(t, "count") {
			m.put(key, i)
			dumb[key] = i
			key += step
		}
		near := func() cudadrv.Ptr {
			if keys := slices.Sorted(maps.Keys(dumb)); len(keys) > 0 && rapid.Bool().Draw(t, "near") {
				return rapid.SampledFrom(keys).Draw(t, "key") + rapid.SampledFrom([]cudadrv.Ptr{0, 1, ^cudadrv.Ptr(0)}).Draw(t, "off")
			}
			return cudadrv.Ptr(rapid.Uint64().Draw(t, "wild"))
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(*rapid.T) {
				p := near()
				if _, there := dumb[p]; !there {
					m.put(p, len(dumb))
					dumb[p] = len(dumb)
				}
			},
			"drop": func(*rapid.T) {
				p := near()
				m.drop(p)
				delete(dumb, p)
			},
			"drop many": func(*rapid.T) {
				keys := slices.Sorted(maps.Keys(dumb))
				for _, k := range keys[len(keys)/4 : len(keys)/2] {
					m.drop(k)
					delete(dumb, k)
				}
			},
			"floor": func(t *rapid.T) {
				p := near()
				want, found := cudadrv.Ptr(0), false
				for k := range dumb {
					if k <= p && (!found || k > want) {
						want, found = k, true
					}
				}
				k, v, ok := m.floor(p)
				require.Equal(t, found, ok)
				require.Equal(t, want, k)
				require.Equal(t, dumb[want], v)
				v, ok = m.at(p)
				at, there := dumb[p]
				require.Equal(t, there, ok)
				require.Equal(t, at, v)
			},
			"walk": func(t *rapid.T) {
				p := near()
				var got []cudadrv.Ptr
				for k, v := range m.from(p) {
					require.Equal(t, dumb[k], v)
					got = append(got, k)
				}
				want := slices.DeleteFunc(slices.Sorted(maps.Keys(dumb)), func(k cudadrv.Ptr) bool { return k < p })
				require.Equal(t, len(want), len(got))
				require.True(t, slices.Equal(want, got))
			},
			"": func(t *rapid.T) {
				require.NoError(t, m.check())
				require.Equal(t, len(dumb), m.count)
			},
		})
	})
}

func TestSpaceNeverGivesAnAddressTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type span struct {
			p     cudadrv.Ptr
			bytes int64
		}
		var s space
		s.init(1 << 30)
		var live []span
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				// Up to a third of the space, so that it runs out and free ranges must be merged and split.
				bytes := rapid.Int64Range(1, 1<<rapid.IntRange(20, 45).Draw(t, "magnitude")).Draw(t, "bytes")
				p, spanBytes, ok := s.take(bytes)
				if !ok {
					sum := int64(spaceBase)
					for _, l := range live {
						sum += l.bytes
					}
					require.Greater(t, sum+spanBytes*int64(len(live)+1), int64(spaceEnd), "no room, and yet there is")
					return
				}
				require.Greater(t, spanBytes, bytes, "an empty granule behind")
				require.Zero(t, int64(p)%(1<<30))
				require.GreaterOrEqual(t, int64(p), int64(spaceBase))
				require.LessOrEqual(t, int64(p)+spanBytes, int64(spaceEnd))
				for _, l := range live {
					require.True(t, p >= l.p+cudadrv.Ptr(l.bytes) || l.p >= p+cudadrv.Ptr(spanBytes), "given twice")
				}
				live = append(live, span{p, spanBytes})
			},
			"give": func(t *rapid.T) {
				if len(live) == 0 {
					return
				}
				i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				s.give(live[i].p, live[i].bytes)
				live = slices.Delete(live, i, i+1)
			},
		})
		for _, l := range live {
			s.give(l.p, l.bytes)
		}
		_, _, ok := s.take(spaceEnd - 1<<36)
		assert.True(t, ok, "all given back is one range again")
	})
}

func TestSpaceIsMergedAndSplitWhenItRunsOut(t *testing.T) {
	var s space
	s.init(1 << 30)
	var starts []cudadrv.Ptr
	for {
		p, spanBytes, ok := s.take(1 << 40)
		if !ok {
			break
		}
		require.Equal(t, int64(1<<40+1<<30), spanBytes)
		starts = append(starts, p)
	}
	const span = 1<<40 + 1<<30
	for ok := true; ok; { // the remaining objects at the end
		_, _, ok = s.take(1 << 30)
	}

	// Three neighbours in the middle become one range, of which a smaller one is cut off.
	for _, i := range []int{7, 5, 6} {
		s.give(starts[i], span)
	}
	p, _, ok := s.take(3*span - 4<<30)
	require.True(t, ok)
	assert.Equal(t, starts[5], p)
	rest, _, ok := s.take(1 << 30)
	require.True(t, ok)
	assert.Equal(t, starts[5]+3*span-3<<30, rest)
	_, _, ok = s.take(1 << 40)
	assert.False(t, ok)
	s.give(starts[20], span)
	_, _, ok = s.take(1 << 39)
	assert.True(t, ok, "split without merging")
}

// Memory for which there is no address is not in use.
func TestNoAddressNoMemory(t *testing.T) {
	driver := New(Config{})
	dev, err := driver.Open(0)
	require.NoError(t, err)
	before, _, err := dev.MemGetInfo()
	require.NoError(t, err)
	driver.space.next = spaceEnd
	_, err = dev.MemAlloc(1)
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
	_, err = dev.MemAddressReserve(DefaultGranularityBytes)
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
	after, _, err := dev.MemGetInfo()
	require.NoError(t, err)
	assert.Equal(t, before, after)
	require.NoError(t, dev.Close())
}

func TestByAddressSplitsFullChunks(t *testing.T) {
	for _, place := range []cudadrv.Ptr{0, 10, 2*chunkEntries - 10, 2*chunkEntries + 4} { // of the key that is one too many
		var m byAddress[int]
		for i := range 2 * chunkEntries {
			m.put(cudadrv.Ptr(2*i+1), i)
		}
		require.Len(t, m.chunks, 2, "filled upwards, chunks are full")
		m.put(place, -1)
		require.NoError(t, m.check())
		v, ok := m.at(place)
		assert.True(t, ok)
		assert.Equal(t, -1, v)
	}
}

func TestAddressesAreUsedAgain(t *testing.T) {
	var s space
	s.init(2 << 20)
	p, spanBytes, _ := s.take(5)
	s.give(p, spanBytes)
	again, _, _ := s.take(7)
	assert.Equal(t, p, again)
}

// The audit finds every inconsistency.
// Each mistake in the books has a line of its own in the report, whatever else it upsets.
func TestAuditFindsWhatDoesNotAddUp(t *testing.T) {
	const granule = DefaultGranularityBytes
	for name, c := range map[string]struct {
		says    string
		breakIt func(g *gpu, m *mapping, r *region)
	}{
		"bytes":              {"bytes in use, ", func(g *gpu, _ *mapping, _ *region) { g.usedBytes++ }},
		"handle's count":     {"is mapped 1 times and counts 2", func(_ *gpu, m *mapping, _ *region) { m.handle.mapped++ }},
		"region's count":     {"counts 1 mappings and has 2", func(_ *gpu, _ *mapping, r *region) { r.mapped-- }},
		"handle's name":      {"is in the books as ", func(_ *gpu, m *mapping, _ *region) { m.handle.id++ }},
		"released":           {"released: true", func(_ *gpu, m *mapping, _ *region) { m.handle.released = true }},
		"lost mapping":       {"counts 2 mappings and has 1", func(g *gpu, m *mapping, _ *region) { g.mappings.drop(m.start) }},
		"lost reservation":   {"is not inside its reservation", func(g *gpu, _ *mapping, r *region) { g.regions.drop(r.start) }},
		"moved mapping":      {"mapping at ", func(_ *gpu, m *mapping, _ *region) { m.start += 512 }},
		"short region":       {"is not inside its reservation", func(_ *gpu, _ *mapping, r *region) { r.bytes = granule }},
		"empty region":       {": {", func(_ *gpu, _ *mapping, r *region) { r.bytes = 0 }},
		"mapping in a plain": {": {", func(_ *gpu, _ *mapping, r *region) { r.physicalBytes = 1 }},
		"overlap":            {" before ", func(_ *gpu, m *mapping, _ *region) { m.handle.bytes *= 2 }},
		"regions overlap": {" before ", func(g *gpu, _ *mapping, r *region) {
			g.regions.put(r.start+cudadrv.Ptr(granule), &region{start: r.start + cudadrv.Ptr(granule), bytes: granule, spanBytes: granule})
		}},
		"region's start": {" before ", func(_ *gpu, _ *mapping, r *region) { r.start += 512 }},
		"region's span":  {": {", func(_ *gpu, _ *mapping, r *region) { r.spanBytes = 0 }},
		"queue":          {"the device at ", func(g *gpu, _ *mapping, _ *region) { g.streams[0].drained = 1 }},
		"order of keys":  {" follows ", func(g *gpu, _ *mapping, _ *region) { slices.Reverse(g.mappings.chunks[0].keys) }},
		"equal keys":     {" follows ", func(g *gpu, m *mapping, _ *region) { g.mappings.chunks[0].keys[1] = m.start }},
		"count of keys":  {" counted", func(g *gpu, _ *mapping, _ *region) { g.regions.count++ }},
		"values of keys": {"1 keys and 0 values", func(g *gpu, _ *mapping, _ *region) { g.regions.chunks[0].values = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			drv := New(Config{})
			_, err := drv.Open(0)
			require.NoError(t, err)
			dev := drv.Device(0)
			p, err := dev.MemAddressReserve(2 * granule)
			require.NoError(t, err)
			for i := range int64(2) {
				h, err := dev.MemCreate(granule)
				require.NoError(t, err)
				require.NoError(t, dev.MemMap(p+cudadrv.Ptr(i*granule), granule, h))
			}
			require.NoError(t, dev.Audit())
			m, ok := dev.gpu.mappings.at(p)
			require.True(t, ok)
			c.breakIt(dev.gpu, m, m.region)
			require.ErrorContains(t, dev.Audit(), c.says)
		})
	}
}

// A set of numbers has the numbers that were added to it, the numbers of added sets, and no other.
func TestNodesAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sets [3]nodes
		var dumb [3]map[int]bool
		for i := range dumb {
			dumb[i] = map[int]bool{}
		}
		set := rapid.IntRange(0, len(sets)-1)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				to, number := set.Draw(t, "to"), rapid.IntRange(0, 200).Draw(t, "number")
				sets[to].add(number)
				dumb[to][number] = true
			},
			"add all": func(t *rapid.T) {
				to, from := set.Draw(t, "to"), set.Draw(t, "from")
				sets[to].addAll(sets[from])
				maps.Copy(dumb[to], dumb[from])
			},
			"": func(t *rapid.T) {
				for i, n := range sets {
					require.Equal(t, len(dumb[i]), n.count())
					for number := range dumb[i] {
						require.True(t, number>>6 < len(n) && n[number>>6]&(1<<(number&63)) != 0, "%d is missing", number)
					}
				}
			},
		})
	})
}

func TestCostsGrowWithBytesAndNeverTurnNegative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		less := rapid.Int64Range(0, 1<<45).Draw(t, "less")
		more := rapid.Int64Range(less, 1<<45).Draw(t, "more")
		for _, c := range [...]curve{accessHandleCost, unmapHandleCost, callCosts[call.MemCreate], callCosts[call.MemRelease]} {
			assert.Positive(t, c.at(less))
			assert.LessOrEqual(t, c.at(less), c.at(more))
		}
		for _, c := range callCosts {
			assert.GreaterOrEqual(t, int64(c.at(less)), int64(0))
		}
	})
}

// Each byte of memory is in the extent of the memory that has it, with the bytes that were asked for and no others.
func TestTheExtentOfMemory(t *testing.T) {
	const granule = DefaultGranularityBytes
	dev, err := New(Config{Bytes: true, TimedKernels: true}).Open(0)
	require.NoError(t, err)
	d := dev.(*Device)
	own := make([]byte, 300)
	require.NoError(t, d.MemHostRegister(own[100:200]))
	registered, err := d.MemHostGetDevicePointer(own[100:])
	require.NoError(t, err)
	plain, err := d.MemAlloc(300)
	require.NoError(t, err)
	large, err := d.MemAlloc(granule + 300)
	require.NoError(t, err)
	m, err := d.ModuleLoadData([]byte(".version 7.0\n.target sm_70\n.global .u32 a[25];"))
	require.NoError(t, err)
	variable, _, err := d.ModuleGetGlobal(m, "a")
	require.NoError(t, err)
	reserved, err := d.MemAddressReserve(4 * granule)
	require.NoError(t, err)
	first, err := d.MemCreate(granule)
	require.NoError(t, err)
	second, err := d.MemCreate(2 * granule)
	require.NoError(t, err)
	require.NoError(t, d.MemMap(reserved, granule, first))
	require.NoError(t, d.MemMap(reserved+cudadrv.Ptr(granule), 2*granule, second))
	require.NoError(t, d.MemSetAccess(reserved, 3*granule))
	for name, is := range map[string]struct {
		start cudadrv.Ptr
		bytes int64
	}{
		"page-locked": {registered, 100}, "plain": {plain, 300}, "more than a granule": {large, granule + 300}, "variable": {variable, 100},
		"mapping": {reserved, granule}, "the next mapping": {reserved + cudadrv.Ptr(granule), 2 * granule},
	} {
		last := is.start + cudadrv.Ptr(is.bytes) - 1
		for _, at := range []cudadrv.Ptr{is.start, is.start + 1, last} {
			begin, b, ok := d.gpu.extent(at)
			require.True(t, ok, "%s: %d", name, at-is.start)
			assert.Equal(t, is.start, begin, name)
			assert.EqualValues(t, is.bytes, len(b), name)
			all, ok := d.gpu.bytesAt(is.start, is.bytes)
			require.True(t, ok, name)
			assert.Same(t, &all[0], &b[0], name)
		}
		for _, none := range []cudadrv.Ptr{is.start - 1, last + 1} {
			if begin, _, ok := d.gpu.extent(none); ok {
				assert.Contains(t, name, "mapping")
				assert.NotEqual(t, is.start, begin, name)
			}
		}
	}
	_, b, _ := d.gpu.extent(registered)
	assert.Same(t, &own[100], &b[0])
	_, _, ok := d.gpu.extent(reserved + cudadrv.Ptr(3*granule))
	assert.False(t, ok, "nothing is mapped there")
	require.NoError(t, d.Close())
}

// A destroyed blocking stream is not kept.
func TestDestroyedBlockingStreamsAreForgotten(t *testing.T) {
	dev, err := New(Config{}).Open(0)
	require.NoError(t, err)
	d := dev.(*Device)
	var all []cudadrv.Stream
	for range 3 {
		s, err := d.StreamCreateBlocking()
		require.NoError(t, err)
		all = append(all, s)
	}
	for i, at := range []int{1, 0, 2} {
		require.NoError(t, d.StreamDestroy(all[at]))
		assert.Len(t, d.gpu.blocking, 2-i)
	}
	require.NoError(t, d.Close())
}
