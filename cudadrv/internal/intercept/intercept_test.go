package intercept_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/drivertest"
	"github.com/go-vram/vram/cudadrv/internal/call"
	"github.com/go-vram/vram/cudadrv/internal/intercept"
	"github.com/go-vram/vram/cudadrv/sim"
)

// recorder records the calls of the hook, and refuses one call.
type recorder struct {
	before, after []call.Call
	marks         []int64
	refuse        call.Call
	err           error
}

func (r *recorder) Before(c call.Call) (int64, error) {
	r.before = append(r.before, c)
	if c == r.refuse {
		return 0, r.err
	}
	return int64(len(r.before)), nil
}

func (r *recorder) After(c call.Call, mark int64, _ bool) {
	r.after = append(r.after, c)
	r.marks = append(r.marks, mark)
}

// quiet is a hook that does nothing.
type quiet struct{}

func (quiet) Before(call.Call) (int64, error) { return 0, nil }
func (quiet) After(call.Call, int64, bool)    {}

// wrapped is a driver whose devices are intercepted.
type wrapped struct{ cudadrv.Driver }

func (w wrapped) Open(ordinal int) (cudadrv.Device, error) {
	inner, err := w.Driver.Open(ordinal)
	if err != nil {
		return nil, err
	}
	dev := intercept.Wrap(inner, quiet{})
	return &dev, nil
}

func TestForwardingKeepsEveryPromise(t *testing.T) {
	drivertest.Run(t, func(*testing.T) cudadrv.Driver { return wrapped{sim.New(sim.Config{})} })
}

// Every call tells its own name before and after, whether it works or not.
func TestEveryCallTellsItsName(t *testing.T) {
	drv := sim.New(sim.Config{})
	inner, err := drv.Open(0)
	require.NoError(t, err)
	r := &recorder{refuse: call.Count}
	dev := intercept.Wrap(inner, r)

	calls := map[call.Call]func(){
		call.MemGetInfo:        func() { _, _, _ = dev.MemGetInfo() },
		call.MemAlloc:          func() { _, _ = dev.MemAlloc(1) },
		call.MemFree:           func() { _ = dev.MemFree(1) },
		call.MemAddressReserve: func() { _, _ = dev.MemAddressReserve(1) },
		call.MemAddressFree:    func() { _ = dev.MemAddressFree(1, 1) },
		call.MemCreate:         func() { _, _ = dev.MemCreate(1) },
		call.MemRelease:        func() { _ = dev.MemRelease(1) },
		call.MemMap:            func() { _ = dev.MemMap(1, 1, 1) },
		call.MemSetAccess:      func() { _ = dev.MemSetAccess(1, 1) },
		call.MemUnmap:          func() { _ = dev.MemUnmap(1, 1) },
		call.StreamCreate:      func() { _, _ = dev.StreamCreate() },
		call.StreamDestroy:     func() { _ = dev.StreamDestroy(1) },
		call.StreamQuery:       func() { _, _ = dev.StreamQuery(1) },
		call.StreamSynchronize: func() { _ = dev.StreamSynchronize(1) },
		call.StreamWaitEvent:   func() { _ = dev.StreamWaitEvent(1, 1) },
		call.CtxSynchronize:    func() { _ = dev.CtxSynchronize() },
		call.EventCreate:       func() { _, _ = dev.EventCreate() },
		call.EventDestroy:      func() { _ = dev.EventDestroy(1) },
		call.EventRecord:       func() { _ = dev.EventRecord(1, 1) },
		call.EventQuery:        func() { _, _ = dev.EventQuery(1) },
		call.EventSynchronize:  func() { _ = dev.EventSynchronize(1) },
		call.MemsetD8Async:     func() { _ = dev.MemsetD8Async(1, 1, 1, 1) },
		call.MemcpyDtoDAsync:   func() { _ = dev.MemcpyDtoDAsync(1, 1, 1, 1) },
	}
	for c := call.MemGetInfo; c < call.Optional; c++ {
		*r = recorder{refuse: call.Count}
		before := drv.Device(0).Counts()[c.String()]
		require.Contains(t, calls, c)
		calls[c]()
		assert.Equal(t, []call.Call{c}, r.before)
		assert.Equal(t, []call.Call{c}, r.after)
		assert.Equal(t, []int64{1}, r.marks, "the mark of Before reaches After")
		assert.Equal(t, before+1, drv.Device(0).Counts()[c.String()], "%v reaches the device as itself", c)
	}
}

// Each call returns the device's error: a closed device has one for every call.
func TestEveryCallReturnsTheDevicesError(t *testing.T) {
	inner, err := sim.New(sim.Config{}).Open(0)
	require.NoError(t, err)
	require.NoError(t, inner.Close())
	dev := intercept.Wrap(inner, quiet{})
	calls := 0
	for _, of := range []reflect.Type{
		reflect.TypeFor[cudadrv.Device](), reflect.TypeFor[cudadrv.WideWork](), reflect.TypeFor[cudadrv.Kernels](), reflect.TypeFor[cudadrv.Graphs](),
		reflect.TypeFor[cudadrv.TimedEvents](), reflect.TypeFor[cudadrv.Peers](),
	} {
		for i := range of.NumMethod() {
			method := reflect.ValueOf(&dev).MethodByName(of.Method(i).Name)
			kind := method.Type()
			if kind.NumOut() == 0 || !kind.Out(kind.NumOut()-1).Implements(reflect.TypeFor[error]()) {
				continue
			}
			var arguments []reflect.Value
			for j := range kind.NumIn() {
				if !kind.IsVariadic() || j < kind.NumIn()-1 {
					arguments = append(arguments, reflect.Zero(kind.In(j)))
				}
			}
			results := method.Call(arguments)
			err, _ := results[len(results)-1].Interface().(error)
			assert.ErrorIs(t, err, cudadrv.InvalidContext, of.Method(i).Name)
			calls++
		}
	}
	assert.Greater(t, calls, 50)
}

// A translation gets the errors of all calls, with a result and without, and of no other; without one they stay.
func TestErrorsAreTranslated(t *testing.T) {
	other := errors.New("the error's translation")
	for _, translates := range []bool{false, true} {
		inner, err := sim.New(sim.Config{}).Open(0)
		require.NoError(t, err)
		var got []error
		dev := intercept.Wrap(inner, quiet{})
		if translates {
			dev = intercept.WithTranslation(inner, quiet{}, func(err error) error {
				got = append(got, err)
				return other
			})
		}
		p, err := dev.MemAlloc(1)
		require.NoError(t, err)
		require.NoError(t, dev.MemFree(p))
		assert.Empty(t, got)
		_, errAlloc := dev.MemAlloc(-1)
		errFree := dev.MemFree(1)
		if translates {
			assert.Equal(t, []error{other, other}, []error{errAlloc, errFree})
			require.Len(t, got, 2)
			errAlloc, errFree = got[0], got[1]
		}
		require.ErrorIs(t, errAlloc, cudadrv.InvalidValue)
		require.ErrorIs(t, errFree, cudadrv.InvalidValue)
		require.NoError(t, dev.Close())
	}
}

func TestARefusedCallIsNotMade(t *testing.T) {
	drv := sim.New(sim.Config{})
	inner, err := drv.Open(0)
	require.NoError(t, err)
	refusal := errors.New("refused")
	r := &recorder{refuse: call.MemCreate, err: refusal}
	dev := intercept.Wrap(inner, r)

	h, err := dev.MemCreate(2 << 20)
	assert.Same(t, refusal, err)
	assert.Zero(t, h)
	assert.Empty(t, r.after)
	assert.Zero(t, drv.Device(0).Counts()["cuMemCreate"])

	r.refuse = call.MemGetInfo
	_, _, err = dev.MemGetInfo()
	assert.Same(t, refusal, err)
}
