package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-vram/vram/internal/units"
)

// List is the live buffers of a device, largest first.
type List struct {
	Buffers []Buffer `json:"buffers"`
	Bytes   int64    `json:"bytes"` // of their blocks
	// Unread are failed streams: their buffers are not in the list.
	Unread []uint32 `json:"unread"`
}

// Of returns the list of the buffers, which it sorts.
func Of(all []Buffer) (l List) {
	for i := range all {
		l.Bytes += all[i].Bytes
	}
	Sort(all)
	l.Buffers = all
	return l
}

// Group sums the live buffers that have a property in common.
type Group struct {
	Name     string        `json:"name"` // a tag, a tenant, "stream 3", or a place; empty: of the buffers without one
	Count    int           `json:"count"`
	Bytes    int64         `json:"bytes"`     // of their blocks
	MaxBytes int64         `json:"max_bytes"` // of the largest
	Age      time.Duration `json:"-"`         // of the oldest with a known age; 0: none has
}

// ByTag sums the buffers by the tags of their requests, the largest sum first.
func (l List) ByTag() []Group { return group(l.Buffers, func(b *Buffer) string { return b.Tag }) }

// ByTenant sums the buffers by their tenants, the largest sum first.
func (l List) ByTenant() []Group {
	return group(l.Buffers, func(b *Buffer) string { return b.Tenant })
}

// ByStream sums the buffers by their streams, the largest sum first.
func (l List) ByStream() []Group {
	return group(l.Buffers, func(b *Buffer) string { return fmt.Sprintf("stream %d", b.Stream) })
}

// ByPlace sums the buffers by the program's innermost call that allocated them, the largest sum
// first.
func (l List) ByPlace() []Group { return group(l.Buffers, place) }

// Largest returns the first count buffers, or all.
func (l List) Largest(count int) []Buffer { return l.Buffers[:min(max(count, 0), len(l.Buffers))] }

func place(b *Buffer) string {
	if !b.Allocated.Known() {
		return ""
	}
	return b.Allocated.String()
}

func group(all []Buffer, name func(*Buffer) string) []Group {
	at := map[string]int{}
	var groups []Group
	for i := range all {
		b, key := &all[i], name(&all[i])
		k, found := at[key]
		if !found {
			k = len(groups)
			at[key] = k
			groups = append(groups, Group{Name: key})
		}
		g := &groups[k]
		g.Count++
		g.Bytes += b.Bytes
		g.MaxBytes = max(g.MaxBytes, b.Bytes)
		g.Age = max(g.Age, b.Age)
	}
	slices.SortFunc(groups, func(a, b Group) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name)) })
	return groups
}

// String returns a table: the sums by tenant, tag, stream and place, and the largest buffers.
func (l List) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s in all\n", units.Count(len(l.Buffers), "live buffer"), units.Bytes(l.Bytes))
	for _, id := range l.Unread {
		fmt.Fprintf(&b, "stream %d has failed: its buffers are not listed\n", id)
	}
	WriteGroups(&b, l)
	WriteLargest(&b, l.Largest(MaxListed))
	return b.String()
}

// groupsShown is the number of groups of a kind in a table: the rest are summed up.
const groupsShown = 10

// WriteGroups writes the sums of each kind that has more than one group.
func WriteGroups(b *strings.Builder, l List) {
	for _, kind := range []struct {
		title, none string
		groups      []Group
	}{
		{"by tenant", "no tenant", l.ByTenant()},
		{"by tag", "no tag", l.ByTag()},
		{"by stream", "", l.ByStream()},
		{"by place", "unknown: SampleBytes or Config.Debug records places", l.ByPlace()},
	} {
		if len(kind.groups) == 0 || len(kind.groups) == 1 && kind.groups[0].Name == "" {
			continue
		}
		b.WriteString(kind.title + ":\n")
		for i := range kind.groups[:min(groupsShown, len(kind.groups))] {
			kind.groups[i].write(b, kind.none)
		}
		if more := kind.groups[min(groupsShown, len(kind.groups)):]; len(more) > 0 {
			rest := Group{Name: fmt.Sprintf("%d more", len(more))}
			for _, g := range more {
				rest.Bytes += g.Bytes
				rest.Count += g.Count
			}
			rest.write(b, "")
		}
	}
}

func (g *Group) write(b *strings.Builder, none string) {
	name := g.Name
	if name == "" {
		name = none
	}
	fmt.Fprintf(b, "  %10s  %-14s  %s", units.Bytes(g.Bytes), units.Count(g.Count, "buffer"), name)
	if g.Age > 0 {
		b.WriteString(", the oldest " + units.Duration(g.Age) + " old")
	}
	b.WriteByte('\n')
}

// WriteLargest writes a line for each of the largest buffers.
func WriteLargest(b *strings.Builder, all []Buffer) {
	if len(all) == 0 {
		return
	}
	b.WriteString("largest buffers:\n")
	for i := range all {
		x := &all[i]
		fmt.Fprintf(b, "  %10s  at %v%s", units.Bytes(x.Bytes), x.Ptr, x.facts())
		if x.Age > 0 {
			b.WriteString(", " + units.Duration(x.Age) + " old")
		}
		b.WriteByte('\n')
	}
}
