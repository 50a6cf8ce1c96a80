package acceptance_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/jsonform/jsonformtest"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// errorsAndEvents has a value of every error type of the root, pool and streams with fields, and of every event.
var errorsAndEvents = []any{
	&vram.AlignError{}, &vram.BatchError{}, &vram.CaptureError{}, &vram.ClosedError{}, &vram.ConfigError{}, &vram.DeadlockError{},
	&vram.EnvError{}, &vram.FreeError{}, &vram.HandleError{}, &vram.InUseError{}, &vram.LengthError{}, &vram.LimitError{}, &vram.NotLiveError{}, &vram.NotOpenError{}, &streams.OrderError{},
	&vram.OutOfMemoryError{}, &vram.PlaceError{}, &vram.QuotaBoundsError{}, &vram.QuotaError{}, &vram.SizeError{}, &vram.StrandedError{}, &vram.WaitError{},
	&vram.FaultError{}, &vram.DeviceFailedError{}, &streams.FrozenError{},
	&vram.BufferEvent{}, &vram.GrowthEvent{}, &vram.LongWaitEvent{}, &vram.PanicEvent{}, &vram.PressureEvent{}, &vram.QuarantineEvent{}, &vram.TrimEvent{}, &vram.WarmEvent{},
}

// Every error and event has the JSON conventions of Stats: a key for each field in snake_case, durations in seconds, errors and
// places as text.
func TestErrorsAndEventsAsJSON(t *testing.T) { jsonformtest.Check(t, errorsAndEvents...) }

// The list of errors and events has all that the packages declare.
func TestNoErrorOrEventIsForgotten(t *testing.T) {
	jsonformtest.All(t, []string{"../..", "../../pool", "../../streams", "../../internal/stream/magazine"}, []string{"Error", "Event"}, errorsAndEvents,
		"LongWaitEvent") // by its name in streams: LongWait
}

// The JSON of some errors and events, whole.
func TestTheJSONOfAnError(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	s, gold := h.stream(), h.tenant("gold", vram.Quota{LimitBytes: mib})
	_, err := s.AllocFor(t.Context(), vram.Request{Bytes: 2 * mib, Tenant: gold})
	var over *vram.QuotaError
	require.ErrorAs(t, err, &over)
	for want, x := range map[string]any{
		`{"tenant":"gold","requested_bytes":2097152,"charged_bytes":0,"quota":{"limit_bytes":1048576,"share_bytes":0,"exclusive":false},"held_bytes":0,"queued":0}`: over,
		`{"index":1,"count":2,"err":"vram: requested more than 5 B"}`:              &vram.BatchError{Index: 1, Count: 2, Err: errors.New("vram: requested more than 5 B")},
		`{"level":"high","before":"normal","used_bytes":7,"limit_bytes":8}`:        vram.PressureEvent{Level: vram.PressureHigh, UsedBytes: 7, LimitBytes: 8},
		`{"place":"OnOutOfMemory","value":"map[a:1]","stack":"main.f\u000a"}`:      vram.PanicEvent{Place: "OnOutOfMemory", Value: map[string]int{"a": 1}, Stack: []byte("main.f\n")},
		`{"field":"Tuning.PressureMark","value":2.5,"want":"at most 1","call":""}`: &vram.ConfigError{Field: "Tuning.PressureMark", Value: 2.5, Want: "at most 1"},
		`{"field":"Tuning.PressureMark","value":"NaN","want":"","call":""}`:        &vram.ConfigError{Field: "Tuning.PressureMark", Value: math.NaN()},
		`{"field":"every","value":1.5,"want":"","call":"Tick"}`:                    &vram.ConfigError{Field: "every", Value: 1500 * time.Millisecond, Call: "Tick"},
		`{"buffer_count":0,"bytes":0,"buffers":[]}`:                                &vram.InUseError{},
		`{"kind":"raise-limit","bytes":5,"stream":0}`:                              pool.Remedy{Kind: pool.RaiseLimit, Bytes: 5},
	} {
		text, err := json.Marshal(x)
		require.NoError(t, err)
		assert.JSONEq(t, want, string(text))
	}
}
