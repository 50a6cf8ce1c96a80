package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/monitor/gpus"
)

// waitCmd implements the command wait.
type waitCmd struct {
	deviceFlags
	Free     sizeFlag      `required:"" placeholder:"SIZE" help:"The free memory to wait for, as 8GiB."`
	Device   *int          `placeholder:"N" help:"CUDA's number of the device (default $$VRAM_DEVICE, or 0)."`
	Timeout  time.Duration `placeholder:"5m" help:"How long to wait before the exit code is 3 (default: until interrupted)."`
	Interval time.Duration `default:"1s" placeholder:"1s" help:"Between two looks (default 1s)."`
}

// minLook is the shortest time between two looks. Not shorter: each takes a lock of the driver.
const minLook = 10 * time.Millisecond

// Validate reports invalid flags.
func (c *waitCmd) Validate() error {
	switch {
	case c.Free <= 0:
		return errors.New("--free 0: want more than 0")
	case c.Device != nil && *c.Device < 0:
		return fmt.Errorf("--device %d: want 0 or more", *c.Device)
	case c.Timeout < 0:
		return fmt.Errorf("--timeout %v: want 0 or more", c.Timeout)
	}
	return nil
}

// lateError says that the memory was not free in time.
type lateError struct {
	timeout              time.Duration
	ordinal              int
	freeBytes, wantBytes int64
}

// Error has the last figure.
func (e *lateError) Error() string {
	return fmt.Sprintf("device %d has %s free after %s, want %s", e.ordinal, units.Bytes(e.freeBytes), units.Duration(e.timeout), units.AtLeast(e.wantBytes))
}

// Run waits.
func (c *waitCmd) Run(p *program) error {
	cfg, newDriver, err := c.device(p)
	if err != nil {
		return err
	}
	if c.Device != nil {
		cfg.Ordinal = *c.Device
	}
	return c.wait(p, waiting{driver: newDriver(), ordinal: cfg.Ordinal, reader: p.reader})
}

// wait waits, and prints the figures.
func (c *waitCmd) wait(p *program, w waiting) error {
	ctx, cancel := p.ctx, context.CancelFunc(func() {})
	if c.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, c.Timeout)
	}
	defer cancel()
	free, err := w.until(ctx, int64(c.Free), max(c.Interval, minLook), func(free int64) {
		_, _ = fmt.Fprintf(p.stderr, "device %d has %s free, waiting for %s\n", w.ordinal, units.Bytes(free), units.AtLeast(int64(c.Free)))
	})
	switch {
	case err == nil:
		_, err = fmt.Fprintf(p.stdout, "device %d has %s free\n", w.ordinal, units.Bytes(free))
		return err
	case errors.Is(err, context.DeadlineExceeded) && p.ctx.Err() == nil:
		return &lateError{c.Timeout, w.ordinal, free, int64(c.Free)}
	}
	return err
}

// waiting looks at the free memory of a device.
type waiting struct {
	driver  cudadrv.Driver
	ordinal int
	reader  *gpus.Reader
}

// until looks until so many bytes are free, and returns the last figure. It calls begun if the first look finds too little. Errors:
// the driver's, ctx's, and one for more than the device has.
func (w *waiting) until(ctx context.Context, bytes int64, interval time.Duration, begun func(free int64)) (free int64, err error) {
	for first := true; ; first = false {
		now, total, err := w.look(ctx)
		if err != nil {
			return free, err
		}
		free = now
		switch {
		case free >= bytes:
			return free, nil
		case total > 0 && bytes > total:
			return free, fmt.Errorf("device %d has %s in all, less than %s", w.ordinal, units.Bytes(total), units.AtLeast(bytes))
		}
		if first {
			begun(free)
		}
		if !sleep(ctx, interval) {
			return free, ctx.Err()
		}
	}
}

// look returns the free and the whole memory: by NVML, which takes no memory of the GPU, or else by the driver, whose context takes
// some. A total of 0 is not known.
func (w *waiting) look(ctx context.Context) (free, total int64, err error) {
	if d, ok := w.driver.(cudadrv.Describer); ok {
		info, err := d.Describe(w.ordinal)
		if err != nil {
			return 0, 0, err
		}
		devices, err := w.reader.Devices(ctx)
		if ctx.Err() != nil {
			return 0, 0, ctx.Err()
		}
		// An instance of MIG has another UUID than its GPU, and only the driver knows its memory.
		if of, found := gpus.Find(devices, info); err == nil && found && of.MemoryKnown && of.UUID == info.UUID.String() {
			return of.FreeBytes, of.TotalBytes, nil
		}
	}
	dev, err := w.driver.Open(w.ordinal)
	if errors.Is(err, cudadrv.OutOfMemory) { // too little even for a context
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	free, total, err = dev.MemGetInfo()
	return free, total, errors.Join(err, dev.Close())
}
