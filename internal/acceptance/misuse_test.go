package acceptance_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// plumbing are methods that the parts of the allocator call on each other; a caller has no value to
// call them on.
var plumbing = map[string][]string{
	"Stream": {
		"Asked", "Demanded", "Denied", "Detach", "Follow", "Granted", "Idle", "Looked", "Offered", "Panicked", "Piled", "Receive", "Stopped", "Wake",
	},
	"Tenant":      {"Account", "Bind", "Charge", "Hold", "Paid", "Refund", "Refuse", "TooLarge"},
	"Reservation": {"ID", "Granted", "Denied", "Follow", "Idle"},
}

// Every method of every type that a caller holds may be called on a nil and on a zero value, with
// zero arguments and with others: it answers, with ErrNotOpen where it has an error to return.
func TestEveryMethodAnswersOnNilAndZeroValues(t *testing.T) {
	for _, value := range []any{
		(*vram.Device)(nil), new(vram.Device), (*vram.Stream)(nil), new(vram.Stream),
		(*vram.Tenant)(nil), new(vram.Tenant), (*vram.Reservation)(nil), new(vram.Reservation),
		vram.Buffer{},
		vram.Batch{},
		vram.Use{},
		vram.Stats{},
		vram.Config{},
		vram.Settings{},
		vram.Demand{},
		vram.Quota{},
		vram.TenantStats{},
		pool.WaitStats{},
		vram.StreamStats{},
		vram.Ptr(0),
		&vram.OutOfMemoryError{}, &vram.DeadlockError{}, &vram.QuotaError{}, &vram.SizeError{}, &vram.AlignError{},
		&vram.LengthError{}, &vram.InUseError{}, &vram.NotLiveError{}, &vram.LimitError{}, &vram.FreeError{}, &vram.CaptureError{},
		&vram.ConfigError{}, &vram.HandleError{},
	} {
		of := reflect.ValueOf(value)
		name := strings.TrimPrefix(of.Type().String(), "*")
		name = name[strings.LastIndex(name, ".")+1:]
		for i := range of.NumMethod() {
			method := of.Type().Method(i)
			if slices.Contains(plumbing[name], method.Name) || method.Name == "Format" || method.Name == "Write" {
				continue
			}
			for _, ctx := range []context.Context{t.Context(), nil} {
				t.Run(fmt.Sprintf("%T %v/%s", value, of.Kind() == reflect.Pointer && of.IsNil(), method.Name), func(t *testing.T) {
					call := of.Method(i)
					var in []reflect.Value
					for wanted := range call.Type().Ins() {
						arg := reflect.Zero(wanted)
						if ctx != nil && wanted == reflect.TypeFor[context.Context]() {
							arg = reflect.ValueOf(ctx)
						}
						in = append(in, arg)
					}
					results := func() []reflect.Value {
						if call.Type().IsVariadic() {
							return call.CallSlice(in)
						}
						return call.Call(in)
					}()
					if !slices.Contains([]string{"Device", "Stream", "Tenant", "Reservation"}, name) || method.Name == "FreeBatch" || method.Name == "Failure" || method.Name == "MarshalText" {
						return
					}
					for _, r := range results {
						err, isError := r.Interface().(error)
						if r.Type() == reflect.TypeFor[error]() {
							require.True(t, isError, "no error")
							require.ErrorIs(t, err, vram.ErrNotOpen)
						}
						if await := r.MethodByName("Await"); await.IsValid() { // a future
							answer := await.Call([]reflect.Value{reflect.ValueOf(t.Context())})
							require.ErrorIs(t, answer[1].Interface().(error), vram.ErrNotOpen)
						}
					}
				})
			}
		}
	}
	(*vram.Stream)(nil).Suspend()()
	require.NoError(t, (*vram.Stream)(nil).FreeBatch(nil))
}

// A nil context is refused, and changes nothing: cached, mapped and charged bytes stay as they are.
func TestANilContextIsRefused(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	s := h.stream()
	freeAll(t, must(t, s, kib), must(t, s, 4*mib)) // the cache would serve either
	before := h.addsUp()
	var none context.Context
	for name, err := range map[string]error{
		"AllocFor":           second(s.AllocFor(none, vram.Request{Bytes: kib})),
		"AllocFor aligned":   second(s.AllocFor(none, vram.Request{Bytes: kib, Align: 4096})),
		"AllocAsync":         second(s.AllocAsync(none, vram.Request{Bytes: kib}).Await(t.Context())),
		"AllocBatchFor":      second(s.AllocBatchFor(none, vram.BatchRequest{Bytes: []int64{kib}})),
		"AllocBatchAsync":    second(s.AllocBatchAsync(none, []int64{kib}).Await(t.Context())),
		"AllocBatchForAsync": second(s.AllocBatchForAsync(none, vram.BatchRequest{Bytes: []int64{kib}}).Await(t.Context())),
		"Stream.Stats":       second(s.Stats(none)),
		"Stream.Trim":        s.Trim(none),
		"Trim":               second(h.Trim(none, 0)),
		"Device.Coalesce":    h.Coalesce(none),
		"Warm":               h.Warm(none, vram.Demand{Bytes: mib, Count: 1}),
		"Reserve":            second(h.Reserve(none, mib)),
	} {
		require.ErrorIs(t, err, vram.ErrNilContext, name)
	}
	after := h.addsUp()
	assert.Equal(t, []any{before.ReservedBytes, before.AllocCount, before.LiveBytes}, []any{after.ReservedBytes, after.AllocCount, after.LiveBytes})

	kept := must(t, s, 60*mib)
	wait := s.AllocAsync(t.Context(), vram.Request{Bytes: 60 * mib, Wait: true})
	require.ErrorIs(t, second(wait.Await(none)), vram.ErrNilContext)
	freeAll(t, kept)
	b, err := wait.Await(t.Context())
	require.NoError(t, err, "the request goes on")
	require.NoError(t, second(wait.Await(none)), "an answer that is there needs no context")
	freeAll(t, b)
}

func second[T any](_ T, err error) error { return err }

// An invalid argument is refused with a typed error that gives the reason, and costs nothing.
func TestMisuseIsRefusedAtTheBoundary(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	abroad := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	s, foreign, closed := h.stream(), abroad.stream(), h.stream()
	old := must(t, closed, kib)
	require.NoError(t, closed.Close())
	tenant, err := h.Tenant("here", vram.Quota{LimitBytes: 4 * mib})
	require.NoError(t, err)
	tenantAbroad, err := abroad.Tenant("abroad", vram.Quota{})
	require.NoError(t, err)
	reservationAbroad, err := abroad.Reserve(t.Context(), 2*mib)
	require.NoError(t, err)
	live, cached := must(t, s, kib), must(t, s, kib)
	freeAll(t, cached)
	use, err := live.Use(h.stream())
	require.NoError(t, err)
	require.NoError(t, use.Done())
	relay := vram.NewHandover[int](s, h.stream(), 1)
	var none context.Context
	before := h.addsUp()

	batch := func(want vram.BatchRequest) error { return second(s.AllocBatchFor(t.Context(), want)) }
	one := func(want vram.Request) error { return second(s.AllocFor(t.Context(), want)) }
	for name, c := range map[string]struct{ err, want error }{
		"negative size":                  {second(s.Alloc(-1)), vram.ErrNegative},
		"least size":                     {second(s.Alloc(math.MinInt64)), vram.ErrNegative},
		"negative size in a request":     {one(vram.Request{Bytes: -1}), vram.ErrNegative},
		"negative size in a batch":       {batch(vram.BatchRequest{Bytes: []int64{1, -1}}), vram.ErrNegative},
		"huge size":                      {second(s.Alloc(math.MaxInt64)), vram.ErrTooLarge},
		"sizes that overflow":            {batch(vram.BatchRequest{Bytes: []int64{math.MaxInt64, math.MaxInt64}}), vram.ErrTooLarge},
		"alignment of 3":                 {one(vram.Request{Bytes: 1, Align: 3}), &vram.AlignError{}},
		"negative alignment":             {one(vram.Request{Bytes: 1, Align: -512}), &vram.AlignError{}},
		"least alignment":                {one(vram.Request{Bytes: 1, Align: math.MinInt64}), &vram.AlignError{}},
		"slices of two lengths":          {s.AllocBatch(make([]vram.Buffer, 1), nil), &vram.LengthError{}},
		"nil destination":                {s.AllocBatch(nil, []int64{1}), &vram.LengthError{}},
		"zero tenant":                    {one(vram.Request{Bytes: 1, Tenant: new(vram.Tenant)}), vram.ErrNotOpen},
		"zero tenant of a batch":         {batch(vram.BatchRequest{Bytes: []int64{1}, Tenant: new(vram.Tenant)}), vram.ErrNotOpen},
		"zero reservation":               {one(vram.Request{Bytes: 1, Align: 4096, Reservation: new(vram.Reservation)}), vram.ErrNotOpen},
		"zero reservation, cached":       {one(vram.Request{Bytes: kib, Reservation: new(vram.Reservation)}), vram.ErrNotOpen},
		"zero reservation of a batch":    {batch(vram.BatchRequest{Bytes: []int64{1}, Reservation: new(vram.Reservation)}), vram.ErrNotOpen},
		"foreign tenant":                 {one(vram.Request{Bytes: 1, Tenant: tenantAbroad}), vram.ErrForeign},
		"foreign tenant of a batch":      {batch(vram.BatchRequest{Bytes: []int64{1}, Tenant: tenantAbroad}), vram.ErrForeign},
		"foreign reservation":            {one(vram.Request{Bytes: 1, Align: 4096, Reservation: reservationAbroad}), vram.ErrForeign},
		"foreign reservation, cached":    {one(vram.Request{Bytes: kib, Reservation: reservationAbroad}), vram.ErrForeign},
		"foreign reservation of a batch": {batch(vram.BatchRequest{Bytes: []int64{1}, Reservation: reservationAbroad}), vram.ErrForeign},
		"use on nil":                     {second(live.Use(nil)), vram.ErrNotOpen},
		"use on a zero stream":           {second(live.Use(new(vram.Stream))), vram.ErrNotOpen},
		"use abroad":                     {second(live.Use(foreign)), vram.ErrForeign},
		"use on a closed stream":         {second(live.Use(closed)), vram.ErrClosed},
		"record on nil":                  {live.RecordStream(nil), vram.ErrNotOpen},
		"record abroad":                  {live.RecordStream(foreign), vram.ErrForeign},
		"record on a closed stream":      {live.RecordStream(closed), vram.ErrClosed},
		"transfer to nil":                {second(live.Transfer(nil)), vram.ErrNotOpen},
		"transfer abroad":                {second(live.Transfer(foreign)), vram.ErrForeign},
		"transfer to a closed stream":    {second(live.Transfer(closed)), vram.ErrClosed},
		"a use that is over":             {use.Done(), vram.ErrUseOver},
		"no use":                         {vram.Use{}.Done(), vram.ErrUseOver},
		"use of no buffer":               {second(vram.Buffer{}.Use(s)), vram.ErrNotLive},
		"record of no buffer":            {vram.Buffer{}.RecordStream(s), vram.ErrNotLive},
		"send without a context":         {relay.Send(none, 1), vram.ErrNilContext},
		"receive without a context":      {second(relay.Receive(none)), vram.ErrNilContext},
		"send by a nil handover":         {(*vram.Handover[int])(nil).Send(t.Context(), 1), vram.ErrNotOpen},
		"send by a zero handover":        {new(vram.Handover[int]).Send(t.Context(), 1), vram.ErrNotOpen},
		"receive by a zero handover":     {second(new(vram.Handover[int]).Receive(t.Context())), vram.ErrNotOpen},
		"transfer of no buffer":          {second(vram.Buffer{}.Transfer(s)), vram.ErrNotLive},
		"free of no buffer":              {vram.Buffer{}.Free(), vram.ErrBadFree},
		"free of no buffer in a batch":   {s.FreeBatch(make([]vram.Buffer, 2)), vram.ErrBadFree},
		"request on a closed stream":     {second(closed.Alloc(1)), vram.ErrClosed},
		"batch on a closed stream":       {closed.AllocBatch(make([]vram.Buffer, 1), []int64{1}), vram.ErrClosed},
		"negative quota":                 {tenant.SetQuota(vram.Quota{LimitBytes: -1}), vram.ErrNegative},
		"negative share":                 {tenant.SetQuota(vram.Quota{ShareBytes: -1}), vram.ErrNegative},
		"negative quota of a new one":    {second(h.Tenant("new", vram.Quota{LimitBytes: -1})), &vram.QuotaBoundsError{}},
		"negative quota of an old one":   {second(h.Tenant("here", vram.Quota{ShareBytes: -1})), &vram.QuotaBoundsError{}},
		"share over the limit":           {tenant.SetQuota(vram.Quota{LimitBytes: 2, ShareBytes: 3}), &vram.QuotaBoundsError{}},
		"share over the limit, new":      {second(h.Tenant("new", vram.Quota{LimitBytes: 2, ShareBytes: 3})), &vram.QuotaBoundsError{}},
		"negative rest":                  {second(h.Trim(t.Context(), -1)), &vram.ConfigError{}},
		"no reserve":                     {second(h.Reserve(t.Context(), 0)), &vram.ConfigError{}},
		"huge reserve":                   {second(h.Reserve(t.Context(), math.MaxInt64)), vram.ErrTooLarge},
		"negative count":                 {h.Warm(t.Context(), vram.Demand{Bytes: 1, Count: -1}), &vram.ConfigError{}},
		"zero demand":                    {h.Warm(t.Context(), vram.Demand{}), &vram.ConfigError{}},
		"default stream of a thread":     {second(h.AdoptStream(2)), &vram.HandleError{}},
		"a handle that another has":      {second(h.AdoptStream(s.Handle())), &vram.HandleError{}},
		"a handle of nobody":             {second(h.AdoptStream(0xdead0000)), errAny},
		"settings below 0":               {h.Reconfigure(vram.Settings{LimitBytes: new(int64(-1))}), &vram.ConfigError{}},
	} {
		require.Error(t, c.err, name)
		switch kind := reflect.TypeOf(c.want); {
		case errors.Is(c.want, errAny):
		case strings.HasSuffix(kind.String(), "vram.ConfigError"), strings.HasSuffix(kind.String(), "vram.HandleError"),
			strings.HasSuffix(kind.String(), "QuotaBoundsError"),
			kind.Elem().PkgPath() == reflect.TypeFor[vram.AlignError]().PkgPath():
			assert.True(t, errors.As(c.err, reflect.New(kind).Interface()), "%s: %v", name, c.err)
		default:
			require.ErrorIs(t, c.err, c.want, name)
		}
	}
	assert.Equal(t, vram.Quota{LimitBytes: 4 * mib}, tenant.Stats().Quota, "a quota that was refused changes nothing")
	assert.True(t, live.Live())
	after := h.addsUp()
	assert.Equal(t, []any{before.LiveBytes, before.ReservedBytes}, []any{after.LiveBytes, after.ReservedBytes}, "nothing is lost")

	require.NoError(t, s.AllocBatch(nil, nil))
	require.NoError(t, batch(vram.BatchRequest{}))
	require.NoError(t, s.FreeBatch(nil))
	require.NoError(t, vram.Batch{}.Free())
	require.NoError(t, h.Warm(t.Context()))
	require.NoError(t, h.Reconfigure(vram.Settings{}))
	require.NoError(t, closed.Close(), "a second close")
	reservationAbroad.Release()
	reservationAbroad.Release()
	freeAll(t, live, old)
	require.NoError(t, h.Close())
	require.NoError(t, h.Close())
	assert.ErrorIs(t, second(h.NewStream()), vram.ErrClosed)
	assert.ErrorIs(t, second(s.Alloc(1)), vram.ErrClosed)
	assert.ErrorIs(t, h.Reconfigure(vram.Settings{}), vram.ErrClosed)
}

// An argument that is nil or zero is named.
func TestAnArgumentThatIsNotOpenIsNamed(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	s := h.stream()
	live := must(t, s, kib)
	for name, err := range map[string]error{
		"stream": live.RecordStream(nil),
		"other":  s.WaitStream(new(vram.Stream)),
		"peer":   h.EnablePeerAccess(nil),
	} {
		var wrong *vram.NotOpenError
		require.ErrorAs(t, err, &wrong, name)
		require.ErrorIs(t, err, vram.ErrNotOpen)
		assert.EqualError(t, err, "vram: the argument "+name+" is not opened: nil or zero")
	}
	_, err := h.Tenant("", vram.Quota{})
	require.EqualError(t, err, `vram: Device.Tenant: name is "", want a name that is not empty`)
	freeAll(t, live)
}

// The name of the module stands once in the text of an error that has another one in it.
func TestTheModuleIsNamedOnce(t *testing.T) {
	for _, err := range []error{
		&vram.BatchError{Index: 1, Count: 1, Err: vram.ErrNegative},
		&vram.BatchError{Index: 1, Count: 3, Err: &vram.SizeError{RequestedBytes: 2, LimitBytes: 1}},
		&vram.CaptureError{Stream: 1, Call: "cuEventRecord", Err: vram.ErrOutOfMemory},
		&streams.OrderError{Err: vram.ErrClosed}, &streams.OrderError{Waited: true, Err: vram.ErrClosed},
		&vram.EnvError{Name: "VRAM_DRIVER", Value: "dynamic", Err: vram.ErrClosed},
	} {
		assert.Equal(t, 1, strings.Count(err.Error(), "vram: "), err.Error())
	}
}

// errAny stands for a driver's error.
var errAny = errors.New("any")

// The error of an argument names the function and the argument; only one of a Config says so.
func TestARefusedArgumentNamesItsCall(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	for text, err := range map[string]error{
		"vram: Device.Trim: keepBytes is -1, want 0 or more": second(h.Trim(t.Context(), -1)),
		"vram: Device.Reserve: bytes is 0, want 1 or more":   second(h.Reserve(t.Context(), 0)),
		"vram: Device.Warm: demand 1 is -1 × 1 B, want a size of 1 byte or more and a count of 0 or more": h.Warm(t.Context(),
			vram.Demand{Bytes: 1}, vram.Demand{Bytes: 1, Count: -1}),
		`vram: ParseStatsLevel: name is "much", want on, off or exact`:                                                                          second(vram.ParseStatsLevel("much")),
		`vram: ParseSegments: name is "", want auto, vmm or plain`:                                                                              second(vram.ParseSegments("")),
		`vram: ParseWaits: name is "x", want never, avoid-growth or always`:                                                                     second(vram.ParseWaits("x")),
		`vram: ParseFootprint: name is "x", want balanced, lean or fast`:                                                                        second(vram.ParseFootprint("x")),
		`vram: ParseBytes: size is "x", want a number with an optional unit, as "2GB", "512MiB" or "4096"`:                                      second(vram.ParseBytes("x")),
		`vram: ParseDemands: item is "4", want a size and a count as "4KiB:50"`:                                                                 second(vram.ParseDemands("4")),
		`vram: DriverNamed: name is "tpu", want auto, dynamic or sim; cpu and gpu-or-cpu need an import of github.com/go-vram/vram/cudadrv/cpu`: second(vram.DriverNamed("tpu")),
		"vram: config: LimitBytes is -1, want 0 or more":                                                                                        h.Reconfigure(vram.Settings{LimitBytes: new(int64(-1))}),
		"vram: config: Ordinal is -1, want 0 or more":                                                                                           second(vram.Open(vram.Config{Ordinal: -1})),
		"vram: config: Warm[0] is 0 × 0 B, want a size of 1 byte or more and a count of 0 or more":                                              second(vram.Open(vram.Config{Warm: make([]vram.Demand, 1)})),
	} {
		var wrong *vram.ConfigError
		require.ErrorAs(t, err, &wrong)
		assert.EqualError(t, err, text)
	}
}
