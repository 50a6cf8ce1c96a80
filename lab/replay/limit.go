package replay

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-vram/vram"
)

// Limit is a bound on the memory held from the driver: in bytes, or as a multiple of the trace's
// peak live bytes. The zero value is the device's memory.
type Limit struct {
	Bytes     int64   // used when not 0
	TimesPeak float64 // used when not 0
}

// ParseLimit reads "12GB", "512MiB", "4096" or "1.02x". The empty text is the zero Limit.
func ParseLimit(text string) (Limit, error) {
	if text == "" {
		return Limit{}, nil
	}
	if factorText, ok := strings.CutSuffix(text, "x"); ok {
		factor, err := strconv.ParseFloat(factorText, 64)
		if err != nil || !(factor > 0) || factor > 1e6 {
			return Limit{}, fmt.Errorf("limit %q: want a factor above 0 before the x, as in 1.02x", text)
		}
		return Limit{TimesPeak: factor}, nil
	}
	limitBytes, err := vram.ParseBytes(text)
	if wrong, ok := errors.AsType[*vram.ConfigError](err); ok {
		return Limit{}, fmt.Errorf("limit %q: want %s, or a multiple of the peak, as 1.02x", text, wrong.Want)
	}
	if limitBytes <= 0 {
		return Limit{}, fmt.Errorf("limit %q: want more than 0 bytes", text)
	}
	return Limit{Bytes: limitBytes}, nil
}

// For returns the limit in bytes for a trace with that peak, 0 where there is none.
func (l Limit) For(peakLiveBytes int64) int64 {
	if l.TimesPeak != 0 {
		return int64(math.Ceil(l.TimesPeak * float64(peakLiveBytes)))
	}
	return l.Bytes
}
