package kernel

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/futures"
)

// Store keeps compiled code beyond the process. Both methods may be called on any goroutine. A failure is no error of a kernel: Get has
// nothing then.
type Store interface {
	// Get is the image that Put was given for the text of a kernel, on this kind of device with this driver.
	Get(text string) (image []byte, ok bool)
	// Put keeps the code that the driver has compiled.
	Put(text string, image []byte)
}

// Logger gets the events that are no errors of a call: variants that compute something else, and measurements that failed. *slog.Logger is
// a logger. Its method is called by Run, Tune, and on goroutines of the compiler.
type Logger interface {
	Warn(msg string, args ...any)
}

// Compiler has the compiled kernels of one device. NewCompiler makes one, Close unloads them.
type Compiler struct {
	on       *cuda.Context
	store    Store       // or nil
	log      Logger      // or nil
	prepared atomic.Bool // nothing is compiled that is not asked for: see Prepared
	threads  int
	tuner    *tuner
	counts   counts

	mu      sync.Mutex                         // of cold calls: a warm Run never takes it
	modules map[string]*futures.Promise[*code] // by key: the text, or the source with its options
	queue   []job                              // those that wait for a worker
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

// WithStore has a compiler look for code in a store before it compiles, and put there the code that it has compiled.
func WithStore(s Store) Option { return func(c *Compiler) { c.store = s } }

// Prepared has Run compile nothing: it takes variants that Prepare or WarmUp have compiled, and those that the store has, and refuses others
// with ErrNotPrepared. So does Function.
func Prepared() Option { return func(c *Compiler) { c.prepared.Store(true) } }

// Freeze is the option Prepared from now on: for a program that runs its work once, which compiles its kernels, and wants no compilation
// after that. Compilations that were begun go on.
func (c *Compiler) Freeze() {
	if c != nil {
		c.prepared.Store(true)
	}
}

// Threads is how many texts are compiled at a time, at least one. The default is four, or GOMAXPROCS where that is less.
func Threads(n int) Option { return func(c *Compiler) { c.threads = max(n, 1) } }

// WithLog has a compiler log variants that compute something else, and measurements that fail.
func WithLog(l Logger) Option { return func(c *Compiler) { c.log = l } }

// maxThreads is the default of Threads: a program that starts has other work beside.
const maxThreads = 4

// NewCompiler makes a compiler for the device of a context, which must stay open until Close. Errors: ErrNotOpen, and those of WithTuning.
func NewCompiler(on *cuda.Context, with ...Option) (*Compiler, error) {
	if on.Stream() == nil {
		return nil, cuda.ErrNotOpen
	}
	c := &Compiler{on: on, threads: min(maxThreads, runtime.GOMAXPROCS(0)), modules: map[string]*futures.Promise[*code]{}}
	c.idle = sync.NewCond(&c.mu)
	c.tuner = newTuner(c)
	for _, option := range with {
		option(c)
	}
	if err := c.tuner.check(); err != nil {
		return nil, err
	}
	return c, nil
}

// job is a compilation that waits.
type job struct {
	key  string
	load func() (*code, error)
}

// module is the loaded code of a text, which the kernel of that name has made; "" for a caller's. known: it is loaded, or will be.
func (c *Compiler) module(kernel, text string) (loaded futures.Future[*code], known bool) {
	return c.once(text, func() (*code, error) {
		m, err := c.load(text)
		if err != nil {
			return nil, refusedText(kernel, text, err)
		}
		return m, nil
	})
}

// allowed is module for those who must not compile where that is forbidden. Errors: ErrNotPrepared.
func (c *Compiler) allowed(kernel, text string) futures.Future[*code] {
	if !c.prepared.Load() {
		loaded, _ := c.module(kernel, text)
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

// once is a module that is loaded once, by a worker.
func (c *Compiler) once(key string, load func() (*code, error)) (loaded futures.Future[*code], known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.modules == nil {
		return futures.Failed[*code](ErrNotOpen), false
	}
	if c.closed {
		return futures.Failed[*code](ErrClosed), false
	}
	if p, ok := c.modules[key]; ok {
		c.counts.hits.Add(1)
		return p.Future(), true
	}
	c.counts.misses.Add(1)
	p := futures.NewPromise[*code](nil)
	c.modules[key] = p
	c.queue = append(c.queue, job{key, load})
	if c.working < c.threads {
		c.working++
		go c.work()
	}
	return p.Future(), false
}

// work compiles until nothing waits.
func (c *Compiler) work() {
	for {
		c.mu.Lock()
		if len(c.queue) == 0 {
			c.working--
			c.idle.Broadcast()
			c.mu.Unlock()
			return
		}
		next := c.queue[0]
		c.queue = c.queue[1:]
		p := c.modules[next.key]
		c.mu.Unlock()
		m, err := next.load()
		if err != nil {
			if !errors.Is(err, ErrNotPrepared) {
				c.counts.failed.Add(1)
			}
			c.mu.Lock()
			delete(c.modules, next.key) // the next call tries again
			c.mu.Unlock()
		}
		p.Complete(m, err)
	}
}

// load compiles a text, or takes it from the store.
func (c *Compiler) load(text string) (*code, error) {
	return c.loadOr(text, func() ([]byte, error) {
		return c.on.Link([]byte(text)) // LoadModule would compile it, too, but one text after the other
	})
}

// loadOr loads the image that the store has for a key. Where it has none, or the driver refuses the image, compile makes it, and the store
// gets it. No key: without the store.
func (c *Compiler) loadOr(key string, compile func() ([]byte, error)) (*code, error) {
	refused := false
	begin := time.Now()
	if c.store != nil && key != "" {
		if image, ok := c.store.Get(key); ok {
			m, err := c.on.LoadModule(image)
			if err == nil {
				return c.counts.loaded(m, Stored, time.Since(begin)), nil
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
	if refused {
		c.counts.refused.Add(1)
	}
	made := c.counts.loaded(m, Compiled, time.Since(begin))
	if c.store != nil && key != "" {
		c.store.Put(key, image)
	}
	return made, nil
}

// Close ends a measurement, waits for the compilations that run, fails those that wait with ErrClosed, and unloads all kernels: their launches
// must have finished. Idempotent. Errors: those of cuda.Module.Unload, with which another call tries again.
func (c *Compiler) Close() error {
	if c == nil || c.on == nil {
		return ErrNotOpen
	}
	c.mu.Lock()
	c.closed = true
	for _, j := range c.queue {
		c.modules[j.key].Complete(nil, ErrClosed)
		delete(c.modules, j.key)
	}
	c.queue = nil
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
