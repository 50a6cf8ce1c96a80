package fence

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// writer is a simulated device whose streams write words: each write is made when the clock has got to it, by who moves
// the clock.
type writer struct {
	*sim.Device
	lock    sync.Mutex
	pending []writing
	pages   map[cudadrv.Ptr][]byte // by number
	made    cudadrv.Ptr
	fails   map[string]bool
}

type writing struct {
	behind cudadrv.Event
	at     cudadrv.Ptr
	value  uint64
}

func newWordBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	w := &writer{Device: b.sim, pages: map[cudadrv.Ptr][]byte{}}
	words, err := NewWords(w)
	require.NoError(t, err)
	b.Source, b.words = words, w
	t.Cleanup(func() {
		assert.NoError(t, words.Close())
		assert.Empty(t, w.pages, "all pages were given back")
	})
	return b
}

// advance moves the clock.
func (b *bench) advance(d time.Duration) {
	b.sim.Advance(d)
	if b.words != nil {
		b.words.write()
	}
}

func (w *writer) Info() cudadrv.Info {
	info := w.Device.Info()
	info.Capabilities |= cudadrv.MemoryOperations64 | cudadrv.PinnedHost
	return info
}

func (w *writer) refused(function string) error {
	if w.fails[function] {
		return &cudadrv.CallError{Func: function, Result: cudadrv.LaunchFailed}
	}
	return nil
}

// write makes the writes whose time has come.
func (w *writer) write() {
	w.lock.Lock()
	defer w.lock.Unlock()
	var left []writing
	for _, x := range w.pending {
		if passed, err := w.EventQuery(x.behind); err != nil || !passed {
			left = append(left, x)
			continue
		}
		w.word(x.at).Store(x.value)
	}
	w.pending = left
}

// word is the one at an address.
func (w *writer) word(at cudadrv.Ptr) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&w.pages[at/pageBytes][at%pageBytes]))
}

func (w *writer) MemHostAlloc(bytes int64) ([]byte, error) {
	if err := w.refused("cuMemHostAlloc"); err != nil {
		return nil, err
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	b := make([]byte, bytes)
	w.made++
	w.pages[w.made] = b
	return b, nil
}

func (w *writer) MemHostGetDevicePointer(b []byte) (cudadrv.Ptr, error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	for number, page := range w.pages {
		if &page[0] == &b[0] {
			return number * pageBytes, w.refused("cuMemHostGetDevicePointer")
		}
	}
	return 0, cudadrv.InvalidValue
}

func (w *writer) MemFreeHost(b []byte) error {
	w.lock.Lock()
	defer w.lock.Unlock()
	for number, page := range w.pages {
		if &page[0] == &b[0] {
			delete(w.pages, number)
		}
	}
	return w.refused("cuMemFreeHost")
}

func (w *writer) StreamWriteValue64(s cudadrv.Stream, at cudadrv.Ptr, value uint64) error {
	if err := w.refused("cuStreamWriteValue64"); err != nil {
		return err
	}
	behind, err := w.EventCreate()
	if err == nil {
		err = w.EventRecord(behind, s)
	}
	w.lock.Lock()
	w.pending = append(w.pending, writing{behind, at, value})
	w.lock.Unlock()
	w.write()
	return err
}

func (w *writer) StreamWaitValue64(s cudadrv.Stream, at cudadrv.Ptr, value uint64, _ cudadrv.WaitCondition) error {
	if err := w.refused("cuStreamWaitValue64"); err != nil {
		return err
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	for _, x := range w.pending {
		if x.at == at && x.value >= value {
			return w.StreamWaitEvent(s, x.behind)
		}
	}
	return nil
}

func (w *writer) StreamSynchronize(s cudadrv.Stream) error {
	err := w.Device.StreamSynchronize(s)
	w.write()
	return err
}

// Calls that Words makes none of.
func (*writer) StreamWriteValue32(cudadrv.Stream, cudadrv.Ptr, uint32) error {
	return cudadrv.NotSupported
}

func (*writer) StreamWaitValue32(cudadrv.Stream, cudadrv.Ptr, uint32, cudadrv.WaitCondition) error {
	return cudadrv.NotSupported
}

// Words need a device whose streams write them.
func TestWordsNeedTheDevicesHelp(t *testing.T) {
	t.Parallel()
	_, err := NewWords(newBench(t).sim)
	require.ErrorIs(t, err, cudadrv.NotSupported)
}

// A word that was given up before its value has arrived serves nobody until it has; every refusal is the driver's.
func TestWordsServeAgain(t *testing.T) {
	t.Parallel()
	b := newWordBench(t)
	require.NoError(t, b.sim.Launch(b.stream, time.Second))
	early := b.mark()
	require.NoError(t, b.Release(early))
	other, err := b.sim.StreamCreate()
	require.NoError(t, err)
	for range pageBytes / wordBytes * 2 {
		m, err := b.Record(other)
		require.NoError(t, err)
		require.NotEqual(t, early.word, m.word)
		assert.True(t, b.passed(m))
		require.NoError(t, b.Release(m))
	}
	require.Len(t, b.words.pages, 1)
	b.advance(time.Second)
	seen := false
	for range pageBytes / wordBytes {
		m, err := b.Record(other)
		require.NoError(t, err)
		seen = seen || m.word == early.word
		require.NoError(t, b.Release(m))
	}
	assert.True(t, seen)
	m := b.mark()
	for function, call := range map[string]func() error{
		"cuStreamWriteValue64": func() error { _, err := b.Record(b.stream); return err },
		"cuStreamWaitValue64":  func() error { return b.Wait(m) },
		"cuMemHostAlloc": func() error {
			for range spareWords {
				if _, err := b.Record(b.stream); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		b.words.fails = map[string]bool{function: true}
		b.expect(call(), function)
	}
	b.words.fails = nil
}
