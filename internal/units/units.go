// Package units writes figures as people read them.
package units

import (
	"fmt"
	"strconv"
	"strings"
)

var binary = [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"} //nolint:gochecknoglobals // constant table

// Bytes is a size with a unit, in powers of 1024, rounded to one decimal: "512 B", "2 MiB", "1.5 GiB". A negative one is in bytes.
func Bytes(bytes int64) string {
	if bytes < 0 {
		return strconv.FormatInt(bytes, 10) + " B"
	}
	value, unit := float64(bytes), 0
	for value >= 1023.95 && unit < len(binary)-1 { // what would be rounded to 1024.0
		value /= 1024
		unit++
	}
	return strings.TrimSuffix(strconv.FormatFloat(value, 'f', 1, 64), ".0") + " " + binary[unit]
}

// Count is a number of things: "1 device", "0 devices".
func Count[N ~int | ~int64 | ~uint32 | ~uint64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
