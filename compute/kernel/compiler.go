package kernel

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/compute/kernel/tune"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/futures"
)

// Store keeps compiled code beyond the process. Both methods may be called on any goroutine. A failure is no error of a kernel:
// Get has nothing then. Only runtime.Goexit in a method, as FailNow of a test calls it, is an error of the kernel.
type Store interface {
	// Get is the image that Put was given for the text of a kernel, on this kind of device with this driver.
	Get(text string) (image []byte, ok bool)
	// Put keeps the code that the driver has compiled.
	Put(text string, image []byte)
}

// Compiler has the compiled kernels of one device. NewCompiler makes one, Close unloads them.
type Compiler struct {
	on       *cuda.Context
	store    Store       // or nil
	prepared atomic.Bool // nothing is compiled that is not asked for: see Prepared
	threads  int
	tuner    *tuner
	counts   counts

	mu      sync.Mutex                         // of cold calls: a warm Run never takes it
	modules map[string]*futures.Promise[*code] // by key: the text, or the source with its options
	queue   []job                              // jobs that wait for a worker
	later   []job                              // jobs of WarmUp, which run when queue is empty
	working int                                // workers that run
	idle    *sync.Cond
	closed  bool
}

// code is a loaded text or source.
type code struct {
	module *cuda.Module
	origin Origin
	took   time.Duration
}

// Option changes a compiler.
type Option func(*Compiler)

// WithStore makes a compiler look for code in a store before it compiles, and store the code that it compiles.
func WithStore(s Store) Option { return func(c *Compiler) { c.store = s } }

// Prepared has Run compile nothing: it takes variants that Prepare or WarmUp have compiled, and those that the store has, and
// refuses others with ErrNotPrepared. So does Function.
func Prepared() Option { return func(c *Compiler) { c.prepared.Store(true) } }

// Freeze is the option Prepared from now on: for a program that runs its work once, which compiles its kernels, and wants no
// compilation after that. Compilations that have started are completed.
func (c *Compiler) Freeze() {
	if c != nil {
		c.prepared.Store(true)
	}
}

// Threads is how many texts are compiled at a time, at least one. The default is four, or GOMAXPROCS where that is less.
func Threads(n int) Option { return func(c *Compiler) { c.threads = max(n, 1) } }

// WithLog logs variants that compute wrong results, and measurements that fail.
func WithLog(l Logger) Option { return func(c *Compiler) { c.tuner.log = l } }

// WithTuning has Run measure variants, or Tune take more or less. NewCompiler refuses with ErrTuningStream a mode without its
// stream, with ErrForeign a context of another device, and with ErrNotOpen one that is not open.
func WithTuning(t Tuning) Option { return func(c *Compiler) { c.tuner.config = t } }

// WithTables chooses variants by the rows of these tables, the first that has a kind of work, instead of package
// compute/kernel/tune/tables. The tables must not change any more. Without tables the rule chooses.
func WithTables(all ...*tune.Table) Option {
	return func(c *Compiler) {
		c.tuner.tables = func(on tune.Device, of tune.Key) []tune.Row {
			for _, table := range all {
				if rows := table.Rows(on, of); rows != nil {
					return rows
				}
			}
			return nil
		}
	}
}

// maxThreads is the default of Threads: a program that starts has other work to do.
const maxThreads = 4

// NewCompiler makes a compiler for the device of a context, which must stay open until Close. Errors: ErrNotOpen, and errors of
// WithTuning.
func NewCompiler(on *cuda.Context, with ...Option) (*Compiler, error) {
	if on.Stream() == nil {
		return nil, cuda.ErrNotOpen
	}
	c := &Compiler{on: on, threads: min(maxThreads, runtime.GOMAXPROCS(0)), modules: map[string]*futures.Promise[*code]{}}
	c.idle = sync.NewCond(&c.mu)
	c.tuner = newTuner(on, &c.counts, &c.prepared)
	for _, option := range with {
		if option != nil {
			option(c)
		}
	}
	if err := c.tuner.config.check(c.tuner.own); err != nil {
		return nil, err
	}
	return c, nil
}

// job is work that waits for a worker.
type job struct {
	do     func()
	refuse func(error) // in place of do, when the compiler is closed
}

// module loads the text of a kernel, or of a caller if of is nil. known reports that it was requested before.
func (c *Compiler) module(of fmt.Stringer, text string) (loaded futures.Future[*code], known bool) {
	return c.once(text, func() (*code, error) { return c.made(of, text) })
}

// moduleHere is module for a worker: this goroutine loads a text that was not requested before.
func (c *Compiler) moduleHere(of fmt.Stringer, text string) (loaded futures.Future[*code], known bool) {
	c.mu.Lock()
	p, known, err := c.claim(text)
	c.mu.Unlock()
	switch {
	case err != nil:
		return futures.Failed[*code](err), false
	case !known:
		c.complete(text, p, func() (*code, error) { return c.made(of, text) })
	}
	return p.Future(), known
}

// made loads a text.
func (c *Compiler) made(of fmt.Stringer, text string) (*code, error) {
	m, err := c.load(text)
	if err != nil {
		return nil, refusedText(of, text, err)
	}
	return m, nil
}

// allowed is module for callers that the option Prepared forbids to compile. Errors: ErrNotPrepared.
func (c *Compiler) allowed(of fmt.Stringer, text string) futures.Future[*code] {
	if !c.prepared.Load() {
		loaded, _ := c.module(of, text)
		return loaded
	}
	c.mu.Lock()
	p, known := c.modules[text]
	closed := c.closed
	c.mu.Unlock()
	switch {
	case closed && !known:
		return futures.Failed[*code](ErrClosed)
	case known:
		return p.Future()
	case c.store == nil:
		return futures.Failed[*code](ErrNotPrepared)
	}
	loaded, _ := c.once("stored\x00"+text, func() (*code, error) { // a key of its own: Prepare may compile the text at the same time
		return c.loadOr(text, func() ([]byte, error) { return nil, ErrNotPrepared })
	})
	return loaded
}

// once returns a module that a worker loads once.
func (c *Compiler) once(key string, load func() (*code, error)) (loaded futures.Future[*code], known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, known, err := c.claim(key)
	switch {
	case err != nil:
		return futures.Failed[*code](err), false
	case !known:
		c.queue = append(c.queue, job{func() { c.complete(key, p, load) }, func(err error) {
			delete(c.modules, key)
			p.Complete(nil, err)
		}})
		c.startWorkers(1)
	}
	return p.Future(), known
}

// claim returns the promise of a module. If it is not known, the caller must complete it. c.mu must be held. Errors:
// ErrNotOpen, ErrClosed.
func (c *Compiler) claim(key string) (p *futures.Promise[*code], known bool, err error) {
	if p, known = c.modules[key]; known && !c.closed {
		c.counts.hits.Add(1)
		return p, true, nil
	}
	switch {
	case c.modules == nil:
		return nil, false, ErrNotOpen
	case c.closed:
		return nil, false, ErrClosed
	}
	c.counts.misses.Add(1)
	p = futures.NewPromise[*code](nil)
	c.modules[key] = p
	return p, false, nil
}

// errEnded is the error of work whose goroutine the store, the logger or the driver has ended.
var errEnded = errors.New("kernel: the work ended its goroutine")

// complete loads a module.
func (c *Compiler) complete(key string, p *futures.Promise[*code], load func() (*code, error)) {
	var m *code
	err := errEnded
	defer func() {
		if err != nil {
			if !errors.Is(err, ErrNotPrepared) {
				c.counts.failed.Add(1)
			}
			c.mu.Lock()
			delete(c.modules, key) // the next call tries again
			c.mu.Unlock()
		}
		p.Complete(m, err)
	}()
	m, err = load()
}

// startWorkers starts them for more jobs, up to the number of threads. c.mu must be held.
func (c *Compiler) startWorkers(jobs int) {
	for range min(jobs, c.threads-c.working) {
		c.working++
		go c.work()
	}
}

// work runs jobs until both queues are empty. A job that ends its goroutine ends no other: another goroutine runs the rest.
func (c *Compiler) work() {
	through := false
	defer func() {
		if !through {
			go c.work()
		}
	}()
	for {
		c.mu.Lock()
		from := &c.queue
		if len(c.queue) == 0 {
			from = &c.later
		}
		if len(*from) == 0 {
			through = true
			c.working--
			c.idle.Broadcast()
			c.mu.Unlock()
			return
		}
		next := (*from)[0]
		*from = (*from)[1:]
		c.mu.Unlock()
		next.do()
	}
}

// load compiles a text, or takes it from the store. Text with setmaxnreg is loaded by itself, and the store has the text as its
// image: the assembler ignores that instruction in texts that it links.
func (c *Compiler) load(text string) (*code, error) {
	return c.loadOr(text, func() ([]byte, error) {
		if strings.Contains(text, "setmaxnreg") {
			return []byte(text), nil
		}
		return c.on.Link([]byte(text)) // LoadModule would compile it, too, but one text after the other
	})
}

// loadOr loads the image that the store has for a key. Where it has none, or the driver refuses the image, compile makes it,
// and the store gets it. No key: without the store.
func (c *Compiler) loadOr(key string, compile func() ([]byte, error)) (*code, error) {
	refused := false
	begin := time.Now()
	if c.store != nil && key != "" {
		if image, ok := c.store.Get(key); ok {
			m, err := c.on.LoadModule(image)
			if err == nil {
				return c.loaded(m, Stored, time.Since(begin)), nil
			}
			refused = true
		}
	}
	begin = time.Now()
	image, err := compile()
	if err != nil {
		return nil, err
	}
	m, err := c.on.LoadModule(image)
	if err != nil {
		return nil, err
	}
	kept := false
	defer func() {
		if !kept { // the store panicked
			_ = m.Unload()
		}
	}()
	if refused {
		c.counts.refused.Add(1)
	}
	made := c.loaded(m, Compiled, time.Since(begin))
	if c.store != nil && key != "" {
		c.store.Put(key, image)
	}
	kept = true
	return made, nil
}

// loaded counts loaded code.
func (c *Compiler) loaded(m *cuda.Module, from Origin, took time.Duration) *code {
	if from == Stored {
		c.counts.stored.Add(1)
		c.counts.loadNanos.Add(int64(took))
	} else {
		c.counts.compiled.Add(1)
		c.counts.compileNanos.Add(int64(took))
	}
	return &code{m, from, took}
}

// Close ends a measurement, waits for the compilations that run, fails those that wait with ErrClosed, and unloads all kernels:
// their launches must have finished. Idempotent. Errors: the errors of cuda.Module.Unload; another call then tries again.
func (c *Compiler) Close() error {
	if c == nil || c.on == nil {
		return ErrNotOpen
	}
	c.mu.Lock()
	c.closed = true
	for _, j := range slices.Concat(c.queue, c.later) {
		j.refuse(ErrClosed)
	}
	c.queue, c.later = nil, nil
	c.mu.Unlock()
	c.tuner.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.working > 0 {
		c.idle.Wait()
	}
	var failed error
	for key, p := range c.modules {
		m, _, err := p.Future().Poll()
		if err == nil {
			err = m.module.Unload()
		}
		if err == nil {
			delete(c.modules, key)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// Stats may be called at any time. The counts are not of one instant.
func (c *Compiler) Stats() Stats {
	if c == nil {
		return Stats{}
	}
	n := &c.counts
	return Stats{
		Hits: n.hits.Load(), Misses: n.misses.Load(), Compiled: n.compiled.Load(), Stored: n.stored.Load(), Refused: n.refused.Load(),
		Failed: n.failed.Load(), CompileTime: time.Duration(n.compileNanos.Load()), LoadTime: time.Duration(n.loadNanos.Load()),
		Tabled: n.tabled.Load(), StaleRows: n.stale.Load(), Tuned: n.tuned.Load(), Disqualified: n.disqualified.Load(),
		TuningFailed: n.unfinished.Load(), TuningDeferred: n.deferred.Load(), TuningTime: time.Duration(n.tuningNanos.Load()),
	}
}

// Tuned has the rows that this compiler has measured, for a later process: see WithTables.
func (c *Compiler) Tuned() *tune.Table {
	if c == nil || c.tuner == nil {
		return nil
	}
	c.tuner.mu.Lock()
	defer c.tuner.mu.Unlock()
	own := &tune.Table{}
	own.Merge(&c.tuner.found)
	return own
}
