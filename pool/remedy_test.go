package pool

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Each fact of a refusal has its remedy, and no other.
func TestRemedies(t *testing.T) {
	t.Parallel()
	short := OutOfMemoryError{RequestedBytes: 50, MissingBytes: 60, FreeBytes: 20, LargestFreeBytes: 20, ReservedBytes: 90, LimitBytes: 100, Waited: true}
	for name, test := range map[string]struct {
		change func(*OutOfMemoryError)
		want   []Remedy
		text   string
	}{
		"the limit":       {func(*OutOfMemoryError) {}, []Remedy{{RaiseLimit, 30, 0}}, "a LimitBytes higher by at least 30 B"},
		"held beyond it":  {func(e *OutOfMemoryError) { e.LimitBytes = 70 }, []Remedy{{RaiseLimit, 40, 0}}, "a LimitBytes higher by at least 40 B"},
		"the driver, too": {func(e *OutOfMemoryError) { e.Cause = errors.New("no") }, []Remedy{{FreeElsewhere, 40, 0}, {RaiseLimit, 30, 0}}, "40 B of the GPU's"},
		"the driver": {func(e *OutOfMemoryError) {
			e.Cause, e.LimitBytes, e.DriverBytes = errors.New("no"), 200, 115
		}, []Remedy{{FreeElsewhere, 15, 0}}, "reserved 90 B of a limit of 200 B, of which the driver has 115 B"},
		"in pieces":         {func(e *OutOfMemoryError) { e.FreeBytes = 60 }, []Remedy{{Coalesce, 20, 0}}, "the longest free range has 20 B"},
		"nothing is short":  {func(e *OutOfMemoryError) { e.FreeBytes, e.LargestFreeBytes = 60, 60 }, nil, ""},
		"a fence":           {with(Holding{Stream: 3, UnpassedBytes: 7}), []Remedy{{AwaitFences, 7, 3}, {RaiseLimit, 30, 0}}, "the end of stream 3's work, which uses 7 B that are free"},
		"an adopted stream": {with(Holding{Stream: 4, UncoveredBytes: 8}), []Remedy{{TrimStream, 8, 4}, {RaiseLimit, 30, 0}}, "Trim on stream 4, which keeps 8 B"},
		"a reservation":     {with(Holding{Stream: 6, HeldBytes: 10, Reservation: true}), []Remedy{{ReleaseReservation, 10, 0}, {RaiseLimit, 30, 0}}, "releasing a reservation of 10 B"},
		"reservations among streams": {func(e *OutOfMemoryError) {
			e.Streams = []Holding{
				{Stream: 1, UncoveredBytes: 3},
				{Stream: 6, HeldBytes: 10, LiveBytes: 10, Reservation: true},
				{Stream: 4, UnpassedBytes: 8},
				{Stream: 7, HeldBytes: 9, Reservation: true},
				{Stream: 5, UnpassedBytes: 1},
			}
		}, []Remedy{
			{TrimStream, 3, 1}, {ReleaseReservation, 10, 0}, {AwaitFences, 8, 4}, {ReleaseReservation, 9, 0}, {AwaitFences, 1, 5}, {RaiseLimit, 30, 0},
		}, "Trim on stream 1, which keeps 3 B"},
		"others": {func(e *OutOfMemoryError) {
			e.Waited, e.Streams = false, []Holding{{Stream: 1, HeldBytes: 30, LiveBytes: 20}, {Stream: 2, HeldBytes: 0, LiveBytes: 60}}
		}, []Remedy{{WaitForFrees, 20, 0}, {RaiseLimit, 30, 0}}, "Request.Wait, for frees of the 20 B that are live"},
		"streams that use pages in part": {func(e *OutOfMemoryError) {
			e.Streams = []Holding{{Stream: 1, HeldBytes: 50, LiveBytes: 20}, {Stream: 2, HeldBytes: 40, LiveBytes: 5, UncoveredBytes: 5}}
		}, []Remedy{{TrimStream, 5, 2}, {UseFewerStreams, 60, 0}, {RaiseLimit, 30, 0}}, "fewer streams: 60 B are free within pages"},
		"too little in part": {func(e *OutOfMemoryError) {
			e.Streams = []Holding{{Stream: 1, HeldBytes: 50, LiveBytes: 20}, {Stream: 2, HeldBytes: 29}}
		}, []Remedy{{RaiseLimit, 30, 0}}, "a LimitBytes higher by at least 30 B"},
		"a byte of two streams each": {func(e *OutOfMemoryError) {
			e.MissingBytes, e.FreeBytes = 2, 0
			e.Streams = []Holding{{Stream: 1, HeldBytes: 50, LiveBytes: 49}, {Stream: 2, HeldBytes: 40, LiveBytes: 39}}
		}, []Remedy{{UseFewerStreams, 2, 0}}, "fewer streams: 2 B are free within pages"},
		"one stream in part": {with(Holding{Stream: 1, HeldBytes: 90}), []Remedy{{RaiseLimit, 30, 0}}, "a LimitBytes higher by at least 30 B"},
		"more than the limit": {func(e *OutOfMemoryError) {
			e.Waited, e.MissingBytes, e.Streams = false, 101, []Holding{{Stream: 1, HeldBytes: 30, LiveBytes: 30}}
		}, []Remedy{{RaiseLimit, 71, 0}}, "a LimitBytes higher by at least 71 B"},
		"all of the limit": {func(e *OutOfMemoryError) {
			e.Waited, e.MissingBytes, e.Streams = false, 100, []Holding{{Stream: 1, HeldBytes: 30, LiveBytes: 30}}
		}, []Remedy{{WaitForFrees, 30, 0}, {RaiseLimit, 70, 0}}, "for frees of the 30 B"},
		"others, of a Reserve": {func(e *OutOfMemoryError) {
			e.Waited, e.reserves, e.Streams = false, true, []Holding{{Stream: 1, HeldBytes: 30, LiveBytes: 20}}
		}, []Remedy{{RetryAfterFrees, 20, 0}, {RaiseLimit, 30, 0}}, "frees of the 20 B that are live, and another Reserve after them"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := short
			test.change(&e)
			assert.Equal(t, test.want, e.Remedies())
			if test.want == nil {
				assert.NotContains(t, e.Error(), "would help")
				assert.NotContains(t, e.Report(), "would help")
			} else {
				assert.Contains(t, e.Error(), "what would help: "+test.want[0].String())
			}
			assert.Contains(t, e.Error(), test.text)
		})
	}
	assert.Equal(t, "no remedy", Remedy{}.String())
	assert.Equal(t, "RemedyKind(99)", Remedy{Kind: 99}.String())
	for kind := range RetryAfterFrees {
		assert.NotContains(t, kind.String(), "RemedyKind", "the kinds have names")
		assert.NotEmpty(t, kind.String())
	}
}

func with(h Holding) func(*OutOfMemoryError) {
	return func(e *OutOfMemoryError) { e.Streams = append(e.Streams, h) }
}

func TestWhatWouldHelpATenant(t *testing.T) {
	t.Parallel()
	e := &QuotaError{Tenant: "x", RequestedBytes: 3, ChargedBytes: 4, Quota: Quota{LimitBytes: 5}}
	assert.ErrorContains(t, e, "Request.Wait, for the tenant's own frees, or a Quota.LimitBytes of at least 7")
	e = &QuotaError{Tenant: "x", RequestedBytes: 6, Quota: Quota{LimitBytes: 5}}
	assert.EqualError(t, e, `vram: tenant "x" is over its quota: requested 6 B of a limit of 5 B; what would help: a Quota.LimitBytes of at least 6 B`)
}

// The text of a refusal stays short, however many streams there are, and names those that hold
// most.
func TestARefusalOfManyStreams(t *testing.T) {
	t.Parallel()
	e := &OutOfMemoryError{
		RequestedBytes: 500 << 20, MissingBytes: 52 << 20, FreeBytes: 8 << 20, LargestFreeBytes: 2 << 20,
		PendingBytes: 6 << 20, ReservedBytes: 1000 << 20, LimitBytes: 1 << 30,
	}
	for i := range int64(1000) {
		e.Streams = append(e.Streams, Holding{Stream: uint32(i), HeldBytes: i << 20, LiveBytes: i << 19, UnpassedBytes: 1 << 20}) //nolint:gosec // few
	}
	assert.Len(t, e.Remedies(), 1003)
	assert.Equal(t, "vram: out of memory: requested 500 MiB (52 MiB of it missing), free 8 MiB (largest 2 MiB, 6 MiB pending), "+
		"reserved 1000 MiB of a limit of 1 GiB; stream 999 holds 999 MiB, 499.5 MiB live; stream 998 holds 998 MiB, 499 MiB live; "+
		"stream 997 holds 997 MiB, 498.5 MiB live; 996 more hold 484.9 GiB; what would help: the end of stream 0's work, which uses 1 MiB "+
		"that are free; the end of stream 1's work, which uses 1 MiB that are free; the end of stream 2's work, which uses 1 MiB that are free; "+
		"a LimitBytes higher by at least 20 MiB", e.Error())
}
