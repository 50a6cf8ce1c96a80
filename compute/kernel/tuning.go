package kernel

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-vram/vram/cuda"
)

// TuningMode says when Run measures the variants of a kind of work that no table has.
type TuningMode uint8

// The modes.
const (
	TuneNever TuningMode = iota // Run measures nothing
	TuneNow                     // the first Run of a kind of work measures and waits
	TuneAside                   // the first Run starts a measurement, and a later Run takes the winner
)

var tuningModeNames = [...]string{"never", "now", "aside"} //nolint:gochecknoglobals // constant table, by number

// String is the name.
func (m TuningMode) String() string {
	if int(m) < len(tuningModeNames) {
		return tuningModeNames[m]
	}
	return fmt.Sprintf("TuningMode(%d)", uint8(m))
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (m TuningMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler: it reads the text of String. With an error the value stays.
func (m *TuningMode) UnmarshalText(text []byte) error {
	for i, name := range tuningModeNames {
		if string(text) == name {
			*m = TuningMode(i)
			return nil
		}
	}
	return fmt.Errorf("kernel: invalid TuningMode %q: want %s", text, strings.Join(tuningModeNames[:], ", "))
}

// Tuning says when variants are measured, and bounds the memory and the time of a measurement. The zero value measures nothing
// but in Tune.
type Tuning struct {
	Mode TuningMode
	// On has the stream of the measurements, of the compiler's device; it stays open until Close. Nil: the compiler's own,
	// which TuneAside refuses.
	On *cuda.Context
	// MemoryBytes bounds the memory of a measurement. 0: 1 GiB.
	MemoryBytes int64
	// RotateBytes is the size of all copies of the tensors together at least, up to 64 copies: more than the device's cache. 0:
	// 128 MiB.
	RotateBytes int64
	// Limit bounds the time of a measurement, looked at between launches. 0: 5 s.
	Limit time.Duration
	// Rounds is how often each variant is timed. 0: 9.
	Rounds int
}

// The defaults of Tuning.
const (
	tuningMemoryBytes = 1 << 30
	tuningRotateBytes = 128 << 20       // the cache of an H200 has 50 MB
	tuningLimit       = 5 * time.Second // some tensors of 64 MiB are compared in three
	tuningRounds      = 9
)

// check sets the defaults. Errors: the errors of WithTuning.
func (c *Tuning) check(own *cuda.Context) error {
	for _, field := range []struct {
		of        *int64
		otherwise int64
	}{{&c.MemoryBytes, tuningMemoryBytes}, {&c.RotateBytes, tuningRotateBytes}, {(*int64)(&c.Limit), int64(tuningLimit)}} {
		if *field.of <= 0 {
			*field.of = field.otherwise
		}
	}
	if c.Rounds <= 0 {
		c.Rounds = tuningRounds
	}
	switch {
	case c.On == nil && c.Mode == TuneAside:
		return ErrTuningStream
	case c.On == nil:
		return nil
	case c.On.Stream() == nil:
		return ErrNotOpen
	case c.On.Info().UUID != own.Info().UUID:
		return ErrForeign
	case c.Mode == TuneAside && c.On.Stream() == own.Stream():
		return ErrTuningStream
	}
	return nil
}
