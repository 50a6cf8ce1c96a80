package page

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/site"
)

// counted is a sampler whose reads are counted.
func counted(historyCount int) (s *sampler, reads *atomic.Int64) {
	reads = new(atomic.Int64)
	return newSampler(time.Second, historyCount, func() Sample {
		return Sample{Time: time.Now(), Devices: []Device{{Figures: Figures{LiveBytes: reads.Add(1)}}}}
	}), reads
}

// All viewers get the samples of one sampler; it reads nothing before the first comes and after the last has left.
func TestViewersShareASampler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, reads := counted(10)
		time.Sleep(time.Minute) //nolint:forbidigo // virtual time
		assert.Zero(t, reads.Load())
		s.reading <- struct{}{} // no sample is taken before both watch
		a, history, err := s.watch(t.Context())
		require.NoError(t, err)
		assert.Empty(t, history.Points)
		b, _, err := s.watch(t.Context())
		require.NoError(t, err)
		<-s.reading
		for number := range uint64(3) {
			assert.Equal(t, number+1, (<-a.samples).Number)
			assert.Equal(t, number+1, (<-b.samples).Number)
		}
		assert.EqualValues(t, 3, reads.Load())
		s.leave(a)
		assert.Equal(t, uint64(4), (<-b.samples).Number)
		s.leave(b)
		synctest.Wait()         // the goroutine has ended, or the bubble would say so
		time.Sleep(time.Minute) //nolint:forbidigo // virtual time
		assert.EqualValues(t, 4, reads.Load())

		c, history, err := s.watch(t.Context())
		require.NoError(t, err)
		require.Len(t, history.Points, 4)
		assert.Equal(t, uint64(5), (<-c.samples).Number, "the numbers go on")
		s.leave(c)
	})
}

// Whichever viewers leave, in whichever order, those who stay get samples, and each that comes. A viewer's context ends before it leaves,
// as the end of a request does.
func TestSamplesReachTheViewersThatStay(t *testing.T) {
	const viewers = 3
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		synctest.Test(t, func(t *testing.T) {
			s, reads := counted(10)
			for round := range 2 { // after the last one has left all begins again
				var all [viewers]*viewer
				var ends [viewers]context.CancelFunc
				for i := range all {
					ctx, end := context.WithCancel(t.Context())
					v, _, err := s.watch(ctx)
					require.NoError(t, err)
					all[i], ends[i] = v, end
				}
				newest := uint64(0)
				for _, leaving := range order {
					time.Sleep(time.Second + time.Millisecond) //nolint:forbidigo // virtual time
					synctest.Wait()
					least := newest
					for i, v := range all {
						if v == nil {
							continue
						}
						select {
						case sample := <-v.samples:
							assert.Greater(t, sample.Number, least, "viewer %d in round %d of %v", i, round, order)
							newest = sample.Number
						default:
							t.Errorf("viewer %d in round %d of %v has no sample", i, round, order)
						}
					}
					ends[leaving]()
					synctest.Wait()
					s.leave(all[leaving])
					all[leaving] = nil
				}
				synctest.Wait()
				before := reads.Load()
				time.Sleep(time.Minute) //nolint:forbidigo // virtual time
				assert.Equal(t, before, reads.Load(), "nobody watches")
			}
		})
	}
}

// A viewer that does not receive holds up nobody, and gets the newest sample.
func TestASlowViewerGetsTheNewestSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := counted(10)
		v, _, err := s.watch(t.Context())
		require.NoError(t, err)
		time.Sleep(5*time.Second + time.Millisecond) //nolint:forbidigo // virtual time
		assert.Equal(t, uint64(6), (<-v.samples).Number)
		s.leave(v)
	})
}

// The history keeps so many samples, the oldest first.
func TestTheHistoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := counted(3)
		for range 5 {
			_, err := s.newest(t.Context())
			require.NoError(t, err)
			time.Sleep(time.Second) //nolint:forbidigo // virtual time
		}
		h, err := s.history(t.Context())
		require.NoError(t, err)
		require.Len(t, h.Points, 3)
		for i, p := range h.Points {
			assert.Equal(t, int64(3+i), p.Devices[0].LiveBytes)
			assert.True(t, i == 0 || h.Points[i-1].UnixMillis < p.UnixMillis)
		}
	})
}

// Requests within one interval get the same sample.
func TestRequestsShareASample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, reads := counted(3)
		for range 5 {
			n, err := s.newest(t.Context())
			require.NoError(t, err)
			assert.Equal(t, uint64(1), n.Number)
		}
		assert.EqualValues(t, 1, reads.Load())
		ended, end := context.WithCancel(t.Context())
		end()
		s.reading <- struct{}{} // somebody reads
		time.Sleep(time.Second) //nolint:forbidigo // virtual time
		_, err := s.newest(ended)
		require.ErrorIs(t, err, context.Canceled)
		<-s.reading
	})
}

// Requests that come while the device is read get the sample of that read, and cause none of their own.
func TestRequestsDuringAReadShareIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, reads := counted(3)
		read, begin := s.read, make(chan struct{})
		s.read = func() Sample {
			<-begin
			return read()
		}
		for round := range uint64(3) {
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					n, err := s.newest(t.Context())
					if assert.NoError(t, err) {
						assert.Equal(t, round+1, n.Number)
					}
				})
			}
			synctest.Wait() // one reads, and three wait for it
			begin <- struct{}{}
			synctest.Wait()
			select {
			case begin <- struct{}{}:
				close(begin)
				all.Wait()
				require.Fail(t, "another one reads")
			default:
			}
			all.Wait()
			assert.EqualValues(t, round+1, reads.Load())
			time.Sleep(time.Second) //nolint:forbidigo // virtual time
		}
	})
}

// Requests for the newest sample and for the history at the same time: each sample is in the history, once, in order.
func TestManyGoroutinesAskForSamples(t *testing.T) {
	const pairs, each = 2, 100
	s, reads := counted(pairs * each)
	s.interval = 0
	var all sync.WaitGroup
	begin := make(chan struct{})
	for range pairs {
		all.Go(func() {
			<-begin
			for range each {
				_, err := s.newest(t.Context())
				assert.NoError(t, err)
			}
		})
		all.Go(func() {
			<-begin
			for range each {
				h, err := s.history(t.Context())
				assert.NoError(t, err)
				for i := range h.Points {
					assert.EqualValues(t, i+1, h.Points[i].Devices[0].LiveBytes)
				}
			}
		})
	}
	close(begin)
	all.Wait()
	assert.EqualValues(t, pairs*each, reads.Load())
	h, err := s.history(t.Context())
	require.NoError(t, err)
	assert.Len(t, h.Points, pairs*each)
}

// A request whose figures do not come has its answer when the limit is over, and not before.
func TestARequestWaitsForItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := counted(1)
		s.reading <- struct{}{} // a read that does not end
		begin, w := time.Now(), httptest.NewRecorder()
		(&Page{sampler: s}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/stats.json", nil))
		assert.GreaterOrEqual(t, w.Code, http.StatusInternalServerError)
		assert.Equal(t, readLimit, time.Since(begin))
	})
}

// Close ends viewers and the goroutine; later ones get an error.
func TestCloseEndsViewers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, reads := counted(3)
		v, _, err := s.watch(t.Context())
		require.NoError(t, err)
		synctest.Wait()
		s.close()
		before := reads.Load()
		s.close() // before the viewer leaves
		_, more := <-v.samples
		assert.False(t, more)
		s.leave(v)
		_, _, err = s.watch(t.Context())
		require.ErrorIs(t, err, errClosed)
		_, err = s.newest(t.Context())
		require.ErrorIs(t, err, errClosed)
		_, err = s.history(t.Context())
		require.ErrorIs(t, err, errClosed)
		assert.Equal(t, before, reads.Load(), "a closed page reads nothing")
		s.close()
	})
}

// A sample that was being read when the page was closed, or when the last viewer left, reaches nobody.
func TestTheEndOfViewersDuringARead(t *testing.T) {
	for name, end := range map[string]func(*sampler, *viewer){"closed": func(s *sampler, _ *viewer) { s.close() }, "left": (*sampler).leave} {
		synctest.Test(t, func(t *testing.T) {
			s, reads := counted(3)
			read, resume := s.read, make(chan struct{})
			s.read = func() Sample {
				<-resume
				return read()
			}
			v, _, err := s.watch(t.Context())
			require.NoError(t, err)
			synctest.Wait()
			go end(s, v) // a close waits for the sample
			synctest.Wait()
			close(resume)
			synctest.Wait()
			assert.EqualValues(t, 1, reads.Load(), name)
			assert.Empty(t, v.samples, name)
			st := <-s.state
			assert.Nil(t, st.last, name)
			s.state <- st
		})
	}
}

// A goroutine whose viewers have left takes no sample, also where a tick came at the same time, or where it waited for another reader.
func TestNoSampleIsTakenForNobody(t *testing.T) {
	s, reads := counted(3)
	ended, end := context.WithCancel(t.Context())
	assert.True(t, s.sample(ended))
	end()
	assert.False(t, s.sample(ended))
	assert.EqualValues(t, 1, reads.Load())
	assert.Empty(t, s.reading)
}

// Viewers that come and leave at the same time each get a sample after their history, and leave nothing. A close ends those that are
// there then, and no others come.
func TestViewersAmongGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const goroutineCount, rounds = 4, 50
		s, _ := counted(10)
		view := func() error {
			v, history, err := s.watch(t.Context())
			if err != nil {
				return err
			}
			defer s.leave(v)
			sample, more := <-v.samples
			if !more {
				return errClosed
			}
			newest := int64(0)
			for _, p := range history.Points {
				assert.Greater(t, p.Devices[0].LiveBytes, newest)
				newest = p.Devices[0].LiveBytes
			}
			assert.Greater(t, sample.Devices[0].Figures.LiveBytes, newest)
			_, err = s.newest(t.Context())
			return err
		}
		var all sync.WaitGroup
		for range goroutineCount {
			all.Go(func() {
				for range rounds {
					assert.NoError(t, view())
				}
			})
		}
		all.Wait()
		synctest.Wait()
		st := <-s.state
		assert.Empty(t, st.viewers)
		assert.Nil(t, st.stop)
		s.state <- st

		for range goroutineCount {
			all.Go(func() {
				var err error
				for err == nil {
					err = view()
				}
				assert.ErrorIs(t, err, errClosed)
			})
		}
		all.Go(s.close)
		all.Wait()
		assert.Empty(t, st.viewers)
	})
}

// Close returns after the sample that is being read for viewers, and not before.
func TestCloseMeetsASample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := counted(3)
		read, resume := s.read, make(chan struct{})
		s.read = func() Sample {
			<-resume
			return read()
		}
		v, _, err := s.watch(t.Context())
		require.NoError(t, err)
		synctest.Wait()
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			s.close()
		}()
		synctest.Wait()
		_, more := <-v.samples
		assert.False(t, more)
		select {
		case <-closed:
			require.Fail(t, "closed while a sample is read")
		default:
		}
		close(resume)
		<-closed
	})
}

// Samples that are read for viewers and for requests at the same time are numbered in the order in which they are read.
func TestReadsMeet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const goroutineCount, rounds = 3, 200
		s, _ := counted(2 * goroutineCount * rounds)
		v, _, err := s.watch(t.Context())
		require.NoError(t, err)
		var all sync.WaitGroup
		for range goroutineCount {
			all.Go(func() {
				for range rounds {
					time.Sleep(time.Second) //nolint:forbidigo // virtual time: at a tick of the sampler
					_, err := s.newest(t.Context())
					assert.NoError(t, err)
				}
			})
		}
		all.Wait()
		s.leave(v)
		h, err := s.history(t.Context())
		require.NoError(t, err)
		for i, p := range h.Points[1:] {
			require.Greater(t, p.Devices[0].LiveBytes, h.Points[i].Devices[0].LiveBytes)
		}
	})
}

// A request whose context ends while another reads a sample has the context's error.
func TestARequestEndsDuringARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, reads := counted(3)
		s.reading <- struct{}{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		sample, err := s.newest(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Nil(t, sample)
		assert.Zero(t, reads.Load())
		<-s.reading
	})
}

// Only records with live buffers are calls, whatever else there is.
func TestCallsHoldMemory(t *testing.T) {
	t.Parallel()
	stacks := []site.Stack{site.Deep(0), site.Deep(0)}
	past := vram.ProfileRecord{Stack: stacks[0], Allocated: vram.ProfileTotals{Count: 5, Bytes: 50}}
	held := vram.ProfileRecord{Stack: stacks[1], Allocated: vram.ProfileTotals{Count: 3, Bytes: 30}, InUse: vram.ProfileTotals{Count: 2, Bytes: 20}}
	for _, records := range [][]vram.ProfileRecord{{past, held}, {held, past}, {past, held, past}} {
		c := callsOf(vram.Profile{SampleBytes: 1, Records: records})
		require.Len(t, c.Calls, 1)
		assert.Equal(t, [...]int64{20, 20, 2, 1}, [...]int64{c.LiveBytes, c.Calls[0].LiveBytes, c.Calls[0].BufferCount, int64(c.StackCount)})
	}
	assert.Equal(t, Calls{Calls: []Call{}}, callsOf(vram.Profile{Records: []vram.ProfileRecord{past}}))
}

// A request whose sample is being read when the page is closed gets the error of a closed page.
func TestCloseDuringARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := counted(3)
		read, resume := s.read, make(chan struct{})
		s.read = func() Sample {
			<-resume
			return read()
		}
		failed := make(chan error)
		go func() {
			n, err := s.newest(t.Context())
			assert.Nil(t, n)
			failed <- err
		}()
		synctest.Wait()
		s.close()
		close(resume)
		require.ErrorIs(t, <-failed, errClosed)
	})
}

// A name that a device had before its Close stays.
func TestClosedDevicesKeepTheirNames(t *testing.T) {
	t.Parallel()
	st := &sampling{most: 2}
	st.add(Sample{Devices: []Device{{Name: "GPU", Driver: "sim", TotalBytes: 7}}})
	st.add(Sample{Devices: []Device{{}}})
	assert.Equal(t, Device{Name: "GPU", Driver: "sim", TotalBytes: 7}, st.last.Devices[0])
}

// A figure that JSON does not have is an error of the answer.
func TestAFigureThatIsNoNumber(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	answer(w)(Device{HitRate: math.NaN()}, nil)
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Contains(t, w.Body.String(), "NaN")
}
