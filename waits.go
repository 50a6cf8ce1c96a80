package vram

import "github.com/go-vram/vram/pool/core"

// Waits is the policy for memory that one stream has returned while its work may still use it, when
// another stream needs memory. The other stream can be made to wait for that work on the device
// (cuStreamWaitEvent): its caller goes on at once, and its later kernels start after that work. How
// long that takes is not known: behind a kernel of an hour, or a collective that waits for another
// GPU, that stream waits as long. Memory whose work has finished is taken without a wait under
// every policy.
//
// Under every policy a request that neither free memory nor growth up to the limit can serve waits
// on the host, before it is refused, for the first stream's work that finishes; no other request
// waits with it. Stream.ExcludeFromWaits is for streams that are never to be waited for.
type Waits uint8

// The policies.
const (
	// WaitsNever takes more memory from the driver, up to the limit: no stream's work is delayed by
	// another's for the sake of memory.
	WaitsNever Waits = iota
	// WaitsAvoidGrowth has streams wait on the device where the pool would otherwise hold more than
	// the footprint mode allows. It is for programs whose kernels are all short.
	WaitsAvoidGrowth
	// WaitsAlways has streams wait on the device before anything is taken from the driver: the
	// least memory, and streams that share memory work one after the other. It is for programs
	// whose kernels are all short.
	WaitsAlways
)

var waitsNames = [...]string{WaitsNever: "never", WaitsAvoidGrowth: "avoid-growth", WaitsAlways: "always"} //nolint:gochecknoglobals // constant table

// String is the policy's name.
func (w Waits) String() string { return nameOf(waitsNames[:], int(w), "Waits") }

// MarshalText implements encoding.TextMarshaler: the name.
func (w Waits) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler, as ParseWaits reads.
func (w *Waits) UnmarshalText(text []byte) (err error) { return unmarshal(text, w, ParseWaits) }

// ParseWaits reads "never", "avoid-growth" or "always". The error is a *ConfigError.
func ParseWaits(s string) (Waits, error) {
	i, err := parseName(waitsNames[:], s, "ParseWaits", "never, avoid-growth or always")
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
