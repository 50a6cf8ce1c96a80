// Package pressure computes how close usage is to its limit. It is pure.
//
// A level is a function of the previous one and of used over limit. It rises at a mark and falls below a
// lower one, so that a loop that allocates and frees at a mark does not change it each time. With the mark h,
// and g two thirds of the share above h:
//
//	used / limit        h-g          h         h+g/2        h+g
//	Normal     Normal    |  Normal   |  High     |  High     |  Critical
//	High       Normal    |  High     |  High     |  High     |  Critical
//	Critical   Normal    |  High     |  High     |  Critical |  Critical
//
// For the mark 0.85: up at 0.85 and 0.95, down below 0.90 and 0.75. At a mark itself the column to its right holds.
package pressure

import "fmt"

// Level is the closeness to the limit.
type Level uint8

// The levels.
const (
	Normal   Level = iota // caches are as large as configured
	High                  // caches shrink
	Critical              // caches keep almost no free memory
)

// LevelCount is the number of levels.
const LevelCount = 3

// String returns the level's name.
func (l Level) String() string {
	switch l {
	case Normal:
		return "normal"
	case High:
		return "high"
	case Critical:
		return "critical"
	}
	return fmt.Sprintf("PressureLevel(%d)", uint8(l))
}

// MarshalText implements encoding.TextMarshaler: the level's name.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Level) UnmarshalText(text []byte) error {
	for level := range Level(LevelCount) {
		if level.String() == string(text) {
			*l = level
			return nil
		}
	}
	return fmt.Errorf("vram: %q is no level of pressure, want normal, high or critical", text)
}

// DefaultMark is the default share at which High begins. Not lower: training is planned to fill a device. Not
// higher: caches should release memory before a request has to wait for it.
const DefaultMark = 0.85

// Mark is the share of the limit from which on the level is High. With 1 or more it never is.
type Mark float64

// Next returns the level that follows a level, for usage of a limit.
func (m Mark) Next(before Level, usedBytes, limitBytes int64) Level {
	if m >= 1 || limitBytes <= 0 {
		return Normal
	}
	gap := (1 - m) * 2 / 3
	used := Mark(float64(usedBytes) / float64(limitBytes))
	switch {
	case used >= m+gap || before == Critical && used >= m+gap/2:
		return Critical
	case used >= m || before >= High && used >= m-gap:
		return High
	}
	return Normal
}
