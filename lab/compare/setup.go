package compare

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/lab/replay"
)

// Setup is one of the two configurations.
type Setup struct {
	Text    string // as it was given
	Config  vram.Config
	Limit   replay.Limit
	Warm    bool // the buffers that are live at the peak are mapped ahead
	Demands []vram.Demand
}

// Keys returns the names that a setup may set.
func Keys() []string {
	return []string{"footprint", "limit", "segments", "waits", "cache", "pool-cache", "release", "warm"}
}

// ParseSetup applies text such as "footprint=lean,limit=8GB" to a configuration. Values are as for the flags and variables of
// the same names; cache is Config.StreamCacheBytes, pool-cache Config.PoolCacheBytes, release Config.ReleaseAfter ("never" is
// one), warm "peak" or a demand whose parts are separated by a plus, "4KiB:50+64KiB:20". The empty text is the configuration
// itself.
func ParseSetup(text string, base vram.Config) (Setup, error) {
	s := Setup{Text: text, Config: base}
	if text == "" {
		return s, nil
	}
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		key, value, found := strings.Cut(strings.TrimSpace(part), "=")
		if !found || value == "" {
			return s, fmt.Errorf("%q: want name=value, as in footprint=lean", part)
		}
		if seen[key] {
			return s, fmt.Errorf("%q: %s is set twice", text, key)
		}
		seen[key] = true
		if err := s.set(key, value); err != nil {
			return s, fmt.Errorf("%s=%s: %w", key, value, err)
		}
	}
	return s, nil
}

// Unseen says which of the names that the setups set show no effect without which option of Run; nothing where all do.
func Unseen(a, b *Setup, o *Options) (hints []string) {
	set := func(key string) bool {
		return strings.Contains(","+strings.ReplaceAll(a.Text+","+b.Text, " ", ""), ","+key+"=")
	}
	if set("waits") && o.Lag == 0 {
		hints = append(hints, "waits needs kernels before the frees: --lag 1ms")
	}
	if set("release") && o.Rest == 0 {
		hints = append(hints, "release needs pauses longer than it: --rest 2s")
	}
	if set("pool-cache") && o.Rest == 0 {
		hints = append(hints, "pool-cache needs pauses in which streams return memory: --rest 3s")
	}
	return hints
}

func (s *Setup) set(key, value string) (err error) {
	switch key {
	case "footprint":
		s.Config.Footprint, err = vram.ParseFootprint(value)
	case "limit":
		s.Limit, err = replay.ParseLimit(value)
	case "segments":
		s.Config.Segments, err = vram.ParseSegments(value)
	case "waits":
		s.Config.Waits, err = vram.ParseWaits(value)
	case "cache":
		s.Config.StreamCacheBytes, err = vram.ParseBytes(value)
	case "pool-cache":
		s.Config.PoolCacheBytes, err = vram.ParseBytes(value)
	case "release":
		s.Config.ReleaseAfter, err = release(value)
	case "warm":
		if s.Warm = value == "peak"; !s.Warm {
			s.Demands, err = vram.ParseDemands(strings.ReplaceAll(value, "+", ","))
		}
	default:
		err = fmt.Errorf("there is no such name: want one of %s", strings.Join(Keys(), ", "))
	}
	if wrong, ok := errors.AsType[*vram.ConfigError](err); ok {
		return fmt.Errorf("want %s", wrong.Want)
	}
	return err
}

func release(value string) (time.Duration, error) {
	if value == "never" {
		return -1, nil
	}
	after, err := time.ParseDuration(value)
	if err != nil {
		return 0, errors.New(`want a duration, as 2s, or never`)
	}
	return after, nil
}
