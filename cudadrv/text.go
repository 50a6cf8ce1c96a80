package cudadrv

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-vram/vram/internal/units"
)

// String returns the address in hexadecimal.
func (p Ptr) String() string { return fmt.Sprintf("%#x", uint64(p)) }

// MarshalText implements encoding.TextMarshaler: the address in hexadecimal.
func (p Ptr) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler: it reads a number with or without 0x.
func (p *Ptr) UnmarshalText(text []byte) error { return unmarshal(text, (*uint64)(p), "an address") }

// MarshalText implements encoding.TextMarshaler: the handle in hexadecimal.
func (s Stream) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%#x", uint64(s)), nil }

// UnmarshalText implements encoding.TextUnmarshaler: it reads a number with or without 0x.
func (s *Stream) UnmarshalText(text []byte) error {
	return unmarshal(text, (*uint64)(s), "a handle of a stream")
}

// MarshalText implements encoding.TextMarshaler: the handle in hexadecimal.
func (e Event) MarshalText() ([]byte, error) { return hex(uint64(e)), nil }

// MarshalText implements encoding.TextMarshaler: the handle in hexadecimal.
func (h Handle) MarshalText() ([]byte, error) { return hex(uint64(h)), nil }

// MarshalText implements encoding.TextMarshaler: the handle in hexadecimal.
func (c Context) MarshalText() ([]byte, error) { return hex(uint64(c)), nil }

// MarshalText implements encoding.TextMarshaler: the handle in hexadecimal.
func (g Graph) MarshalText() ([]byte, error) { return hex(uint64(g)), nil }

func hex(handle uint64) []byte { return strconv.AppendUint([]byte("0x"), handle, 16) }

// unmarshal reads a number; with an error the value stays.
func unmarshal(text []byte, value *uint64, kind string) error {
	n, err := strconv.ParseUint(string(text), 0, 64)
	if err != nil {
		return fmt.Errorf("cudadrv: %q is not %s: %w", text, kind, err)
	}
	*value = n
	return nil
}

// Format prints String for the verbs v and s, and the number for all others.
func (p Ptr) Format(to fmt.State, verb rune) {
	format, value := fmt.FormatString(to, verb), any(uint64(p))
	if verb == 's' || verb == 'v' {
		value = p.String()
		format = strings.NewReplacer("+", "", "#", "").Replace(format) // without the flags of detailed output
	}
	_, _ = fmt.Fprintf(to, format, value)
}

var capabilityNames = [...]string{ //nolint:gochecknoglobals // constant table, in the order of the bits
	"virtual memory", "pinned host memory", "host functions", "shareable handles", "capture state", "blocking streams",
	"kernels", "graphs", "event timing", "wide fills", "peer access", "event sharing", "bulk tensors",
}

// String lists the capabilities in the set, with commas.
func (c Capability) String() string {
	var names []string
	for i, name := range capabilityNames {
		if c.Has(1 << i) {
			names = append(names, name)
		}
	}
	if rest := c &^ (1<<len(capabilityNames) - 1); rest != 0 {
		names = append(names, fmt.Sprintf("%#x", uint32(rest)))
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (c Capability) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// String returns the UUID as nvidia-smi writes it: GPU- and 32 hexadecimal digits in five groups.
func (u UUID) String() string {
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (u UUID) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// MarshalText implements encoding.TextMarshaler: "9.0".
func (c ComputeCapability) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// String describes the device on one line.
func (i Info) String() string {
	if i.TotalBytes == 0 {
		return fmt.Sprintf("device %d of the driver %s, not opened", i.Ordinal, i.Driver)
	}
	text := fmt.Sprintf("device %d, %s, %s", i.Ordinal, i.Name, units.Bytes(i.TotalBytes))
	if i.GranularityBytes > 0 {
		text += " in pages of " + units.Bytes(i.GranularityBytes)
	}
	return text + fmt.Sprintf(", driver %s %d.%d", i.Driver, i.DriverVersion/1000, i.DriverVersion%1000/10)
}
