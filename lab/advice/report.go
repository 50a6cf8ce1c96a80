package advice

import (
	"context"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/lab/analysis"
	"github.com/go-vram/vram/lab/replay"
	"github.com/go-vram/vram/lab/replay/recorder"
)

// Report is a trace's pattern, the trials of each mode, the recommendations, and the trial of all of them together.
type Report struct {
	Pattern         *analysis.Pattern `json:"pattern"`
	Modes           []Trial           `json:"modes"`     // fast, balanced, lean
	Baselines       []Trial           `json:"baselines"` // without vram: see package baseline
	Recommendations []Recommendation  `json:"recommendations"`
	Settings        []string          `json:"settings,omitempty"` // recommended settings, by name
	Together        *Trial            `json:"together,omitempty"` // nil where nothing is
	// Live and Reserved are bytes after each event of the first round, with the recommended configuration.
	Live      []int64 `json:"-"`
	Reserved  []int64 `json:"-"`
	mode      vram.Footprint
	scale     scale
	unchanged Trial
	unseen    []string // settings whose effect the trial of the whole does not show
}

// leastForLimit is the least peak for which it searches a limit. Not less: some pages are always held.
const leastForLimit = 64 << 20

// modes returns the modes in the order of the trials, as vram.ParseFootprint names them.
func modes() []vram.Footprint { return []vram.Footprint{vram.Fast, vram.Balanced, vram.Lean} }

// Of analyses a trace and plays its trials.
func Of(ctx context.Context, tr *trace.Trace) (r *Report, err error) {
	r = &Report{Pattern: analysis.Of(tr), Live: analysis.Live(tr)}
	r.scale = scale{peakBytes: tr.Info.PeakLiveBytes, duration: time.Duration(r.Pattern.DurationMicros) * time.Microsecond}
	b := &builder{lab: &lab{ctx, tr}, scale: r.scale}
	b.parallel = b.inParallel
	b.play = func(name string, s *setup) (Trial, error) { return b.try(name, s.options()) }
	for _, mode := range modes() {
		t, err := b.try(mode.String(), replay.Options{Config: vram.Config{Footprint: mode}, MinCapacity: tr.Info.PeakLiveBytes >= leastForLimit})
		if err != nil {
			return nil, err
		}
		r.Modes = append(r.Modes, t)
		if mode == vram.Balanced {
			r.unchanged, b.trial = t, t
		}
	}
	if r.Baselines, err = b.lab.baselines(); err != nil {
		return nil, err
	}
	if err := r.decide(b); err != nil { //nolint:contextcheck // vram.Open takes no context
		return nil, err
	}
	r.Recommendations, r.Settings, r.unseen, r.mode = b.all, b.settings(), b.others, b.set.config.Footprint
	if rec, grows := growth(r.Pattern); grows {
		r.Recommendations = append(r.Recommendations, rec)
	}
	if len(r.Settings) > 0 {
		t, err := b.try("together", b.set.options())
		if err != nil {
			return nil, err
		}
		r.Together = &t
	}
	return r, r.curve(ctx, tr, b.set.options())
}

// decide tries change by change, each on top of the accepted ones, and drops those that do not improve the whole.
func (r *Report) decide(b *builder) error {
	chosen, rec := footprint(b.scale, r.Modes)
	mode := modes()[chosen]
	b.add(rec, choice{setting: "Footprint " + mode.String(), apply: func(s *setup) { s.config.Footprint = mode }, keep: effect.pays}, &r.Modes[chosen])
	if err := tryWarm(b, r.Pattern); err != nil {
		return err
	}
	if err := tryCache(b, r.Pattern); err != nil {
		return err
	}
	if err := tryLimit(b, r.Pattern, r.Modes[chosen].LeastLimitBytes); err != nil {
		return err
	}
	if err := b.settle(&r.unchanged); err != nil {
		return err
	}
	return tryRest(b, r.Pattern, r.Live)
}

// curve records the reserved bytes after each event.
func (r *Report) curve(ctx context.Context, tr *trace.Trace, o replay.Options) error {
	o.NewDriver, o.Rounds = simulated, 1
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
