package advice

import (
	"errors"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/internal/analysis"
	"github.com/go-vram/vram/internal/replay"
	"github.com/go-vram/vram/internal/units"
)

const (
	// mostDemands is the length of a warm-up list. Not longer: it is read and pasted.
	mostDemands = 12
	// roomBytes is the size of a list's last demand, which stands for all smaller ones: a page.
	roomBytes = 2 << 20
	// headroomShare is the part of a limit above the least one. Not less: a program's steps are not all like the recorded ones, and a
	// limit that is close to the least makes the pool move memory all the time.
	headroomShare = 0.03
)

// demands are the buffers that are live at the peak, as a list that fits on a screen: the sizes with most bytes, and pages for the rest.
func demands(sizes []analysis.Size) (list []vram.Demand) {
	restBytes := int64(0)
	for i, s := range sizes {
		if i < mostDemands-1 || len(sizes) == mostDemands {
			list = append(list, vram.Demand{Bytes: s.EachBytes, Count: s.Count})
			continue
		}
		restBytes += s.Bytes
	}
	if restBytes > 0 {
		list = append(list, vram.Demand{Bytes: roomBytes, Count: int((restBytes + roomBytes - 1) / roomBytes)})
	}
	return list
}

func tryWarm(l *lab, config vram.Config, without Trial, p *analysis.Pattern) (Recommendation, error) {
	list := demands(p.Peak.Sizes)
	with, err := l.try("warm-up", replay.Options{Config: config, Demands: list})
	if _, limited := errors.AsType[*vram.LimitError](err); limited || errors.Is(err, vram.ErrOutOfMemory) {
		return Recommendation{Topic: "warm-up", Advice: "Leave Warm empty: what is live at the peak does not fit the device at once.", Because: []string{err.Error()}}, nil
	}
	if err != nil {
		return Recommendation{}, err
	}
	return warmUp(&without, &with, list), nil
}

// enough is the least limit with its headroom, in whole pages, or the reserved bytes without a limit where those are less.
func enough(t *Trial) int64 {
	limitBytes := t.LeastLimitBytes + int64(headroomShare*float64(t.LeastLimitBytes))
	limitBytes = (limitBytes + roomBytes - 1) / roomBytes * roomBytes
	return min(limitBytes, max(t.PeakReservedBytes, t.LeastLimitBytes))
}

func tryLimit(l *lab, config vram.Config, without Trial, _ *analysis.Pattern) (Recommendation, error) {
	if without.LeastLimitBytes == 0 {
		return Recommendation{Topic: "limit", Advice: "Set no limit: so little is live that some pages more or less decide it."}, nil
	}
	limitBytes := enough(&without)
	with, err := l.try("limit", replay.Options{Config: config, Limit: replay.Limit{Bytes: limitBytes}})
	if err != nil {
		return Recommendation{}, err
	}
	return limit(&without, &with, limitBytes), nil
}

func tryCache(l *lab, config vram.Config, without Trial, p *analysis.Pattern) (Recommendation, error) {
	if len(p.Streams) == 1 {
		return Recommendation{Topic: "stream cache", Advice: "Leave StreamCacheBytes at 0: one stream's cache takes from nobody."}, nil
	}
	bounds := []int64{32 << 20, 128 << 20, 512 << 20}
	var with []Trial
	for _, bound := range bounds {
		config.StreamCacheBytes = bound
		t, err := l.try("cache of "+units.Bytes(bound), replay.Options{Config: config})
		if err != nil {
			return Recommendation{}, err
		}
		with = append(with, t)
	}
	return cacheBound(&without, with, bounds), nil
}
