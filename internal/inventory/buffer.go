package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/internal/units"
)

// Buffer is a live buffer: one that was not freed.
type Buffer struct {
	Stream uint32      `json:"stream"` // ID
	Ptr    cudadrv.Ptr `json:"ptr"`
	Bytes  int64       `json:"bytes"` // of its block
	Tag    string      `json:"tag"`   // of its request
	// Allocated is the call stack of its allocation, for sampled buffers (Config.SampleBytes), and for all if
	// buffers are watched, as by Config.Debug and observers.
	Allocated site.Stack `json:"allocated"`
	// RequestedBytes and Age are known for buffers with a tag or a tenant, buffers that had to wait for
	// memory, and sampled and watched ones; else they are 0.
	RequestedBytes int64         `json:"requested_bytes"`
	Age            time.Duration `json:"-"`      // since the allocation, when it was listed
	Tenant         string        `json:"tenant"` // charged with it; empty: none
}

// String returns the buffer's size, address and stream, its tag and tenant, and the place of its allocation
// if known.
func (b Buffer) String() string {
	return fmt.Sprintf("buffer of %s at %v", units.Bytes(b.Bytes), b.Ptr) + b.facts()
}

// facts returns the properties other than the size, each after its name.
func (b *Buffer) facts() string {
	text := fmt.Sprintf(" on stream %d", b.Stream)
	if b.Tag != "" {
		text += fmt.Sprintf(", tag %q", b.Tag)
	}
	if b.Tenant != "" {
		text += fmt.Sprintf(", tenant %q", b.Tenant)
	}
	if b.Allocated.Known() {
		text += ", allocated at " + b.Allocated.String()
	}
	return text
}

// named is the number of buffers in the line of an error; MaxListed is the number in its fields.
const (
	named     = 3
	MaxListed = 10
)

// Describe names the largest buffers of a list in one line, after a text for the first.
func Describe(b *strings.Builder, largest []Buffer) {
	for i := range largest[:min(named, len(largest))] {
		x := &largest[i]
		b.WriteString([...]string{"; largest buffers: ", " / "}[min(i, 1)] + units.Bytes(x.Bytes) + x.facts())
	}
}

// Sort sorts by size, largest first, then by stream, then by address.
func Sort(all []Buffer) {
	slices.SortFunc(all, func(a, b Buffer) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Ptr, b.Ptr))
	})
}
