package gpus

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
)

// Config says which library to open, and how old an answer may be. The zero Config is right for most programs.
type Config struct {
	// Library is the path or name of NVML. "": libnvidia-ml.so.1, where the system's loader finds it.
	Library string
	// Fresh is how long a reading serves further questions. 0: a second. Negative: each question reads.
	Fresh time.Duration
	// Files has the folder proc. Nil: the root directory.
	Files fs.FS
}

// defaultFresh is the default of Config.Fresh. Not shorter: in a storm of refusals each asks. Not longer: users watch it.
const defaultFresh = time.Second

// Reader reads the devices. Open and OnDemand make one, Close ends it.
type Reader struct {
	config Config
	state  chan *state // has the state while no goroutine owns it
}

// state is used and changed by readings.
type state struct {
	library *library // nil: not opened, or closed
	closed  bool

	devices []Device // of the last reading
	err     error
	at      time.Time // the end of the last reading; zero: there was none
}

// OnDemand makes a Reader that opens NVML at its first question.
func OnDemand(c Config) *Reader {
	if c.Fresh == 0 {
		c.Fresh = defaultFresh
	}
	if c.Files == nil {
		c.Files = os.DirFS("/")
	}
	r := &Reader{config: c, state: make(chan *state, 1)}
	r.state <- &state{}
	return r
}

// Open makes a Reader and opens NVML, which can take a second. Errors: *LibraryError, *SymbolError, and a *CallError where NVML
// does not start, as without a driver.
func Open(c Config) (*Reader, error) {
	r := OnDemand(c)
	st := <-r.state
	defer func() { r.state <- st }()
	if err := st.open(c.Library); err != nil {
		return nil, err
	}
	return r, nil
}

// open opens the library unless it is open.
func (s *state) open(path string) error {
	if s.closed {
		return ErrClosed
	}
	if s.library != nil {
		return nil
	}
	l, err := openLibrary(path)
	if err == nil {
		s.library = l
	}
	return err
}

// Devices lists all devices, in NVML's order, as of a reading that is at most Config.Fresh old. It waits for a reading until ctx
// ends. The caller may change the list. Errors: of Open; a *CallError or *AnswerError where the devices cannot be counted; ErrClosed,
// ErrNotOpen, and ctx's. Failures of single devices are in Device.Problems.
func (r *Reader) Devices(ctx context.Context) ([]Device, error) {
	if r == nil || r.state == nil {
		return nil, ErrNotOpen
	}
	if ctx == nil {
		return nil, vram.ErrNilContext
	}
	var st *state
	select {
	case st = <-r.state:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if st.closed || !st.at.IsZero() && time.Since(st.at) < r.config.Fresh {
		defer func() { r.state <- st }()
		return st.answer()
	}
	type answer struct {
		devices []Device
		err     error
	}
	answers := make(chan answer, 1) // the caller may have gone
	go func() {
		a := answer{err: errEndedReading}
		defer func() {
			r.state <- st
			answers <- a
		}()
		st.read(r.config)
		a.devices, a.err = st.answer()
	}()
	select {
	case a := <-answers:
		return a.devices, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// errEndedReading is the error of a reading that has ended its goroutine, in Config.Files.
var errEndedReading = errors.New("gpus: a reading ended its goroutine")

// read reads the devices.
func (s *state) read(c Config) {
	s.devices = nil
	if s.err = s.open(c.Library); s.err == nil {
		s.devices, s.err = s.library.devices(c.Files)
	}
	s.at = time.Now()
}

// answer returns a copy of the last reading.
func (s *state) answer() ([]Device, error) {
	if s.closed {
		return nil, ErrClosed
	}
	devices := slices.Clone(s.devices)
	for i := range devices {
		devices[i].Processes, devices[i].Problems = slices.Clone(devices[i].Processes), slices.Clone(devices[i].Problems)
	}
	return devices, s.err
}

// Processes lists the processes on a GPU of CUDA, for vram.Config.Processes: see Find. On a GPU in MIG mode it lists
// processes of the instances that this process uses, or all where NVML does not show this process. Errors: as Devices has them,
// ErrNotListed, and a *CallError or *AnswerError where no process can be listed.
func (r *Reader) Processes(ctx context.Context, gpu cudadrv.Info) ([]vram.GPUProcess, error) {
	devices, err := r.Devices(ctx)
	if err != nil {
		return nil, err
	}
	d, ok := Find(devices, gpu)
	if !ok {
		return nil, ErrNotListed
	}
	if !d.ProcessesKnown && len(d.Processes) == 0 {
		return nil, d.Problems[len(d.Problems)-1]
	}
	own := map[int]bool{}
	for _, p := range d.Processes {
		if p.Own {
			own[p.Instance] = true
		}
	}
	var all []vram.GPUProcess
	for _, p := range d.Processes {
		if len(own) == 0 || own[p.Instance] {
			all = append(all, vram.GPUProcess{
				PID: p.PID, Command: p.Command, Place: p.Place.String(), Bytes: p.Bytes, BytesKnown: p.BytesKnown, Own: p.Own,
			})
		}
	}
	return all, nil
}

// Close ends the use of NVML. It waits for a reading in progress. Questions return ErrClosed from then on. Errors: NVML's, after which
// Close can be called again; else a later call returns nil.
func (r *Reader) Close() error {
	if r == nil || r.state == nil {
		return ErrNotOpen
	}
	st := <-r.state
	defer func() { r.state <- st }()
	*st = state{library: st.library, closed: true}
	if st.library == nil {
		return nil
	}
	err := st.library.close()
	if err == nil {
		st.library = nil
	}
	return err
}
