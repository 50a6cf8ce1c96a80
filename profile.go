package vram

import (
	"context"

	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/streams"
	streamcore "github.com/go-vram/vram/streams/core"
	"github.com/go-vram/vram/streams/magazine"
	"github.com/go-vram/vram/streams/sampling"
)

// DefaultSampleBytes is a Config.SampleBytes for programs in use. A full device of 80 GiB then has up to
// 1300 samples, as many as a Go heap of 640 MiB has at its default rate: small buffers that fill a
// twentieth of the device are known to within an eighth, and each buffer of 64 MiB or more exactly. Not
// more: the memory of a model's parts, some hundred MiB each, would be known too roughly. Not less: a
// sample takes a microsecond, and the fastest GPU writes 64 MiB in 13 of them, so that samples take less
// than a tenth of the time in which a program's memory is written once. A buffer
// of 4 KiB is sampled once in 16,384 times.
const DefaultSampleBytes = 64 << 20

// Profile is the device's memory by the places that allocated it, as the samples tell: see
// Config.SampleBytes.
type Profile struct {
	// SampleBytes is Config.SampleBytes as it is in force. Totals are of all samples since Open, at
	// earlier rates, too.
	SampleBytes int64
	Records     []ProfileRecord
}

// ProfileRecord is a place. Its totals stay when its buffers were freed. A device has 4096 of them: when there would be more, those
// without live buffers are gathered in one for each call stack, which has no stream, tag and tenant.
type ProfileRecord struct {
	Stack  site.Stack // the call stack; nil in the record of those for which there was no room
	Stream uint32     // by its ID; 0 where records were gathered
	Tag    string     // of the requests
	Tenant string     // by its name; "": none
	// Allocated is of all buffers; InUse is of those that were not freed.
	Allocated, InUse ProfileTotals
}

// ProfileTotals are sums over buffers.
type ProfileTotals = sampling.Totals

// Profile reads the samples. It takes no turn and stops nobody; the records are of moments close to
// each other. It works after Close, too.
func (d *Device) Profile() Profile {
	if !d.opened() {
		return Profile{}
	}
	p := Profile{SampleBytes: d.config.Load().SampleBytes}
	for _, s := range d.profile.Read() {
		p.Records = append(p.Records, ProfileRecord{s.Stack, s.Stream, s.Tag, s.Tenant, s.Allocated, s.InUse})
	}
	return p
}

// SampledBuffer is a live buffer of the profile.
type SampledBuffer = streams.SampledBuffer

// SampledBuffers lists the live buffers of the profile. It waits for the request that each stream is
// serving, and visits every live buffer; allocations go on meanwhile. The end of ctx ends it early.
func (d *Device) SampledBuffers(ctx context.Context) (all []SampledBuffer, err error) {
	if err := d.callable(ctx); err != nil {
		return nil, err
	}
	for _, s := range d.streams.Load().open {
		some, err := s.Sampled(ctx)
		if err != nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		all = append(all, some...) // a stream that has ended has none
	}
	return all, nil
}

// profileShare is that of the allocations that the profile counts.
func (c *Config) profileShare() magazine.Share {
	if c.SampleBytes == 0 {
		return 0
	}
	const all = int64(magazine.Everything) << sizeclass.UnitShift
	return magazine.Share(max(1, min(all/c.SampleBytes, int64(magazine.Everything)))) //nolint:gosec // 32 bits
}

// ofStream are the settings of a stream: everything is sampled for observers, and for Debug.
func (d *Device) ofStream(c *Config) streamcore.Settings {
	share := c.profileShare()
	if c.Debug || d.observers.Load() != nil {
		share = magazine.Everything
	}
	return streamcore.Settings{
		Budget: streamcore.Budget{CacheBytes: c.StreamCacheBytes, CacheRanges: c.Tuning.StreamCacheBlocks},
		Exact:  c.Stats == StatsExact, AgeTicks: int(c.ageTicks()), Share: share,
	}
}
