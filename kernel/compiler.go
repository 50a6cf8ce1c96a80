package kernel

import (
	"errors"
	"sync"
	"sync/atomic"

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

// Compiler has the compiled kernels of one device. NewCompiler makes one, Close unloads them.
type Compiler struct {
	on       *cuda.Context
	store    Store // or nil
	prepared bool

	compiled, stored, refused atomic.Int64 // see Stats

	mu      sync.Mutex                                // of cold calls: a warm Run never takes it
	modules map[string]*futures.Promise[*cuda.Module] // by key: the text, or the source with its options
	queue   []job                                     // those that wait for the worker
	working bool                                      // the worker runs
	idle    *sync.Cond
	closed  bool
}

// Option changes a compiler.
type Option func(*Compiler)

// WithStore has a compiler look for code in a store before it compiles, and put there the code that it has compiled.
func WithStore(s Store) Option { return func(c *Compiler) { c.store = s } }

// Prepared has Run refuse variants that Prepare has not compiled.
func Prepared() Option { return func(c *Compiler) { c.prepared = true } }

// NewCompiler makes a compiler for the device of a context, which must stay open until Close. Errors: ErrNotOpen.
func NewCompiler(on *cuda.Context, with ...Option) (*Compiler, error) {
	if on.Stream() == nil {
		return nil, cuda.ErrNotOpen
	}
	c := &Compiler{on: on, modules: map[string]*futures.Promise[*cuda.Module]{}}
	c.idle = sync.NewCond(&c.mu)
	for _, option := range with {
		option(c)
	}
	return c, nil
}

// job is a compilation that waits.
type job struct {
	key  string
	load func() (*cuda.Module, error)
}

// module is the loaded code of a text.
func (c *Compiler) module(text string) futures.Future[*cuda.Module] {
	return c.once(text, func() (*cuda.Module, error) { return c.load(text) })
}

// once is a module that is loaded once, on the worker.
func (c *Compiler) once(key string, load func() (*cuda.Module, error)) futures.Future[*cuda.Module] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return futures.Failed[*cuda.Module](ErrClosed)
	}
	if p, ok := c.modules[key]; ok {
		return p.Future()
	}
	p := futures.NewPromise[*cuda.Module](nil)
	c.modules[key] = p
	c.queue = append(c.queue, job{key, load})
	if !c.working {
		c.working = true
		go c.work()
	}
	return p.Future()
}

// work compiles until nothing waits.
func (c *Compiler) work() {
	for {
		c.mu.Lock()
		if len(c.queue) == 0 {
			c.working = false
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
			c.mu.Lock()
			delete(c.modules, next.key) // the next call tries again
			c.mu.Unlock()
		}
		p.Complete(m, err)
	}
}

// load compiles a text, or takes it from the store.
func (c *Compiler) load(text string) (*cuda.Module, error) {
	return c.loadOr(text, func() ([]byte, error) {
		if c.store == nil {
			return []byte(text), nil // LoadModule compiles it
		}
		return c.on.Link([]byte(text))
	})
}

// loadOr loads the image that the store has for a key. Where it has none, or the driver refuses the image, compile makes it, and the store
// gets it. No key: without the store.
func (c *Compiler) loadOr(key string, compile func() ([]byte, error)) (*cuda.Module, error) {
	refused := false
	if c.store != nil && key != "" {
		if image, ok := c.store.Get(key); ok {
			m, err := c.on.LoadModule(image)
			if err == nil {
				c.stored.Add(1)
				return m, nil
			}
			refused = true
		}
	}
	image, err := compile()
	if err != nil {
		return nil, err
	}
	m, err := c.on.LoadModule(image)
	if err != nil {
		return nil, err
	}
	c.compiled.Add(1)
	if refused {
		c.refused.Add(1)
	}
	if c.store != nil && key != "" {
		c.store.Put(key, image)
	}
	return m, nil
}

// Stats are counts of a compiler's loaded texts and sources.
type Stats struct {
	Compiled int64 // that were compiled
	Stored   int64 // whose image came from the store
	Refused  int64 // of Compiled: the driver refused the store's image
}

// Stats may be called at any time. The counts are not of one instant.
func (c *Compiler) Stats() Stats {
	if c == nil {
		return Stats{}
	}
	return Stats{c.compiled.Load(), c.stored.Load(), c.refused.Load()}
}

// Close waits for the compilation that runs, fails those that wait with ErrClosed, and unloads all kernels: their launches must have finished.
// Idempotent. Errors: those of cuda.Module.Unload, with which another call tries again.
func (c *Compiler) Close() error {
	if c == nil {
		return ErrNotOpen
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, j := range c.queue {
		c.modules[j.key].Complete(nil, ErrClosed)
		delete(c.modules, j.key)
	}
	c.queue = nil
	for c.working {
		c.idle.Wait()
	}
	var failed error
	for key, p := range c.modules {
		m, _, err := p.Future().Poll()
		if err == nil {
			err = m.Unload()
		}
		if err == nil {
			delete(c.modules, key)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}
