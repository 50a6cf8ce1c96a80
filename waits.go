package vram

import "github.com/go-vram/vram/pool/core"

// Waits is a policy for memory that one stream has given back while its work may still use it, and that another stream
// needs. The other stream can be made to wait for that work, on the device (cuStreamWaitEvent): neither the caller nor
// the host waits, and the stream's later work begins no sooner. A stream only ever waits for work that was submitted
// before the wait was, so that streams cannot wait for each other in a circle. What has finished already is
// had without a wait under every policy.
type Waits uint8

// The policies.
const (
	// WaitsAvoidGrowth waits rather than hold more than the footprint mode's budget. A stream whose own memory would
	// have to be moved for it waits for its own work then, on the host, once for each such request.
	WaitsAvoidGrowth Waits = iota
	// WaitsNever holds more, up to the limit, before anything waits: no stream's work is ever delayed by another's for
	// the sake of memory while the driver has some. Where it has none, fences are waited for on the host.
	WaitsNever
	// WaitsAlways waits before anything is taken from the driver: the least memory, and streams that work one after
	// the other where they share it.
	WaitsAlways
)

var waitsNames = [...]string{WaitsAvoidGrowth: "avoid-growth", WaitsNever: "never", WaitsAlways: "always"} //nolint:gochecknoglobals // constant table

// String is the policy's name.
func (w Waits) String() string { return nameOf(waitsNames[:], int(w), "Waits") }

// ParseWaits knows "avoid-growth", "never" and "always".
func ParseWaits(s string) (Waits, error) {
	i, err := parseName(waitsNames[:], s, "Waits", "avoid-growth, never or always")
	return Waits(i), err
}

func (w Waits) policy() core.Waits {
	switch w {
	case WaitsNever:
		return core.WaitsNever
	case WaitsAlways:
		return core.WaitsAlways
	case WaitsAvoidGrowth:
	}
	return core.WaitsAvoidGrowth
}
