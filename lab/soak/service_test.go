package soak

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/sim"
)

// perRow is how many requests a row of TestService has at least.
const perRow = 50

var serviceTime = flag.Duration("service", 0, "how long TestService runs at least")

// service is a program that runs for long: it has a stream and a buffer for good, and opens and closes a stream, a tenant, a
// tag and a graph for each request.
type service struct {
	device *vram.Device
	home   *cuda.Context
	shared vram.Buffer
	served int
}

func openService(t *testing.T) *service {
	t.Helper()
	dev, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{}), LimitBytes: 1 << 30, SampleBytes: 1 << 12})
	require.NoError(t, err)
	stream, err := dev.NewStream()
	require.NoError(t, err)
	home, err := cuda.NewContext(stream)
	require.NoError(t, err)
	shared, err := stream.Alloc(1 << 20)
	require.NoError(t, err)
	return &service{device: dev, home: home, shared: shared}
}

// serve is one request.
func (s *service) serve() error {
	ctx := context.Background()
	s.served++
	tenant, err := s.device.Tenant(fmt.Sprint("customer ", s.served), vram.Quota{LimitBytes: 64 << 20})
	if err != nil {
		return err
	}
	stream, err := s.device.NewStream()
	if err != nil {
		return err
	}
	own, err := cuda.NewContext(stream)
	if err != nil {
		return err
	}
	b, err := stream.AllocFor(ctx, vram.Request{Bytes: 3 << 20, Tenant: tenant, Tag: fmt.Sprint("request ", s.served), Wait: true})
	if err != nil {
		return err
	}
	use, err := s.shared.Use(stream)
	if err != nil {
		return err
	}
	if err := own.Fill8(cuda.Whole(b), 0); err != nil {
		return err
	}
	if err := use.Done(); err != nil {
		return err
	}
	if err := s.replay(); err != nil {
		return err
	}
	for _, end := range []func() error{b.Free, own.Close, stream.Close, tenant.Close} {
		if err := end(); err != nil {
			return err
		}
	}
	return nil
}

// replay captures a graph on the long-lived stream, launches it and destroys it.
func (s *service) replay() error {
	g, err := s.home.Capture(func() error { return s.home.Fill8(cuda.Whole(s.shared), 1) })
	if err != nil {
		return err
	}
	if err := g.Launch(s.home); err != nil {
		return err
	}
	if err := s.home.Synchronize(context.Background()); err != nil {
		return err
	}
	return g.Close()
}

func (s *service) close() error {
	for _, end := range []func() error{s.shared.Free, s.home.Close, s.device.Close} {
		if err := end(); err != nil {
			return err
		}
	}
	return nil
}

// heap is the Go heap in use, and the number of goroutines, once the ticker has removed the closed streams.
func (s *service) heap() (bytes int64, goroutines int) {
	for len(s.device.Stats().Streams) > 1 {
		runtime.Gosched()
	}
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), runtime.NumGoroutine() //nolint:gosec // less than 2^63
}

// A service that opens and closes streams, tenants, tags and graphs, 550 times or for as long as the flag says, keeps the heap
// and the goroutines that it had after an eleventh of them.
func TestService(t *testing.T) {
	// heapSlack covers bounded memory: the actors' framework has the names of streams in 32,768 maps, which it makes on
	// demand, of 200 bytes each, and the profile has 4,096 places of 600 bytes.
	const heapSlack = 10 << 20
	s := openService(t)
	var heapBytes int64
	var goroutines int
	begin := time.Now()
	fmt.Println("| time | requests | heap, KiB | goroutines | requests/s |")
	fmt.Println("|---|---|---|---|---|")
	for row := range 11 {
		from, rowBegin := s.served, time.Now()
		for time.Since(begin) < *serviceTime*time.Duration(row+1)/11 || s.served-from < perRow {
			require.NoError(t, s.serve())
		}
		bytes, count := s.heap()
		for end := time.Now().Add(time.Minute); row > 0 && count > goroutines+2 && time.Now().Before(end); { // some are about to end
			bytes, count = s.heap()
		}
		fmt.Printf("| %v | %d | %d | %d | %.0f |\n", time.Since(begin).Round(time.Millisecond), s.served, bytes>>10, count,
			float64(s.served-from)/time.Since(rowBegin).Seconds())
		if row == 0 {
			heapBytes, goroutines = bytes, count
			continue
		}
		assert.Less(t, bytes-heapBytes, int64(heapSlack))
		assert.LessOrEqual(t, count, goroutines+2, "the ticker and a notice come and go")
	}
	assert.Empty(t, s.device.Stats().Tenants)
	require.NoError(t, s.close())
}
