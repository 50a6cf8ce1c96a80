package streams

import (
	"fmt"
	"strings"

	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/pool"
)

// String returns the size, and the options that are set.
func (r Request) String() string {
	text := []string{units.Bytes(r.Bytes)}
	if r.Align != 0 {
		text = append(text, "aligned to "+units.Bytes(r.Align))
	}
	if r.Zero {
		text = append(text, "zeroed")
	}
	if r.Tag != "" {
		text = append(text, fmt.Sprintf("tag %q", r.Tag))
	}
	return joined(text, r.Wait, r.Priority, r.Tenant, r.Reservation)
}

// String returns the number of buffers, their bytes, and the options that are set.
func (r BatchRequest) String() string {
	var sum int64
	for _, bytes := range r.Bytes {
		sum += bytes
	}
	size := fmt.Sprintf("%s of %s", units.Count(len(r.Bytes), "buffer"), units.Bytes(sum))
	text := []string{size}
	if r.Tag != "" {
		text = append(text, fmt.Sprintf("tag %q", r.Tag))
	}
	return joined(text, r.Wait, r.Priority, r.Tenant, r.Reservation)
}

// joined adds the options that one buffer and a batch have.
func joined(text []string, waits bool, priority int, t *pool.Tenant, r *pool.Reservation) string {
	if waits {
		text = append(text, "waits")
	}
	if priority != 0 {
		text = append(text, fmt.Sprintf("priority %d", priority))
	}
	if t != nil {
		text = append(text, fmt.Sprintf("tenant %q", t.Name()))
	}
	if r != nil {
		text = append(text, r.String())
	}
	return strings.Join(text, ", ")
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (b Buffer) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// MarshalText implements encoding.TextMarshaler: the text of String.
func (s *Stream) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalText implements encoding.TextMarshaler: the text of String.
func (u Use) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// MarshalText implements encoding.TextMarshaler: the text of String.
func (b Batch) MarshalText() ([]byte, error) { return []byte(b.String()), nil }
