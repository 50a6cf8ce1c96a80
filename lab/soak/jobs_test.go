package soak

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/go-vram/vram"
)

const (
	streamCount = 8
	// jobOps is how many operations a job of a stream takes on average.
	jobOps = 100_000
)

// plan configures a soak.
type plan struct {
	liveBytes int64
	limit     float64 // over liveBytes
	seed      uint64
}

// soak is an open device and the jobs on it.
type soak struct {
	plan   plan
	random *rand.Rand
	device *vram.Device
	jobs   [streamCount]job

	live  int64 // bytes of all jobs
	ops   int
	calls uint64 // of the driver, when the last stretch ended
}

// job is the work of a stream for a while: it allocates long-lived buffers, then in step after step buffers of random sizes,
// some of which it frees soon, and at a step's end all others, the first or the last one first. At its own end it frees
// everything. Buffers are megabytes long: buffers of a few pages that are freed at random leave pieces of pages everywhere,
// which moving pages cannot join.
type job struct {
	stream  *vram.Stream
	buffers []vram.Buffer // by age, as far as frees at random leave it
	live    int64
	weight  float64 // its share of the operations
	most    int64   // bytes that it lets live in a step
	kept    int64   // of them it keeps
	base    int     // buffers that it keeps
	forward bool    // a step's first buffer is freed first
	freeing bool    // at a step's end
	left    int     // operations
	sizes   [7]int64
}

// row is how things stand after a stretch.
type row struct {
	ops            int
	live, reserved float64 // over the bound of live bytes
	free           float64 // share of the reserved bytes
	nsPerOp        float64
	callsPerOp     float64
}

func open(p plan, cfg vram.Config) (*soak, error) {
	cfg.LimitBytes = int64(p.limit * float64(p.liveBytes))
	device, err := vram.Open(cfg)
	if err != nil {
		return nil, err
	}
	s := &soak{plan: p, device: device, random: rand.New(rand.NewPCG(p.seed, 0))} //nolint:gosec // no secret
	for i := range s.jobs {
		if s.jobs[i].stream, err = device.NewStream(); err != nil {
			return nil, errors.Join(err, device.Close())
		}
		s.jobs[i].weight = 1
	}
	return s, nil
}

// stretch does so many operations.
func (s *soak) stretch(ops int) (row, error) {
	begin := time.Now()
	for range ops {
		if err := s.step(s.pick()); err != nil {
			return row{}, err
		}
		s.ops++
	}
	elapsed := time.Since(begin)
	stats := s.device.Stats()
	r := row{
		ops: s.ops, live: float64(s.live) / float64(s.plan.liveBytes), reserved: float64(stats.ReservedBytes) / float64(s.plan.liveBytes),
		free:    float64(stats.ReservedBytes-stats.LiveBytes) / float64(max(1, stats.ReservedBytes)),
		nsPerOp: float64(elapsed.Nanoseconds()) / float64(ops), callsPerOp: float64(stats.DriverCalls-s.calls) / float64(ops),
	}
	s.calls = stats.DriverCalls
	return r, nil
}

// pick is the job that does the next operation.
func (s *soak) pick() *job {
	var total float64
	for i := range s.jobs {
		total += s.jobs[i].weight
	}
	at := s.random.Float64() * total
	for i := range s.jobs {
		if at -= s.jobs[i].weight; at < 0 || total == 0 {
			return &s.jobs[i]
		}
	}
	return &s.jobs[0]
}

// step lets a job allocate, free, or end and the next begin on its stream.
func (s *soak) step(j *job) error {
	if j.left == 0 {
		if err := s.end(j); err != nil {
			return err
		}
		s.begin(j)
	}
	j.left--
	if j.freeing {
		if j.freeing = len(j.buffers) > j.base; j.freeing {
			return s.free(j, j.victim())
		}
		j.forward = s.random.IntN(2) == 0
	}
	bytes := s.size(j)
	if j.live+bytes > j.most || s.live+bytes > s.plan.liveBytes { // the step has all its buffers
		j.freeing = true
		return nil
	}
	if n := len(j.buffers); n > j.base && s.random.IntN(4) == 0 {
		return s.free(j, n-1-s.random.IntN(min(4, n-j.base)))
	}
	b, err := j.stream.Alloc(bytes)
	if err != nil {
		return fmt.Errorf("operation %d, %d of %d bytes live: %w", s.ops, s.live, s.plan.liveBytes, err)
	}
	j.buffers = append(j.buffers, b)
	j.live += bytes
	s.live += bytes
	if j.live <= j.kept {
		j.base = len(j.buffers)
	}
	return nil
}

// victim is the buffer of a step that goes next.
func (j *job) victim() int {
	if j.forward {
		return j.base
	}
	return len(j.buffers) - 1
}

// begin draws a job: between a tenth and a half of the live bytes, up to half of that for good, in some twenty to a hundred
// buffers at a time, of seven sizes that span a factor of up to 64.
func (s *soak) begin(j *job) {
	j.weight = 0.1 + s.random.Float64()
	j.most = int64((0.1 + 0.4*s.random.Float64()) * float64(s.plan.liveBytes))
	j.kept = int64(0.5 * s.random.Float64() * float64(j.most))
	j.left, j.base, j.freeing = 1+s.random.IntN(2*jobOps), 0, false
	mean := float64(j.most) / (20 * math.Pow(5, s.random.Float64()))
	span := math.Pow(8, 2*s.random.Float64())
	for i := range j.sizes {
		j.sizes[i] = max(512, int64(mean*math.Pow(span, s.random.Float64()-0.5)))
	}
}

// size is one of the job's.
func (s *soak) size(j *job) int64 { return j.sizes[s.random.IntN(len(j.sizes))] }

// end frees the rest of a job.
func (s *soak) end(j *job) error {
	j.base = 0
	for len(j.buffers) > 0 {
		if err := s.free(j, len(j.buffers)-1); err != nil {
			return err
		}
	}
	return nil
}

func (s *soak) free(j *job, i int) error {
	b := j.buffers[i]
	j.buffers = slices.Delete(j.buffers, i, i+1)
	j.live -= b.Bytes()
	s.live -= b.Bytes()
	return b.Free()
}

// close frees everything and looks whether all memory goes back.
func (s *soak) close() error {
	for i := range s.jobs {
		if err := s.end(&s.jobs[i]); err != nil {
			return err
		}
	}
	if _, err := s.device.Trim(context.Background(), 0); err != nil {
		return err
	}
	if left := s.device.Stats().ReservedBytes; left != 0 {
		return errors.Join(fmt.Errorf("%d bytes are held where nothing lives", left), s.device.Close())
	}
	if count := s.device.Stats().Panics; count > 0 {
		return errors.Join(fmt.Errorf("%d panics were recovered on the way", count), s.device.Close())
	}
	return s.device.Close()
}
