package cuda

import (
	"errors"
	"io"

	"github.com/go-vram/vram"
)

// Open opens a device as vram.Open does, with a stream and its context: the shortest way to a launch.
//
//	c, err := cuda.Open(vram.Config{}) // the first GPU
//	f, err := c.Kernel(ptx, "scale")
//	x, err := cuda.From(c, values)
//	err = c.Launch(f, cuda.Cover(len(values)), cuda.InOut(x), cuda.Value(float32(2)))
//	values, err = cuda.Load[float32](c, cuda.Whole(x), len(values))
//
// Close gives all of it back. Further streams, with their contexts, come from Context.NewStream; they end with the device.
// vram.ConfigFromEnv reads the configuration from variables, such as VRAM_DRIVER. A Queue makes the same calls with one error.
// It returns the errors of vram.Open and vram.Device.NewStream; then nothing stays open.
func Open(config vram.Config) (c *Context, err error) {
	dev, err := vram.Open(config)
	if err != nil {
		return nil, err
	}
	defer func() {
		if c == nil { // also after a panic of the driver
			err = errors.Join(err, dev.Close())
		}
	}()
	s, err := dev.NewStream()
	if err != nil {
		return nil, err
	}
	made, err := NewContext(s)
	if err != nil {
		return nil, err
	}
	made.owned, made.of = dev, dev
	return made, nil
}

// Device returns the device of a context that Open made, or NewStream of such a one, also after Close; nil for other contexts.
func (c *Context) Device() *vram.Device {
	if !c.made() {
		return nil
	}
	return c.of
}

// moduleText is the key of a module of Kernel, for Lazily.
type moduleText string

// loaded is a module of Kernel.
type loaded struct {
	*Module
	c *Context
}

// Close waits for the context's work, and unloads the module. While a capture forbids to wait, the module stays.
func (l loaded) Close() (err error) {
	defer func() {
		if !errors.Is(err, ErrCapturing) {
			err = errors.Join(err, l.Unload()) // also after a panic of the driver
		}
	}()
	return l.c.work.Synchronize()
}

// Kernel returns a kernel of PTX text, or of another image that LoadModule takes. The first call with a text loads it. The
// module belongs to the context, whose Close unloads it: work of other contexts with the kernel must have finished by then. A
// program that makes new texts all the time uses LoadModule. It returns the errors of LoadModule and Module.Function.
func (c *Context) Kernel(image, name string) (*Function, error) {
	m, err := c.Lazily(moduleText(image), func() (io.Closer, error) {
		m, err := c.LoadModule([]byte(image))
		if err != nil {
			return nil, err
		}
		return loaded{m, c}, nil
	})
	if err != nil {
		return nil, err
	}
	return m.(loaded).Function(name) //nolint:forcetypeassert // no other value has the key
}
