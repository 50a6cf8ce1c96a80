package vram

import "github.com/go-vram/vram/pool/core"

// Waits is a policy for memory that one stream has given back while its work may still use it, and that another stream
// needs. The other stream can be made to wait for that work, on the device (cuStreamWaitEvent): neither the caller nor
// the host waits, and the stream's later work begins no sooner. Nobody knows how long that takes: a kernel that lasts an hour, or
// a collective that waits for another GPU, holds up whoever was made to wait for it. What has finished already is had
// without a wait under every policy.
//
// Where neither free memory nor growth up to the limit serves a request, it waits for fences under every policy before it is refused:
// on the host, for the first that passes, and nobody else with it. See Stream.Excluded for streams that nobody is to wait for.
type Waits uint8

// The policies.
const (
	// WaitsNever holds more, up to the limit, before anything waits: no stream's work is ever delayed by another's for
	// the sake of memory.
	WaitsNever Waits = iota
	// WaitsAvoidGrowth has streams wait on the device rather than hold more than the footprint mode's budget. It is for programs whose
	// kernels all end soon.
	WaitsAvoidGrowth
	// WaitsAlways waits before anything is taken from the driver: the least memory, and streams that work one after
	// the other where they share it. It is for programs whose kernels all end soon.
	WaitsAlways
)

var waitsNames = [...]string{WaitsNever: "never", WaitsAvoidGrowth: "avoid-growth", WaitsAlways: "always"} //nolint:gochecknoglobals // constant table

// String is the policy's name.
func (w Waits) String() string { return nameOf(waitsNames[:], int(w), "Waits") }

// ParseWaits knows "never", "avoid-growth" and "always".
func ParseWaits(s string) (Waits, error) {
	i, err := parseName(waitsNames[:], s, "Waits", "never, avoid-growth or always")
	return Waits(i), err
}

func (w Waits) policy() core.Waits {
	switch w {
	case WaitsAvoidGrowth:
		return core.WaitsAvoidGrowth
	case WaitsAlways:
		return core.WaitsAlways
	case WaitsNever:
	}
	return core.WaitsNever
}
