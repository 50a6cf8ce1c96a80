package inventory

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/units"
)

const mib = int64(1) << 20

func buffers() []Buffer {
	return []Buffer{
		{Stream: 2, Ptr: 0x10, Bytes: mib},
		{Stream: 1, Ptr: 0x30, Bytes: 4 * mib, Tag: "weights", Tenant: "gold", Age: 90 * time.Second},
		{Stream: 1, Ptr: 0x20, Bytes: 4 * mib, Tag: "weights", Age: 2 * time.Hour},
		{Stream: 1, Ptr: 0x40, Bytes: 2 * mib, Tag: "cache", RequestedBytes: mib},
	}
}

// The text is a table of the sums and the largest buffers, the largest first.
func TestTheTextOfAList(t *testing.T) {
	t.Parallel()
	l := Of(buffers())
	l.Unread = []uint32{3}
	assert.Equal(t, strings.TrimLeft(`
4 live buffers, 11 MiB in all
stream 3 has failed: its buffers are not listed
by tenant:
       7 MiB  3 buffers       no tenant, the oldest 2h0m0s old
       4 MiB  1 buffer        gold, the oldest 1m30s old
by tag:
       8 MiB  2 buffers       weights, the oldest 2h0m0s old
       2 MiB  1 buffer        cache
       1 MiB  1 buffer        no tag
by stream:
      10 MiB  3 buffers       stream 1, the oldest 2h0m0s old
       1 MiB  1 buffer        stream 2
largest buffers:
       4 MiB  at 0x20 on stream 1, tag "weights", 2h0m0s old
       4 MiB  at 0x30 on stream 1, tag "weights", tenant "gold", 1m30s old
       2 MiB  at 0x40 on stream 1, tag "cache"
       1 MiB  at 0x10 on stream 2
`, "\n"), l.String())
	assert.Equal(t, "0 live buffers, 0 B in all\n", List{}.String())
}

// A group has the size of its largest buffer, in any order, and its age in seconds where it is JSON.
func TestGroupsAreMaxima(t *testing.T) {
	t.Parallel()
	for _, order := range [][]int64{{3, 1, 2}, {1, 2, 3}, {1, 3, 2}} {
		var all []Buffer
		for _, size := range order {
			all = append(all, Buffer{Stream: 1, Bytes: size, Age: time.Duration(size) * 500 * time.Millisecond})
		}
		want := Group{Name: "stream 1", Count: 3, Bytes: 6, MaxBytes: 3, Age: 1500 * time.Millisecond}
		got := Of(all).ByStream()
		assert.Equal(t, []Group{want}, got)
		text, err := json.Marshal(got[0])
		require.NoError(t, err)
		assert.Contains(t, string(text), `"age_seconds":1.5}`)
	}
}

// Buffers of one size are in the order of their streams, and then of their addresses.
func TestSort(t *testing.T) {
	t.Parallel()
	want := []Buffer{{Stream: 2, Ptr: 9, Bytes: 2}, {Stream: 1, Ptr: 5, Bytes: 1}, {Stream: 1, Ptr: 7, Bytes: 1}, {Stream: 2, Ptr: 3, Bytes: 1}}
	for first := range want {
		got := slices.Concat(want[first:], want[:first])
		Sort(got)
		assert.Equal(t, want, got)
	}
}

// A property that all buffers or none have in common is not summed; of many groups the smallest share one
// line.
func TestGroupsThatSayNothingAreLeftOut(t *testing.T) {
	t.Parallel()
	var all []Buffer
	for i := range 13 {
		for range 2 { // a group is more than its largest buffer
			all = append(all, Buffer{Stream: 1, Ptr: 1, Bytes: int64(i+1) * mib / 2, Tag: fmt.Sprintf("tag %02d", i)})
		}
	}
	text := Of(all).String()
	assert.NotContains(t, text, "by tenant")
	assert.NotContains(t, text, "by place")
	assert.Contains(t, text, "      13 MiB  2 buffers       tag 12\n")
	assert.Contains(t, text, "       6 MiB  6 buffers       3 more\n")
	assert.Equal(t, 10+1, strings.Count(text[strings.Index(text, "by tag"):strings.Index(text, "by stream")], "\n")-1)
}

// The line of an error names three buffers.
func TestDescribeNamesThree(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	Describe(&b, nil)
	assert.Empty(t, b.String())
	Describe(&b, Of(buffers()).Buffers)
	assert.Equal(t, `; largest buffers: 4 MiB on stream 1, tag "weights" / 4 MiB on stream 1, tag "weights", tenant "gold" / 2 MiB on stream 1, tag "cache"`, b.String())
}

// Groups are sums of all buffers with a name, each once, the largest first and of equal ones by their names, in whatever order the
// buffers are.
func TestGroupsAreSumsInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var all []Buffer
		want := map[string]Group{}
		for range rapid.IntRange(0, 20).Draw(t, "buffers") {
			b := Buffer{
				Stream: 1, Tag: rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "tag"), Bytes: rapid.Int64Range(1, 3).Draw(t, "bytes"),
				Age: time.Duration(rapid.IntRange(0, 3).Draw(t, "age")),
			}
			all = append(all, b)
			g := want[b.Tag]
			want[b.Tag] = Group{b.Tag, g.Count + 1, g.Bytes + b.Bytes, max(g.MaxBytes, b.Bytes), max(g.Age, b.Age)}
		}
		list := Of(all)
		got := list.ByTag()
		assert.Len(t, got, len(want))
		for i, g := range got {
			assert.Equal(t, want[g.Name], g)
			if i > 0 {
				before := got[i-1]
				assert.True(t, before.Bytes > g.Bytes || before.Bytes == g.Bytes && before.Name < g.Name, "%v is before %v", before, g)
			}
		}
		for count := -1; count <= len(all)+1; count++ {
			largest := list.Largest(count)
			assert.Equal(t, list.Buffers[:min(max(count, 0), len(all))], largest)
			assert.Len(t, largest, min(max(count, 0), len(all)))
		}
	})
}

// A table has a line for each of up to ten groups, and one more for the rest, which is their sum, be it a single one.
func TestEachGroupIsInTheTable(t *testing.T) {
	t.Parallel()
	for count := 2; count <= 2*groupsShown; count++ {
		var all []Buffer
		for i := range count {
			all = append(all, Buffer{Stream: 1, Bytes: 1 << i, Tag: fmt.Sprint("tag ", i)})
		}
		var b strings.Builder
		WriteGroups(&b, Of(all))
		_, tags, _ := strings.Cut(b.String(), "by tag:\n")
		tags, _, _ = strings.Cut(tags, "by stream")
		lines := strings.Split(strings.TrimSuffix(tags, "\n"), "\n")
		assert.Len(t, lines, min(count, groupsShown+1), "%d groups", count)
		if rest := count - groupsShown; rest > 0 {
			assert.Equal(t, fmt.Sprintf("  %10s  %-14s  %d more", units.Bytes(int64(1)<<rest-1), units.Count(rest, "buffer"), rest), lines[groupsShown])
		}
	}
}
