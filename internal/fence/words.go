package fence

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
)

// Words takes fences by words of page-locked host memory that the stream writes: to look at one is to load it. A
// word serves one mark after the other, with rising values.
type Words struct {
	device cudadrv.Device
	values cudadrv.StreamValues
	host   cudadrv.HostMemory
	spare  chan *word
	pages  atomic.Pointer[page]
}

var _ Source = (*Words)(nil)

// word is a place in page-locked memory, and the value that was written there last: of whoever has the word.
type word struct {
	value *atomic.Uint64
	at    cudadrv.Ptr
	last  uint64
}

// page is page-locked memory that words were cut from.
type page struct {
	bytes []byte
	next  *page
}

const (
	// pageBytes is what is page-locked at a time: not less than the system locks anyway.
	pageBytes = 4096
	wordBytes = 8
	// spareWords bounds those that are kept. What is over waits for Close. Not smaller: a page has half as many.
	spareWords = 1024
	// wordTries is how many spare words are looked at for one whose last value has arrived. Not more: words
	// that were given up early are few.
	wordTries = 4
)

// NewWords makes a Source over a device whose streams write words of 64 bits. It makes no driver call. Where the
// device cannot, the error is a *cudadrv.CallError with CUDA_ERROR_NOT_SUPPORTED.
func NewWords(d cudadrv.Device) (*Words, error) {
	values, hasValues := d.(cudadrv.StreamValues)
	host, hasHost := d.(cudadrv.HostMemory)
	if !hasValues || !hasHost || !d.Info().Capabilities.Has(cudadrv.MemoryOperations64|cudadrv.PinnedHost) {
		return nil, fmt.Errorf("fence: %w", &cudadrv.CallError{Func: "cuStreamWriteValue64", Result: cudadrv.NotSupported})
	}
	return &Words{device: d, values: values, host: host, spare: make(chan *word, spareWords)}, nil
}

// Record implements Source.
func (s *Words) Record(stream cudadrv.Stream) (Mark, error) {
	w, err := s.take()
	if err != nil {
		return Mark{}, fmt.Errorf("fence: %w", err)
	}
	if err := s.values.StreamWriteValue64(stream, w.at, w.last+1); err != nil {
		s.keep(w)
		return Mark{}, fmt.Errorf("fence: %w", err)
	}
	w.last++
	return Mark{word: w, value: w.last}, nil
}

// take is a word that nothing is on its way to.
func (s *Words) take() (*word, error) {
	for range wordTries {
		select {
		case w := <-s.spare:
			if w.value.Load() == w.last {
				return w, nil
			}
			s.keep(w)
		default:
			return s.cut()
		}
	}
	return s.cut()
}

// cut makes a page of words and returns one of them.
func (s *Words) cut() (*word, error) {
	bytes, err := s.host.MemHostAlloc(pageBytes)
	if err != nil {
		return nil, err
	}
	at, err := s.host.MemHostGetDevicePointer(bytes)
	if err != nil {
		_ = s.host.MemFreeHost(bytes) // the first error says more
		return nil, err
	}
	p := &page{bytes: bytes}
	for p.next = s.pages.Load(); !s.pages.CompareAndSwap(p.next, p); p.next = s.pages.Load() {
	}
	clear(bytes)
	words := make([]word, len(bytes)/wordBytes)
	for i := range words {
		words[i] = word{value: (*atomic.Uint64)(unsafe.Pointer(&bytes[i*wordBytes])), at: at + cudadrv.Ptr(i*wordBytes)}
		if i > 0 {
			s.keep(&words[i])
		}
	}
	return &words[0], nil
}

func (s *Words) keep(w *word) {
	select {
	case s.spare <- w:
	default: // its page is given back by Close
	}
}

// Passed implements Source. It makes no driver call.
func (s *Words) Passed(m Mark) (bool, error) {
	return m.Zero() || m.word.value.Load() >= m.value, nil
}

// Wait implements Source, by a stream of its own that waits for the word.
func (s *Words) Wait(m Mark) error {
	if m.Zero() {
		return nil
	}
	waiting, err := s.device.StreamCreate()
	if err != nil {
		return fmt.Errorf("fence: %w", err)
	}
	if err = s.Precede(m, waiting); err == nil {
		err = s.device.StreamSynchronize(waiting)
	}
	if destroyErr := s.device.StreamDestroy(waiting); err == nil {
		err = destroyErr
	}
	if err != nil {
		return fmt.Errorf("fence: %w", err)
	}
	return nil
}

// Precede implements Source.
func (s *Words) Precede(m Mark, later cudadrv.Stream) error {
	if m.Zero() {
		return nil
	}
	if err := s.values.StreamWaitValue64(later, m.word.at, m.value, cudadrv.WaitGreaterOrEqual); err != nil {
		return fmt.Errorf("fence: %w", err)
	}
	return nil
}

// Release implements Source.
func (s *Words) Release(m Mark) error {
	if !m.Zero() {
		s.keep(m.word)
	}
	return nil
}

// Close implements Source. It waits for the device, as memory that it may still write is given back.
func (s *Words) Close() error {
	for len(s.spare) > 0 {
		<-s.spare
	}
	var first error
	for p := s.pages.Swap(nil); p != nil; p = p.next {
		if err := s.host.MemFreeHost(p.bytes); err != nil && first == nil {
			first = fmt.Errorf("fence: %w", err)
		}
	}
	return first
}
