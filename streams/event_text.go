package streams

import (
	"fmt"
	"strconv"

	"github.com/go-vram/vram/internal/units"
)

// String returns the allocations, the frees and the live buffers, on one line.
func (s SizeStats) String() string {
	return "blocks up to " + units.Bytes(s.BlockBytes) + ": " + units.Count(s.AllocCount, "allocation") + ", " +
		units.Count(s.FreeCount, "free") + ", " + strconv.FormatUint(s.LiveCount, 10) + " live with " + units.Bytes(s.LiveBytes) +
		", cached " + units.Bytes(s.CachedBytes)
}

// String returns the request and how long it has waited.
func (w LongWait) String() string {
	text := fmt.Sprintf("stream %d has waited %s for %s", w.Stream, units.Duration(w.Waited), units.Bytes(w.Bytes))
	if w.ForQuota {
		text += ", for its quota"
	}
	if w.Priority != 0 {
		text += fmt.Sprintf(", priority %d", w.Priority)
	}
	return text + named(w.Tag, w.Tenant)
}

// String returns the buffer and its place.
func (e BufferEvent) String() string {
	text := fmt.Sprintf("buffer of %s at %v of stream %d", units.Bytes(e.Bytes), e.Ptr, e.Stream) + named(e.Tag, e.Tenant)
	if e.Place.Known() {
		text += ", " + e.Place.String()
	}
	return text
}

// String returns the buffer, its place and its weight.
func (b SampledBuffer) String() string {
	text := fmt.Sprintf("buffer of %s at %v of stream %d", units.Bytes(b.Bytes), b.Ptr, b.Stream) + named(b.Tag, b.Tenant)
	if b.Stack.Known() {
		text += ", " + b.Stack.String()
	}
	return text + fmt.Sprintf(", stands for %.4g", b.Weight)
}

// named adds a tag and a tenant, as far as there are any.
func named(tag, tenant string) (text string) {
	if tag != "" {
		text += fmt.Sprintf(", tag %q", tag)
	}
	if tenant != "" {
		text += fmt.Sprintf(", tenant %q", tenant)
	}
	return text
}
