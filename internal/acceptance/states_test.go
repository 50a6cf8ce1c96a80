package acceptance_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/eachcall"
)

// state is a device with an object of each kind, and a second one.
type state struct {
	*testing.T
	machine *sim.Driver
	faults  *fault.Driver
	set     *vram.Set
	dev     *vram.Device
	peer    *vram.Device
	s, t    *vram.Stream
	tenant  *vram.Tenant
	buffer  vram.Buffer // of s
	other   vram.Buffer // of t
	batch   vram.Batch
	use     vram.Use
}

// newState opens two devices. used has the first one make its objects.
func newState(t *testing.T, used bool) *state {
	t.Helper()
	x := &state{T: t, machine: sim.New(sim.Config{Devices: 2, Bytes: true})}
	x.faults = fault.Wrap(x.machine)
	var err error
	x.set, err = vram.OpenAll(vram.Config{
		Driver:    x.faults,
		Processes: func(ctx context.Context, _ cudadrv.Info) ([]vram.GPUProcess, error) { return nil, ctx.Err() },
	})
	require.NoError(t, err)
	x.dev, x.peer = x.set.Devices()[0], x.set.Devices()[1]
	t.Cleanup(func() {
		x.faults.Clear()
		_ = x.set.Close() // buffers are live
	})
	if !used {
		return x
	}
	x.s, err = x.dev.NewStream()
	require.NoError(t, err)
	x.t, err = x.dev.NewStream()
	require.NoError(t, err)
	x.tenant, err = x.dev.Tenant("tenant", vram.Quota{LimitBytes: 1 << 30})
	require.NoError(t, err)
	x.buffer, err = x.s.Alloc(4096)
	require.NoError(t, err)
	x.other, err = x.t.Alloc(4096)
	require.NoError(t, err)
	x.batch, err = x.s.AllocBatchFor(context.Background(), vram.BatchRequest{Bytes: []int64{1, 2}})
	require.NoError(t, err)
	x.use, err = x.buffer.Use(x.t)
	require.NoError(t, err)
	return x
}

// stateCall is one exported call on open values, with a context.
type stateCall struct {
	name    string
	context bool
	call    func(x *state, ctx context.Context) error
}

// deviceCalls are the calls of a device that has made nothing yet.
func deviceCalls() []stateCall {
	return []stateCall{
		{"Device.CanAccessPeer", false, func(x *state, _ context.Context) error { return second(x.dev.CanAccessPeer(x.peer)) }},
		{"Device.CanAccessPeer, the peer", false, func(x *state, _ context.Context) error { return second(x.peer.CanAccessPeer(x.dev)) }},
		{"Device.EnablePeerAccess", false, func(x *state, _ context.Context) error { return x.dev.EnablePeerAccess(x.peer) }},
		{"Device.Coalesce", true, func(x *state, ctx context.Context) error { return x.dev.Coalesce(ctx) }},
		{"Device.GPUMemory", false, func(x *state, _ context.Context) error { return second(x.dev.GPUMemory()) }},
		{"Device.GPUProcesses", true, func(x *state, ctx context.Context) error { return second(x.dev.GPUProcesses(ctx)) }},
		{"Device.LiveBuffers", true, func(x *state, ctx context.Context) error { return second(x.dev.LiveBuffers(ctx)) }},
		{"Device.MemoryMap", true, func(x *state, ctx context.Context) error { return second(x.dev.MemoryMap(ctx, 0)) }},
		{"Device.SampledBuffers", true, func(x *state, ctx context.Context) error { return second(x.dev.SampledBuffers(ctx)) }},
		{"Device.Waiters", true, func(x *state, ctx context.Context) error { return second(x.dev.Waiters(ctx)) }},
		{"Device.Trim", true, func(x *state, ctx context.Context) error { return second(x.dev.Trim(ctx, 0)) }},
		{"Device.Observe", false, func(x *state, _ context.Context) error { return second(x.dev.Observe(vram.Observer{})) }},
		{"Device.Reconfigure", false, func(x *state, _ context.Context) error { return x.dev.Reconfigure(vram.Settings{}) }},
		{"Device.Reserve", true, func(x *state, ctx context.Context) error { return second(x.dev.Reserve(ctx, 1<<20)) }},
		{"Device.Warm", true, func(x *state, ctx context.Context) error {
			return x.dev.Warm(ctx, vram.Demand{Bytes: 1 << 20, Count: 1})
		}},
		{"Device.Tenant", false, func(x *state, _ context.Context) error { return second(x.dev.Tenant("other", vram.Quota{})) }},
		{"Device.NewStream", false, func(x *state, _ context.Context) error { return second(x.dev.NewStream()) }},
		{"Device.AdoptStream", false, func(x *state, _ context.Context) error { return second(x.dev.AdoptStream(0)) }},
		{"Set.Place", false, func(x *state, _ context.Context) error { return second(x.set.Place(1 << 20)) }},
	}
}

// streamCalls are the calls of streams and of their objects.
func streamCalls() []stateCall {
	const bytes = 64 << 20 // more than the stream has
	return []stateCall{
		{"Stream.Alloc", false, func(x *state, _ context.Context) error { return second(x.s.Alloc(bytes)) }},
		{"Stream.AllocFor", true, func(x *state, ctx context.Context) error {
			return second(x.s.AllocFor(ctx, vram.Request{Bytes: bytes}))
		}},
		{"Stream.AllocAsync", true, func(x *state, ctx context.Context) error {
			return second(x.s.AllocAsync(ctx, vram.Request{Bytes: bytes}).Await(context.Background()))
		}},
		{"Stream.AllocBatch", false, func(x *state, _ context.Context) error { return x.s.AllocBatch(make([]vram.Buffer, 1), []int64{bytes}) }},
		{"Stream.AllocBatchAsync", true, func(x *state, ctx context.Context) error {
			return second(x.s.AllocBatchAsync(ctx, []int64{bytes}).Await(context.Background()))
		}},
		{"Stream.AllocBatchFor", true, func(x *state, ctx context.Context) error {
			return second(x.s.AllocBatchFor(ctx, vram.BatchRequest{Bytes: []int64{bytes}}))
		}},
		{"Stream.AllocBatchForAsync", true, func(x *state, ctx context.Context) error {
			return second(x.s.AllocBatchForAsync(ctx, vram.BatchRequest{Bytes: []int64{bytes}}).Await(context.Background()))
		}},
		{"Stream.Stats", true, func(x *state, ctx context.Context) error { return second(x.s.Stats(ctx)) }},
		{"Stream.Trim", true, func(x *state, ctx context.Context) error { return x.s.Trim(ctx) }},
		{"Stream.WaitStream", false, func(x *state, _ context.Context) error { return x.s.WaitStream(x.t) }},
		{"Stream.WaitStream, the other", false, func(x *state, _ context.Context) error { return x.t.WaitStream(x.s) }},
		{"Tenant.SetQuota", false, func(x *state, _ context.Context) error { return x.tenant.SetQuota(vram.Quota{LimitBytes: 1 << 31}) }},
		{"Buffer.RecordStream", false, func(x *state, _ context.Context) error { return x.other.RecordStream(x.s) }},
		{"Buffer.Use", false, func(x *state, _ context.Context) error { return second(x.other.Use(x.s)) }},
		{"Buffer.Transfer", false, func(x *state, _ context.Context) error { return second(x.other.Transfer(x.s)) }},
		{"Use.Done", false, func(x *state, _ context.Context) error { return x.use.Done() }},
		{"Stream.FreeBatch", false, func(x *state, _ context.Context) error { return x.s.FreeBatch([]vram.Buffer{x.buffer}) }},
		{"Batch.Free", false, func(x *state, _ context.Context) error { return x.batch.Free() }},
	}
}

// Each call has the error of the state that it meets. Calls that need no driver, or have nothing to wait for, succeed.
func TestCallsInEachState(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	ledgers := []string{ // of this process alone
		"Device.Coalesce", "Device.LiveBuffers", "Device.MemoryMap", "Device.SampledBuffers", "Device.Waiters", "Device.Trim", "Device.Observe",
		"Device.Reconfigure", "Device.Tenant", "Tenant.SetQuota",
	}
	const sampled = "Device.SampledBuffers" // of no open stream: nothing to wait for
	for _, one := range []struct {
		name   string
		used   bool
		begin  func(x *state)
		ctx    context.Context
		want   error
		others map[string]error // of calls with another error
		either []string         // calls that succeed if there is nothing to wait for
	}{
		{name: "not used"},
		{name: "used", used: true},
		{name: "nil context", used: true, want: vram.ErrNilContext},
		{name: "nil context, not used", want: vram.ErrNilContext},
		{
			name: "ended context", used: true, ctx: ended, want: context.Canceled,
			either: []string{sampled, "Device.Trim", "Device.Warm", "Stream.Stats", "Stream.Trim"},
		},
		{name: "ended context, not used", ctx: ended, want: context.Canceled, others: errorOf(nil, sampled), either: []string{"Device.Warm"}},
		{
			name: "closed", used: true, begin: func(x *state) { require.Error(x, x.dev.Close()) },
			want: vram.ErrClosed, others: errorOf(nil, sampled, "Tenant.SetQuota", "Use.Done"),
		},
		{name: "closed, not used", begin: func(x *state) { require.NoError(x, x.dev.Close()) }, want: vram.ErrClosed, others: errorOf(nil, sampled)},
		{name: "no device", begin: func(x *state) {
			require.NoError(x, x.faults.Add(fault.Rule{Func: "cuDevicePrimaryCtxRetain", Result: cudadrv.Unknown}))
		}, want: cudadrv.Unknown, others: errorOf(nil, ledgers...)},
		{
			name: "failed", used: true, begin: func(x *state) {
				require.NoError(x, second(x.peer.NewStream()))
				require.NoError(x, x.faults.Add(fault.Rule{Func: "*", Result: cudadrv.LaunchFailed}))
			}, want: vram.ErrDeviceFailed,
			others: errorOf(nil, append(ledgers, "Device.GPUProcesses", "Stream.Stats", "Stream.Trim", "Buffer.RecordStream", "Buffer.Use", "Use.Done",
				"Stream.FreeBatch", "Batch.Free")...),
		},
	} {
		calls := deviceCalls()
		if one.used {
			calls = append(calls, streamCalls()...)
		}
		t.Run(one.name, func(t *testing.T) {
			x := newState(t, one.used)
			if one.begin != nil {
				one.begin(x)
			}
			for _, op := range calls {
				ctx := context.Background()
				if errors.Is(one.want, vram.ErrNilContext) || one.ctx != nil {
					if !op.context {
						continue
					}
					ctx = one.ctx
				}
				want, other := one.others[op.name]
				if !other {
					want = one.want
				}
				err := op.call(x, ctx)
				switch {
				case err == nil && slices.Contains(one.either, op.name):
				case want == nil:
					assert.NoError(t, err, op.name)
				default:
					assert.ErrorIs(t, err, want, op.name)
				}
			}
		})
	}
}

func errorOf(err error, names ...string) map[string]error {
	all := map[string]error{}
	for _, name := range names {
		all[name] = err
	}
	return all
}

// Every operation of a device, and of its streams and buffers, is called in each state.
func TestEachOperationMeetsEachState(t *testing.T) {
	const (
		text  = "it needs no device"
		opens = "it makes the objects"
	)
	eachcall.Operations(t, "../../api/vram.txt", "vram", "states_test.go", map[string]string{
		"ConfigFromEnv": text, "DriverNamed": text, "ParseBytes": text, "ParseDemands": text, "ParseFaultPlaces": text, "ParseFootprint": text,
		"ParseSegments": text, "ParseStatsLevel": text, "ParseWaits": text, "Open": opens,
	})
}

// A call that waits for the request that a stream is serving ends with its context: its error is the context's, not a part of the list.
func TestCallsEndWhileAStreamIsBusy(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	x := newState(t, true)
	require.NoError(t, errors.Join(x.use.Done(), x.other.Free(), x.t.Close())) // one stream is open: no other answers for it
	at, leave, watching := make(chan struct{}), make(chan struct{}), make(chan error)
	found := 0
	go func() {
		stop, err := x.dev.Observe(vram.Observer{Found: func(vram.BufferEvent) { // in the turn of a stream
			if found++; found == 1 {
				close(at)
				<-leave
			}
		}})
		if err == nil {
			stop()
		}
		watching <- err
	}()
	<-at
	waiting := []string{
		"Device.Coalesce", "Device.LiveBuffers", "Device.MemoryMap", "Device.SampledBuffers", "Device.Waiters", "Stream.Stats", "Stream.Trim", "Stream.AllocFor",
		"Stream.AllocAsync", "Stream.AllocBatchFor", "Stream.AllocBatchAsync", "Stream.AllocBatchForAsync",
	}
	for _, op := range append(deviceCalls(), streamCalls()...) {
		if !op.context {
			continue
		}
		err := op.call(x, ended)
		if err == nil && !slices.Contains(waiting, op.name) { // it had nothing to wait for
			continue
		}
		assert.ErrorIs(t, err, context.Canceled, op.name)
	}
	close(leave)
	require.NoError(t, <-watching)
	for _, op := range deviceCalls() {
		if op.context {
			require.NoError(t, op.call(x, t.Context()), op.name)
		}
	}
}
