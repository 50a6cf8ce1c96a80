// Package units formats figures for people.
package units

import (
	"math"
	"strconv"
	"time"
)

var binary = [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"} //nolint:gochecknoglobals // constant table

// Bytes returns a size with a unit, in powers of 1024, rounded to one decimal: "512 B", "2 MiB", "1.5 GiB",
// "-3 KiB".
func Bytes(bytes int64) string { return in(bytes, math.Round) }

// AtLeast is Bytes rounded up.
func AtLeast(bytes int64) string { return in(bytes, math.Ceil) }

// Change is Bytes of a difference, with its sign: "+2 MiB", "-2 MiB", "0 B".
func Change(bytes int64) string {
	if bytes > 0 {
		return "+" + Bytes(bytes)
	}
	return Bytes(bytes)
}

func in(bytes int64, round func(float64) float64) string {
	if bytes < 0 {
		return "-" + in(-max(bytes, -math.MaxInt64), round)
	}
	tenths, unit := float64(bytes)*10, 0
	for round(tenths) >= 10240 && unit < len(binary)-1 {
		tenths /= 1024
		unit++
	}
	return strconv.FormatFloat(round(tenths)/10, 'f', -1, 64) + " " + binary[unit]
}

// Count returns a number of things: "1 device", "0 devices".
func Count[N ~int | ~int64 | ~uint32 | ~uint64](n N, thing string) string {
	return count(int64(n), thing) //nolint:gosec // no count comes near the end of an int64
}

// count is not inlined: many texts use it.
//
//go:noinline
func count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.FormatInt(n, 10) + " " + thing + "s"
}

// Duration returns a duration in words, with a useful precision.
func Duration(d time.Duration) string {
	switch {
	case d >= time.Minute:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(100 * time.Millisecond)
	case d >= time.Millisecond:
		d = d.Round(time.Millisecond)
	}
	return d.String()
}
