// Command share starts a second process, shares GPU memory with it, has it fill the memory, and reads the bytes. The bytes
// never leave the GPU in between; an event of the driver orders the read after the fill.
//
// It needs Linux and an NVIDIA GPU whose driver exports memory as a file descriptor. Elsewhere it prints the missing
// requirement.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/share"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
	"github.com/go-vram/vram/examples/internal/command"
)

const (
	words = 16 << 20
	bytes = 4 * words
	value = 42
)

func main() { os.Exit(command.Interruptible(run)) }

// run executes either process and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("share", flag.ContinueOnError)
	flags.SetOutput(stderr)
	library := flags.String("library", "", "the driver's library; empty for that of this machine")
	second := flags.Bool("second", false, "be the second process, whose descriptor 3 is the connection")
	err := flags.Parse(args)
	switch {
	case err != nil:
		err = &command.UsageError{Err: err}
	case *second:
		err = fill(ctx, *library, stdout)
	default:
		err = read(ctx, *library, stdout, stderr)
	}
	if !*second && (errors.Is(err, cudadrv.ErrNoDriver) || errors.Is(err, cudadrv.ErrNoDevice) || errors.Is(err, cudadrv.NotSupported)) {
		_, _ = fmt.Fprintf(stdout, "share needs Linux, and an NVIDIA GPU whose driver gives memory a file descriptor: %v\n", err)
		return command.OK
	}
	return command.Exit(ctx, "share", err, stderr)
}

// read runs the first process: it allocates the memory, and reads the bytes that the second one has written.
func read(ctx context.Context, library string, stdout, stderr io.Writer) (err error) {
	gpu, err := open(library)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gpu.close()) }()
	m, err := share.New(gpu.c, bytes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()

	conn, wait, err := start(ctx, library, stdout, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, wait()) }()
	if err := m.Export(conn); err != nil {
		return err
	}
	_, way := m.Ways()
	_, _ = fmt.Fprintf(stdout, "first process: %d MiB on %s are shared, with fences by %v\n", bytes>>20, gpu.dev.Info().Name, way)
	if err := m.Await(ctx, gpu.c); err != nil {
		return err
	}
	if err := m.CopyTo(gpu.c, 0, cuda.Whole(gpu.x)); err != nil {
		return err
	}
	got := make([]uint32, words)
	if err := cuda.CopyOut(gpu.c, got, gpu.x); err != nil {
		return err
	}
	for i, v := range got {
		if v != value {
			return fmt.Errorf("word %d is %d, not %d", i, v, value)
		}
	}
	_, _ = fmt.Fprintf(stdout, "first process: all %d words are %d\n", words, value)
	return nil
}

// fill runs the second process: it receives the memory, and fills it.
func fill(_ context.Context, library string, stdout io.Writer) (err error) {
	gpu, err := open(library)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gpu.close()) }()
	conn, err := connection(os.NewFile(3, "connection"))
	if err != nil {
		return err
	}
	m, err := share.Import(gpu.c, conn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }() // waits for the work, so that the fence outlives this process
	if err := gpu.c.Fill32(cuda.Whole(gpu.x), value); err != nil {
		return err
	}
	if err := m.CopyFrom(gpu.c, 0, cuda.Whole(gpu.x)); err != nil {
		return err
	}
	if err := m.Publish(gpu.c); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(stdout, "second process: the fill is submitted, and published")
	return nil
}

// device has a process's objects of the GPU.
type device struct {
	dev *vram.Device
	c   *cuda.Context
	x   vram.Buffer
}

func open(library string) (d *device, err error) {
	d = &device{}
	if d.dev, err = vram.Open(vram.Config{Driver: dynamic.New(dynamic.Config{Library: library})}); err != nil {
		return nil, err
	}
	s, err := d.dev.NewStream()
	if err == nil {
		d.c, err = cuda.NewContext(s)
	}
	if err == nil {
		d.x, err = d.c.Alloc(bytes)
	}
	if err != nil {
		return nil, errors.Join(err, d.dev.Close())
	}
	return d, nil
}

func (d *device) close() error { return errors.Join(d.x.Free(), d.c.Close(), d.dev.Close()) }

// connection returns the connection of a file.
func connection(f *os.File) (*net.UnixConn, error) {
	conn, err := net.FileConn(f)
	err = errors.Join(err, f.Close())
	if err != nil {
		return nil, err
	}
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("the connection is none of a unix socket"), conn.Close())
	}
	return unix, nil
}

// start starts this program again as the second process, at the other end of a connection.
func start(ctx context.Context, library string, stdout, stderr io.Writer) (conn *net.UnixConn, wait func() error, err error) {
	mine, theirs, err := socketPair()
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, theirs.Close()) }()
	if conn, err = connection(mine); err != nil {
		return nil, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	c := exec.CommandContext(ctx, self, "-second", "-library", library) //nolint:gosec // this program
	c.Stdout, c.Stderr, c.ExtraFiles = stdout, stderr, []*os.File{theirs}
	if err := c.Start(); err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return conn, c.Wait, nil
}
