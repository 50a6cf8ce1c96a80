package vram

import (
	"cmp"
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/internal/inventory"
	"github.com/go-vram/vram/internal/jsonform"
	"github.com/go-vram/vram/internal/memorymap"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/pool/memory"
	"github.com/go-vram/vram/internal/sizeclass"
	streamcore "github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/internal/stream/magazine"
	"github.com/go-vram/vram/internal/stream/sampling"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// LiveBuffers is a list of a device's live buffers, the largest first, with sums by tag, tenant,
// stream and place. Its String is a table for people.
type LiveBuffers = inventory.List

// BufferGroup is the sum of live buffers that have a tag, a tenant, a stream or a place in common.
type BufferGroup = inventory.Group

// LiveBuffers lists the live buffers: who holds memory. Tags and tenants are those that requests
// named. The requested size and the age are known of buffers with a tag or a tenant, of those that had
// to wait for memory, and of those whose place is known: the sampled ones (Config.SampleBytes, which
// Reconfigure changes at run time, at about a nanosecond a request), and all with Config.Debug or an
// observer. Blocks of a batch that is being allocated are in the list.
//
// It asks the streams one after the other, and waits for the request that each is serving, as Stats
// does; it stops nothing else, and allocations and frees pay nothing for it. The buffers of one stream
// are of one moment. Its time grows with the number of live buffers: 10 to 100 ns for each. Errors:
// the context's, ErrClosed. Streams that have failed are in Unread.
func (d *Device) LiveBuffers(ctx context.Context) (LiveBuffers, error) {
	var buffers []pool.LiveBuffer
	failed, err := d.eachStream(ctx, func(s *streams.Control) error {
		all, err := s.Live(ctx)
		buffers = append(buffers, all...)
		return err
	})
	if err != nil {
		return LiveBuffers{}, err
	}
	list := inventory.Of(buffers)
	list.Unread = failed
	return list, nil
}

// eachStream reads the streams one after the other. failed are those that serve no more requests.
func (d *Device) eachStream(ctx context.Context, read func(*streams.Control) error) (failed []uint32, err error) {
	if err := d.callable(ctx); err != nil {
		return nil, err
	}
	if d.closed.Load() {
		return nil, deviceClosed()
	}
	for _, s := range d.streams.Load().open {
		switch err := read(s); {
		case err == nil:
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case d.closed.Load():
			return nil, deviceClosed()
		case !errors.Is(err, ErrClosed): // else its last buffer was freed
			failed = append(failed, s.ID())
		}
	}
	return failed, ctx.Err()
}

// Party is a stream, or a tenant, that holds memory or waits. Requests with a tenant hold and wait for
// the tenant, others for their stream.
type Party struct {
	Stream uint32 `json:"stream"` // 0: see Tenant
	Tenant string `json:"tenant"`
}

// String names the party.
func (p Party) String() string {
	if p.Stream == 0 {
		return fmt.Sprintf("tenant %q", p.Tenant)
	}
	return fmt.Sprintf("stream %d", p.Stream)
}

// WaitEdge says that one party waits for another.
type WaitEdge struct {
	From Party `json:"from"`
	To   Party `json:"to"`
	// Told: the other is one that the program has named, by a Handover or Stream.Suspend. Else From
	// waits for memory or a quota, and To holds some.
	Told bool `json:"told"`
	// Sure: all of From waits. Else From is not exclusive (Stream.Exclusive, Quota.Exclusive): its other
	// goroutines may free, and no deadlock is ever declared for it.
	Sure bool `json:"sure"`
}

// String prints both parties.
func (e WaitEdge) String() string {
	text := fmt.Sprintf("%v waits for %v", e.From, e.To)
	if e.Told {
		text += ", as the program has told"
	}
	if !e.Sure {
		text += ", unless another of its goroutines frees"
	}
	return text
}

// Waiters are the requests that wait, the holders of memory, and the waits between them. Requests of several streams
// are of moments close to each other.
type Waiters struct {
	// Requests are in the order of service; requests without a place in the queue come last. A request
	// waits for earlier ones, though a small one may pass.
	Requests []streams.WaitingRequest `json:"requests"`
	Holders  []pool.Holder            `json:"holders"` // of memory, the largest first
	Edges    []WaitEdge               `json:"edges"`
	Unread   []uint32                 `json:"unread"` // streams that have failed: their requests are not in the list
}

// Waiters lists the requests that wait, and the parties that they wait for. It shows a circle before it is a
// *DeadlockError, and also if it never becomes one, since streams or tenants are not declared exclusive. It
// waits for the request that each stream and the pool are serving, as Stats does. Errors: the
// context's, ErrClosed, and the error of a failed pool.
func (d *Device) Waiters(ctx context.Context) (Waiters, error) {
	var w Waiters
	told := map[uint32][][]uint32{}
	failed, err := d.eachStream(ctx, func(s *streams.Control) error {
		all, err := s.Waiting(ctx)
		w.Requests = append(w.Requests, all...)
		told[s.ID()] = s.Suspensions()
		return err
	})
	if err != nil {
		return Waiters{}, err
	}
	w.Unread = failed
	e := d.engine.Load()
	if e == nil {
		return w, nil
	}
	queue, err := e.pool.Queue(ctx)
	if err != nil {
		return Waiters{}, closedOr(err)
	}
	w.Holders = queue.Holders
	w.rank(queue.Waiters)
	w.connect(told)
	return w, nil
}

// rank gives the requests their places in the queue, and adds requests that began to wait after the streams were read.
func (w *Waiters) rank(queue []pool.Waiter) {
	at := map[uint64]int{} // by age, in Requests
	for i, r := range w.Requests {
		if r.Age != 0 {
			at[r.Age] = i
		}
	}
	for i, q := range queue {
		k, found := at[q.Age]
		if !found {
			k = len(w.Requests)
			r := streams.WaitingRequest{Stream: q.Stream, Bytes: q.Bytes, Count: 1, Tenant: q.Tenant, Priority: q.Priority, Blocked: q.Blocked, Age: q.Age}
			if q.ForQuota {
				r.For = streams.WaitForQuota
			}
			w.Requests = append(w.Requests, r)
		}
		w.Requests[k].Position = i + 1
	}
	slices.SortFunc(w.Requests, func(a, b streams.WaitingRequest) int {
		return cmp.Or(compareTrue(a.Position > 0, b.Position > 0), cmp.Compare(a.Position, b.Position), cmp.Compare(a.Age, b.Age), cmp.Compare(a.Stream, b.Stream))
	})
}

// compareTrue puts true first.
func compareTrue(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// party returns the party of a request.
func party(r *streams.WaitingRequest) Party {
	if r.Tenant != "" {
		return Party{Tenant: r.Tenant}
	}
	return Party{Stream: r.Stream}
}

// connect draws the waits of parties for others.
func (w *Waiters) connect(told map[uint32][][]uint32) {
	for i := range w.Requests {
		r := &w.Requests[i]
		switch from := party(r); r.For {
		case streams.WaitForMemory:
			w.connectHolders(from, r.Blocked)
		case streams.WaitForQuota: // the tenant's own buffers
			w.connectOne(WaitEdge{From: Party{Stream: r.Stream}, To: from, Sure: r.Blocked})
		case streams.WaitForPool, streams.WaitForHandler, streams.WaitForWork: // that ends by itself
		}
	}
	ids := make([]uint32, 0, len(told))
	for id := range told {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		from := Party{Stream: id}
		for _, by := range told[id] {
			if len(by) == 0 {
				w.connectHolders(from, true)
			}
			for _, to := range by {
				w.connectOne(WaitEdge{From: from, To: Party{Stream: to}, Told: true, Sure: true})
			}
		}
	}
}

func (w *Waiters) connectHolders(from Party, sure bool) {
	for _, h := range w.Holders {
		w.connectOne(WaitEdge{From: from, To: Party{h.Stream, h.Tenant}, Sure: sure})
	}
}

// connectOne adds an edge, once for each pair: the surest.
func (w *Waiters) connectOne(e WaitEdge) {
	if e.From == e.To {
		return
	}
	for i := range w.Edges {
		if have := &w.Edges[i]; have.From == e.From && have.To == e.To {
			have.Sure, have.Told = have.Sure || e.Sure, have.Told || e.Told
			return
		}
	}
	w.Edges = append(w.Edges, e)
}

// Going returns the holders of memory that neither wait for more nor are suspended: while there is one,
// its frees may serve the others. Once there is none, and all who wait are sure, it is a deadlock.
func (w Waiters) Going() (all []pool.Holder) {
	for _, h := range w.Holders {
		waits := slices.ContainsFunc(w.Edges, func(e WaitEdge) bool { return e.From == Party{h.Stream, h.Tenant} })
		if !waits && h.WaitingBytes == 0 && !h.Suspended {
			all = append(all, h)
		}
	}
	return all
}

// Circles returns the parties that wait for each other, directly or through others, each circle in one
// list. A circle is no deadlock while one of its parties, or any other holder, is runnable.
func (w Waiters) Circles() (all [][]Party) {
	reach := map[Party][]Party{}
	var parties []Party
	for _, e := range w.Edges {
		for _, p := range []Party{e.From, e.To} {
			if _, known := reach[p]; !known {
				reach[p] = nil
				parties = append(parties, p)
			}
		}
	}
	for _, p := range parties {
		reach[p] = w.reached(p)
	}
	seen := map[Party]bool{}
	for _, p := range parties {
		if seen[p] || !slices.Contains(reach[p], p) {
			continue
		}
		var circle []Party
		for _, q := range parties {
			if slices.Contains(reach[p], q) && slices.Contains(reach[q], p) {
				circle = append(circle, q)
				seen[q] = true
			}
		}
		all = append(all, circle)
	}
	return all
}

// reached returns the parties that one waits for, directly or through others.
func (w Waiters) reached(from Party) (all []Party) {
	due := []Party{from}
	for len(due) > 0 {
		at := due[0]
		due = due[1:]
		for _, e := range w.Edges {
			if e.From == at && !slices.Contains(all, e.To) {
				all = append(all, e.To)
				due = append(due, e.To)
			}
		}
	}
	return all
}

// linesShown bounds the requests and edges of the text. The fields have all.
const linesShown = 20

// String prints a line for each request, holder and edge, the circles, and the runnable holders.
func (w Waiters) String() string {
	var sum int64
	for i := range w.Requests {
		sum += w.Requests[i].Bytes
	}
	verb := "wait"
	if len(w.Requests) == 1 {
		verb = "waits"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s for %s in all\n", units.Count(len(w.Requests), "request"), verb, units.Bytes(sum))
	for _, id := range w.Unread {
		fmt.Fprintf(&b, "stream %d has failed: its requests are not listed\n", id)
	}
	lines := func(title string, count int, line func(i int) string) {
		if count > 0 {
			b.WriteString(title + ":\n")
		}
		for i := range min(count, linesShown) {
			b.WriteString("  " + line(i) + "\n")
		}
		if count > linesShown {
			fmt.Fprintf(&b, "  and %d more\n", count-linesShown)
		}
	}
	lines("requests, in the order in which they are served", len(w.Requests), func(i int) string {
		if w.Requests[i].Position == 0 {
			return " -  " + w.Requests[i].String()
		}
		return fmt.Sprintf("%2d. %v", w.Requests[i].Position, w.Requests[i])
	})
	lines("who holds memory", len(w.Holders), func(i int) string { return w.Holders[i].String() })
	lines("who waits for whom", len(w.Edges), func(i int) string { return w.Edges[i].String() })
	circles := w.Circles()
	lines("circles", len(circles), func(i int) string { return listed(circles[i]) + " wait for each other" })
	if len(w.Requests) > 0 && len(w.Holders) > 0 {
		b.WriteString(goingText(w.Going()))
	}
	return b.String()
}

// listed prints parties in one line.
func listed(all []Party) string {
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.String()
	}
	return strings.Join(names, ", ")
}

func goingText(going []pool.Holder) string {
	if len(going) == 0 {
		return "no holder of memory can proceed by itself: only a goroutine that is not declared exclusive, or a context's end, helps\n"
	}
	var parties []Party
	for _, h := range going[:min(linesShown, len(going))] {
		parties = append(parties, Party{h.Stream, h.Tenant})
	}
	return "holders of memory that can proceed: " + listed(parties) + "\n"
}

// MemoryState is the use of a range of a MemoryMap.
type MemoryState uint8

// The states of memory.
const (
	MemoryLive        MemoryState = iota // in buffers, each rounded up to its block
	MemoryPending                        // freed, while announced uses on other streams have not finished
	MemoryCachedBlock                    // cached by a stream: free blocks in its magazines
	MemoryCachedRange                    // cached by a stream: its free ranges
	MemoryFree                           // free in the pool
	MemorySetAside                       // of a reservation, not drawn yet
	MemoryBusy                           // part of a driver job that has not ended, or that the driver did not take back
	// MemoryLent is lent to a stream that has not reported its use: it was on its way between pool and stream when
	// the two were read, or the stream has failed.
	MemoryLent
	MemoryMixed // short neighbours of several states: see MemoryRange.Mixed
)

// stateNames are the names of the states, by number.
var stateNames = [...]string{ //nolint:gochecknoglobals // constant table
	"live", "pending", "cached-block", "cached-range", "free", "set-aside", "busy", "lent", "mixed",
}

// String returns the state's name.
func (s MemoryState) String() string { return nameOf(stateNames[:], int(s), "MemoryState") }

// MarshalText implements encoding.TextMarshaler: the name.
func (s MemoryState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. The error is a *ConfigError.
func (s *MemoryState) UnmarshalText(text []byte) error {
	return unmarshal(text, s, func(name string) (MemoryState, error) {
		const want = "live, pending, cached-block, cached-range, free, set-aside, busy, lent or mixed"
		return parseName[MemoryState](stateNames[:], name, "MemoryState", want)
	})
}

// MemoryBytes are bytes by state.
type MemoryBytes struct {
	LiveBytes        int64 `json:"live_bytes"`
	PendingBytes     int64 `json:"pending_bytes"`
	CachedBlockBytes int64 `json:"cached_block_bytes"` // with CachedRangeBytes they are Stats.CachedBytes
	CachedRangeBytes int64 `json:"cached_range_bytes"`
	FreeBytes        int64 `json:"free_bytes"`
	SetAsideBytes    int64 `json:"set_aside_bytes"`
	BusyBytes        int64 `json:"busy_bytes"`
	LentBytes        int64 `json:"lent_bytes"`
	// of FreeBytes: for the stream alone that returned them, until its work has finished
	UnpassedBytes int64 `json:"unpassed_bytes"`
	// of all but UnpassedBytes: asleep, and not held from the driver; see package cuda/sleep
	SleepingBytes int64 `json:"sleeping_bytes"`
}

// MemoryRange is memory side by side in one state.
type MemoryRange struct {
	OffsetBytes int64       `json:"offset_bytes"` // from the beginning of its segment
	Bytes       int64       `json:"bytes"`
	State       MemoryState `json:"state"`
	Asleep      bool        `json:"asleep"` // it has no physical memory: see package cuda/sleep
	// Stream is the number of the stream, or of the reservation, that has the memory; of free memory the stream that alone may
	// have it until its work has finished. 0: none, or several.
	Stream      uint32       `json:"stream"`
	Tag         string       `json:"tag"`          // of its buffers: Request.Tag; "" where they have none or several
	BufferCount int          `json:"buffer_count"` // live buffers that begin in it
	Mixed       *MemoryBytes `json:"mixed"`        // of MemoryMixed; else nil
}

// MemorySegment is a range of address space that is held from the driver, with nothing held on either side of it.
type MemorySegment struct {
	Address     Ptr           `json:"address"`
	Bytes       int64         `json:"bytes"`
	HandleCount int           `json:"handle_count"` // physical allocations that begin in it
	Ranges      []MemoryRange `json:"ranges"`       // in order; they cover the segment
}

// MemoryMap is where the memory of a device lies, and the use of each part of it.
type MemoryMap struct {
	Segments        []MemorySegment `json:"segments"` // in order of their addresses, or, of plain segments, of their numbers
	PageBytes       int64           `json:"page_bytes"`
	ResolutionBytes int64           `json:"resolution_bytes"` // shorter ranges may be part of mixed ones
	Total           MemoryBytes     `json:"total"`            // of all segments
	// UnmappedBytes are held from the driver and lie in no segment: a driver job has made them, or is about to release them, or
	// the driver did not take them back.
	UnmappedBytes int64 `json:"unmapped_bytes"`
	ReservedBytes int64 `json:"reserved_bytes"` // all segments and UnmappedBytes, without sleeping and shared memory
	LimitBytes    int64 `json:"limit_bytes"`    // of ReservedBytes: without SharedBytes
	SharedBytes   int64 `json:"shared_bytes"`   // of package cuda/share, in no segment
}

// add adds sums.
func (b *MemoryBytes) add(s *memorymap.Sums) {
	b.LiveBytes += s.Bytes[memorymap.Live]
	b.PendingBytes += s.Bytes[memorymap.Pending]
	b.CachedBlockBytes += s.Bytes[memorymap.CachedBlock]
	b.CachedRangeBytes += s.Bytes[memorymap.CachedRange]
	b.FreeBytes += s.Bytes[memorymap.Free]
	b.SetAsideBytes += s.Bytes[memorymap.SetAside]
	b.BusyBytes += s.Bytes[memorymap.Busy]
	b.LentBytes += s.Bytes[memorymap.Lent]
	b.UnpassedBytes += s.UnpassedBytes
	b.SleepingBytes += s.AsleepBytes
}

// String prints the sums by state, on one line.
func (m MemoryMap) String() string {
	t := m.Total
	parts := []string{fmt.Sprintf("%s: live %s, pending %s, cached %s in magazines and %s in ranges, free %s",
		units.Count(len(m.Segments), "segment"), units.Bytes(t.LiveBytes), units.Bytes(t.PendingBytes), units.Bytes(t.CachedBlockBytes),
		units.Bytes(t.CachedRangeBytes), units.Bytes(t.FreeBytes))}
	for _, part := range []struct {
		name  string
		bytes int64
	}{
		{"set aside", t.SetAsideBytes},
		{"busy", t.BusyBytes},
		{"lent", t.LentBytes},
		{"asleep", t.SleepingBytes},
		{"unmapped", m.UnmappedBytes},
		{"shared", m.SharedBytes},
	} {
		if part.bytes > 0 {
			parts = append(parts, part.name+" "+units.Bytes(part.bytes))
		}
	}
	return strings.Join(parts, "; ")
}

// cellsOfMap divides the length of a map into cells of automatic resolution. Not fewer: a picture has some thousand points in a
// line. Not more: each is a few hundred bytes.
const cellsOfMap = 4096

// minResolutionBytes is the shortest block.
const minResolutionBytes = 512

// MemoryMap reads where the memory lies: the segments that are held from the driver, and in each the ranges by state.
// Neighbours of the same state, stream and tag are one range, and so are neighbours that are shorter than resolutionBytes: of
// two states or more they are a mixed range with the sums. So a map has about twice as many ranges as resolutionBytes fit into
// it at most. With 0 the resolution is a 4096th of the memory, and 512 bytes at least.
//
// It takes one turn of the pool and then one of each stream, as Stats does, and stops nothing else. The report of a stream is
// of one moment; the moments of the pool and of the streams are close to each other. The pool decides which stream has a page:
// ranges never overlap, and together they are all memory that was mapped when the pool was read. Memory that changed hands
// between two moments is MemoryLent. While the device is idle the sums equal those in Stats.
//
// Before the first use of the device the map is empty. Errors: *ConfigError for a negative resolution, the context's,
// ErrClosed, and the cause of the pool's end.
func (d *Device) MemoryMap(ctx context.Context, resolutionBytes int64) (MemoryMap, error) {
	if err := d.callable(ctx); err != nil {
		return MemoryMap{}, err
	}
	if resolutionBytes < 0 {
		return MemoryMap{}, badArgument("Device.MemoryMap", "resolutionBytes", resolutionBytes, "0 or more")
	}
	e := d.engine.Load()
	switch {
	case d.closed.Load():
		return MemoryMap{}, deviceClosed()
	case e == nil:
		return MemoryMap{LimitBytes: d.limit.Load(), ResolutionBytes: max(resolutionBytes, minResolutionBytes)}, ctx.Err()
	}
	p, err := e.pool.Map(ctx)
	if errors.Is(err, pool.ErrClosed) {
		return MemoryMap{}, deviceClosed()
	}
	if err != nil {
		return MemoryMap{}, failed("memory map", err)
	}
	m := &mapMaker{pageBytes: e.pool.PageBytes(), lent: map[poolcore.Client][]memorymap.Range{}}
	m.out = MemoryMap{
		PageBytes: m.pageBytes, ResolutionBytes: resolutionBytes, ReservedBytes: p.ReservedBytes, LimitBytes: p.LimitBytes, SharedBytes: p.OutsideBytes,
	}
	if resolutionBytes == 0 {
		m.out.ResolutionBytes = max(minResolutionBytes, p.ReservedBytes/cellsOfMap)
	}
	for _, s := range d.streams.Load().open {
		ranges, _ := s.Map(ctx, m.out.ResolutionBytes) // none of one that has ended, or failed
		if err := ctx.Err(); err != nil {
			return MemoryMap{}, failed("memory map", err)
		}
		m.lent[poolcore.Client(s.ID())] = ranges
	}
	for i := range p.Runs {
		m.add(&p.Runs[i])
	}
	m.endSegment()
	m.out.UnmappedBytes = m.out.ReservedBytes - m.heldBytes
	return m.out, nil
}

// mapMaker puts together the reports of the pool and the streams.
type mapMaker struct {
	pageBytes int64
	lent      map[poolcore.Client][]memorymap.Range // of each stream, as far as they are not added yet
	out       MemoryMap
	heldBytes int64 // in segments

	// The segment to which the runs are added.
	end     uint32 // page after the last run
	segment MemorySegment
	start   int64 // of the segment, as ranges count
	builder memorymap.Builder
}

// add adds the next run.
func (m *mapMaker) add(r *poolcore.MappedRun) {
	start, bytes := int64(r.First)*m.pageBytes, int64(r.Pages)*m.pageBytes
	if m.segment.Bytes == 0 || r.First != m.end {
		m.endSegment()
		m.segment, m.start = MemorySegment{Address: r.At}, start
		m.builder.ResolutionBytes = m.out.ResolutionBytes
	}
	m.end = r.End()
	m.segment.Bytes += bytes
	m.segment.HandleCount += r.Handles
	if !r.Asleep {
		m.heldBytes += bytes
	}
	piece := memorymap.Range{Start: start, Bytes: bytes, Stream: uint32(r.Client), Asleep: r.Asleep}
	switch {
	case r.SetAside:
		piece.State = memorymap.SetAside
	case r.State == memory.Free:
		piece.State = memorymap.Free
	case r.State == memory.Lent:
		piece.State = memorymap.Lent
		m.lent[r.Client] = memorymap.Within(piece, m.lent[r.Client], m.builder.Add)
		return
	default:
		piece.State = memorymap.Busy
	}
	m.builder.Add(piece)
}

// endSegment puts the segment that is being added to into the map.
func (m *mapMaker) endSegment() {
	if m.segment.Bytes == 0 {
		return
	}
	var total memorymap.Sums
	for _, r := range m.builder.List() {
		r.AddTo(&total)
		out := MemoryRange{
			OffsetBytes: r.Start - m.start, Bytes: r.Bytes, State: MemoryState(r.State), Asleep: r.Asleep, Stream: r.Stream, Tag: r.Tag,
			BufferCount: r.Buffers,
		}
		if r.State == memorymap.Mixed {
			out.Mixed = new(MemoryBytes)
			out.Mixed.add(r.Sums)
			out.Asleep = r.Sums.AsleepBytes == r.Bytes
		}
		m.segment.Ranges = append(m.segment.Ranges, out)
	}
	m.out.Total.add(&total)
	m.out.Segments = append(m.out.Segments, m.segment)
	m.segment = MemorySegment{}
}

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
	SampleBytes int64           `json:"sample_bytes"`
	Records     []ProfileRecord `json:"records"`
}

// ProfileRecord is a place. Its totals stay when its buffers were freed. A device has 4096 of them: when there would be more,
// those without live buffers are gathered in one for each call stack, which has no stream, tag and tenant.
type ProfileRecord struct {
	Stack  site.Stack `json:"stack"`  // the call stack; nil in the record of those for which there was no room
	Stream uint32     `json:"stream"` // by its ID; 0 where records were gathered
	Tag    string     `json:"tag"`    // of the requests
	Tenant string     `json:"tenant"` // by its name; "": none
	// Allocated is of all buffers; InUse is of those that were not freed.
	Allocated ProfileTotals `json:"allocated"`
	InUse     ProfileTotals `json:"in_use"`
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

// SampledBuffers lists the live buffers of the profile. It waits for the request that each stream is
// serving, and visits every live buffer; other goroutines keep allocating. The end of ctx ends it early.
func (d *Device) SampledBuffers(ctx context.Context) (all []streams.SampledBuffer, err error) {
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

// profileShare returns the share of allocations that the profile counts.
func (c *Config) profileShare() magazine.Share {
	if c.SampleBytes == 0 {
		return 0
	}
	const all = int64(magazine.Everything) << sizeclass.UnitShift
	return magazine.Share(max(1, min(all/c.SampleBytes, int64(magazine.Everything)))) //nolint:gosec // 32 bits
}

// ofStream returns the settings of a stream: observers and Debug sample every buffer.
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

// String prints the device's name, state and limit, and its number of streams. It touches no driver
// and takes no turn.
func (d *Device) String() string {
	if !d.opened() {
		return "no device"
	}
	c := d.config.Load()
	var text string
	switch e := d.engine.Load(); {
	case d.closed.Load():
		return fmt.Sprintf("device %d of the driver %s, closed", c.Ordinal, c.Driver.Name())
	case e == nil:
		return fmt.Sprintf("device %d of the driver %s, not used yet", c.Ordinal, c.Driver.Name())
	default:
		info := e.driver.Info()
		text = fmt.Sprintf("device %d, %s, driver %s", info.Ordinal, info.Name, info.Driver)
	}
	return text + fmt.Sprintf(", limit %s, %s", units.Bytes(d.limit.Load()), units.Count(len(d.streams.Load().open), "stream"))
}

// String is a number and a size.
func (d Demand) String() string { return fmt.Sprintf("%d × %s", d.Count, units.Bytes(d.Bytes)) }

// String names the fields that are changed.
func (s Settings) String() string {
	var changed []string
	fields := reflect.ValueOf(s)
	for i := range fields.NumField() {
		if f := fields.Field(i); !f.IsNil() {
			changed = append(changed, printed(fields.Type().Field(i).Name, f.Elem()))
		}
	}
	if len(changed) == 0 {
		return "no change"
	}
	return strings.Join(changed, ", ")
}

// String names the fields that are set, and their values except for functions and interfaces.
func (c Config) String() string {
	var set []string
	fields := reflect.ValueOf(c)
	for i := range fields.NumField() {
		f, name := fields.Field(i), fields.Type().Field(i).Name
		switch {
		case f.IsZero():
		case name == "Driver":
			set = append(set, "Driver: "+c.Driver.Name())
		case f.Kind() == reflect.Func, f.Kind() == reflect.Interface, name == "Events", name == "Observer":
			set = append(set, name+": set")
		default:
			set = append(set, printed(name, f))
		}
	}
	if len(set) == 0 {
		return "the zero Config"
	}
	return strings.Join(set, ", ")
}

// MarshalText implements encoding.TextMarshaler: the text of String. encoding/json, and so slog's handler, refuses functions,
// which a Config has.
func (c Config) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// printed formats a field.
func printed(name string, value reflect.Value) string {
	return fmt.Sprintf("%s: %v", name, value.Interface())
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (d *Device) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// MarshalJSON implements json.Marshaler: an empty list is [].
func (w Waiters) MarshalJSON() ([]byte, error) {
	type plain Waiters
	w.Requests, w.Holders = jsonform.List(w.Requests), jsonform.List(w.Holders)
	w.Edges, w.Unread = jsonform.List(w.Edges), jsonform.List(w.Unread)
	return json.Marshal(plain(w))
}

// MarshalJSON implements json.Marshaler: an empty list is [].
func (m MemoryMap) MarshalJSON() ([]byte, error) {
	type plain MemoryMap
	m.Segments = jsonform.List(m.Segments)
	return json.Marshal(plain(m))
}

// MarshalJSON implements json.Marshaler: an empty list is [].
func (m MemorySegment) MarshalJSON() ([]byte, error) {
	type plain MemorySegment
	m.Ranges = jsonform.List(m.Ranges)
	return json.Marshal(plain(m))
}

// MarshalJSON implements json.Marshaler: an empty list is [].
func (p Profile) MarshalJSON() ([]byte, error) {
	type plain Profile
	p.Records = jsonform.List(p.Records)
	return json.Marshal(plain(p))
}

// MarshalJSON implements json.Marshaler: the stack is its place, and frames has all of its calls, as text.
func (p ProfileRecord) MarshalJSON() ([]byte, error) {
	type plain ProfileRecord
	return json.Marshal(struct {
		plain
		Frames []string `json:"frames"`
	}{plain(p), strings.FieldsFunc(p.Stack.Trace(""), func(c rune) bool { return c == '\n' })})
}

// MarshalJSON implements json.Marshaler: a duration is in seconds, and a number that JSON does not have is text.
func (e *ConfigError) MarshalJSON() ([]byte, error) {
	type plain ConfigError
	p := plain(*e)
	switch v := e.Value.(type) {
	case encoding.TextMarshaler: // nil pointers among them
		text, err := v.MarshalText()
		if err != nil {
			return nil, err
		}
		p.Value = string(text)
	case error:
		p.Value = v.Error()
	case time.Duration:
		p.Value = v.Seconds()
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			p.Value = fmt.Sprint(v)
		}
	}
	return json.Marshal(p)
}

// MarshalJSON implements json.Marshaler: the error is its text.
func (e *EnvError) MarshalJSON() ([]byte, error) {
	type plain EnvError
	return json.Marshal(struct {
		plain
		Err any `json:"err"`
	}{plain(*e), jsonform.Error(e.Err)})
}

// MarshalJSON implements json.Marshaler: an empty list is [].
func (e *InUseError) MarshalJSON() ([]byte, error) {
	type plain InUseError
	p := plain(*e)
	p.Buffers = jsonform.List(e.Buffers)
	return json.Marshal(p)
}

// MarshalJSON implements json.Marshaler: the error is its text.
func (e QuarantineEvent) MarshalJSON() ([]byte, error) {
	type plain QuarantineEvent
	return json.Marshal(struct {
		plain
		Err any `json:"err"`
	}{plain(e), jsonform.Error(e.Err)})
}

// MarshalJSON implements json.Marshaler: the value and the stack are text.
func (e PanicEvent) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Place string `json:"place"`
		Value string `json:"value"`
		Stack string `json:"stack"`
	}{e.Place, fmt.Sprint(e.Value), string(e.Stack)})
}

// ErrNoProcesses reports that Config.Processes is nil.
var ErrNoProcesses = errors.New("vram: Config.Processes is not set")

// GPUProcesses lists the processes with memory on the GPU, this one included, by Config.Processes. It counts as a use of the device,
// makes no driver call, and waits for no turn. Errors: ErrNoProcesses, ErrClosed, ErrNotOpen, ErrNilContext, ctx's, the
// errors of Config.Processes, and of the device's first use.
func (d *Device) GPUProcesses(ctx context.Context) ([]GPUProcess, error) {
	if err := d.callable(ctx); err != nil {
		return nil, err
	}
	if d.config.Load().Processes == nil {
		return nil, ErrNoProcesses
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e, err := d.use() //nolint:contextcheck // the first use is not this caller's alone
	if err != nil {
		return nil, err
	}
	if d.closed.Load() {
		return nil, deviceClosed()
	}
	return d.askProcesses(ctx, e)
}

// askProcesses calls Config.Processes. Its panic is its error. It has a goroutine of its own, which it may end: that is its error, too.
func (d *Device) askProcesses(ctx context.Context, e *engine) (all []GPUProcess, err error) {
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		returned := false
		defer func() {
			if !returned {
				all, err = nil, fmt.Errorf("vram: Processes panicked: %v", d.panics.Here("Processes", recover()))
			}
		}()
		all, err = d.config.Load().Processes(ctx, e.driver.Info())
		returned = true
	}()
	<-answered
	return all, err
}

// processesTimeout bounds the wait of a refused request for the list of processes. Not shorter: NVML takes tens of milliseconds for
// many processes. Not longer: the caller waits for its error.
const processesTimeout = 250 * time.Millisecond

// mostProcesses is the number of other processes in an error.
const mostProcesses = 10

// completer returns the function that names other processes in refusals; nil without Config.Processes.
func (d *Device) completer(c *Config) func(*OutOfMemoryError) {
	if c.Processes == nil {
		return nil
	}
	return d.nameProcesses
}

// nameProcesses enters the largest other processes on the GPU into a refusal of the driver, or why they are not known.
func (d *Device) nameProcesses(short *OutOfMemoryError) {
	e := d.engine.Load()
	if short.Cause == nil || e == nil || d.config.Load().Processes == nil { // the limit has refused
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer time.AfterFunc(processesTimeout, cancel).Stop() // as in askNeighbours
	all, err := d.askProcesses(ctx, e)
	all = slices.DeleteFunc(slices.Clone(all), func(p GPUProcess) bool { return p.Own })
	slices.SortStableFunc(all, func(a, b GPUProcess) int { return cmp.Compare(b.Bytes, a.Bytes) })
	short.Processes, short.ProcessesErr = all[:min(len(all), mostProcesses)], err
}
