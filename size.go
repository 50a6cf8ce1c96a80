package vram

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// maxParsedBytes is the largest size that ParseBytes reads: 4 EiB less one byte. Not larger: the
// sum of two sizes does not overflow.
const maxParsedBytes = 1<<62 - 1

// ParseBytes reads a size in bytes: a number with an optional unit, decimal (kB, MB, GB, TB) or
// binary (KiB, MiB, GiB, TiB, or K, M, G, T), as "2GB", "512MiB", "1.5G" or "4096". Spaces before
// the unit and case do not matter. A fraction needs a unit, and must come to a byte or more: "0.5"
// is refused. So are sizes of 4 EiB and more. The error is a *ConfigError.
func ParseBytes(s string) (int64, error) {
	text := strings.TrimSpace(s)
	at := strings.IndexFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsSpace(r) })
	number, unit := text, ""
	if at >= 0 {
		number, unit = text[:at], strings.ToLower(strings.TrimSpace(text[at:]))
	}
	refuse := func(want string) (int64, error) { return 0, badArgument("ParseBytes", "size", s, want) }
	scale, known := unitBytes(unit)
	value, err := strconv.ParseFloat(number, 64)
	if !known || err != nil && !math.IsInf(value, 1) || value < 0 {
		return refuse(`a number with an optional unit, as "2GB", "512MiB" or "4096"`)
	}
	whole, wholeErr := strconv.ParseInt(number, 10, 64)
	switch bytes := value * float64(scale); {
	case wholeErr == nil && whole <= maxParsedBytes/scale:
		return whole * scale, nil
	case wholeErr == nil || bytes >= 1<<62:
		return refuse(fmt.Sprintf("at most %d bytes", int64(maxParsedBytes)))
	case scale == 1 || value > 0 && bytes < 1:
		return refuse(`a whole number of bytes, or a unit with the fraction, as "1.5GB"`)
	default:
		return int64(bytes), nil
	}
}

// unitBytes is how many bytes a unit has.
func unitBytes(unit string) (bytes int64, known bool) {
	for i, prefix := range []string{"", "k", "m", "g", "t"} {
		decimal, binary := int64(1), int64(1)
		for range i {
			decimal *= 1000
			binary *= 1024
		}
		switch unit {
		case prefix + "b":
			return decimal, true
		case prefix, prefix + "ib":
			return binary, unit != "ib"
		}
	}
	return 0, false
}
