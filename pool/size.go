package pool

import (
	"math"
	"strconv"
)

// sizeText is bytes for people, in powers of 1024 and with two decimals at most. The figure is rounded to the nearest.
func sizeText(bytes int64) string { return inUnits(bytes, math.Round) }

// leastText is sizeText of a number that is not to be less: it is rounded up.
func leastText(bytes int64) string { return inUnits(bytes, math.Ceil) }

func inUnits(bytes int64, round func(float64) float64) string {
	switch {
	case bytes == 1:
		return "1 byte"
	case bytes < 1<<10:
		return strconv.FormatInt(bytes, 10) + " bytes"
	}
	unit, scale := 0, float64(1<<10)
	for unit < len(sizeUnits)-1 && float64(bytes) >= scale*(1<<10) {
		unit++
		scale *= 1 << 10
	}
	return strconv.FormatFloat(round(float64(bytes)/scale*100)/100, 'f', -1, 64) + " " + sizeUnits[unit]
}

var sizeUnits = [...]string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"} //nolint:gochecknoglobals // constant table
