package advice

import (
	"context"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/internal/analysis"
	"github.com/go-vram/vram/internal/replay"
	"github.com/go-vram/vram/internal/replay/recorder"
	"github.com/go-vram/vram/internal/trace"
)

// Report is a trace's pattern, the trials of each mode, and the recommendations.
type Report struct {
	Pattern         *analysis.Pattern `json:"pattern"`
	Modes           []Trial           `json:"modes"` // fast, balanced, lean
	Recommendations []Recommendation  `json:"recommendations"`
	// Live and Reserved are bytes behind each event of the first round, with the recommended mode.
	Live     []int64 `json:"-"`
	Reserved []int64 `json:"-"`
	mode     vram.Footprint
}

// leastForLimit is the peak from which on a least limit is looked for. Not less: some pages are held whatever lives.
const leastForLimit = 64 << 20

// modes are tried in this order; names are those of vram.ParseFootprint.
func modes() []vram.Footprint { return []vram.Footprint{vram.Fast, vram.Balanced, vram.Lean} }

// Of analyses a trace and plays its trials.
func Of(ctx context.Context, tr *trace.Trace) (*Report, error) {
	r := &Report{Pattern: analysis.Of(tr), Live: analysis.Live(tr)}
	l := &lab{ctx, tr}
	for _, mode := range modes() {
		t, err := l.try(mode.String(), replay.Options{Config: vram.Config{Footprint: mode}, MinCapacity: tr.Info.PeakLiveBytes >= leastForLimit})
		if err != nil {
			return nil, err
		}
		r.Modes = append(r.Modes, t)
	}
	chosen, rec := footprint(r.Modes)
	r.mode = modes()[chosen]
	r.Recommendations = append(r.Recommendations, rec)
	config := vram.Config{Footprint: r.mode}
	for _, next := range []func(*lab, vram.Config, Trial, *analysis.Pattern) (Recommendation, error){tryWarm, tryLimit, tryCache, tryWays} {
		rec, err := next(l, config, r.Modes[chosen], r.Pattern)
		if err != nil {
			return nil, err
		}
		r.Recommendations = append(r.Recommendations, rec)
	}
	if rec, grows := growth(r.Pattern); grows {
		r.Recommendations = append(r.Recommendations, rec)
	}
	return r, r.curve(ctx, tr, config)
}

// curve records the reserved bytes behind each event.
func (r *Report) curve(ctx context.Context, tr *trace.Trace, config vram.Config) error {
	o := replay.Options{NewDriver: simulated, Config: config, Rounds: 1}
	watched, err := recorder.Attach(tr, &o)
	if err != nil {
		return err
	}
	if _, err := replay.Run(ctx, tr, o); err != nil {
		return err
	}
	r.Reserved = watched.Reserved()
	return nil
}
