package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/go-vram/vram/monitor/page"
)

// pseudoTerminal is a terminal whose keys and screen the test controls.
type pseudoTerminal struct {
	*testing.T
	keys   *os.File // and the screen
	device *os.File // the program's stdin and stdout
	parts  chan []byte
	before unix.Termios
}

func newPseudoTerminal(t *testing.T) *pseudoTerminal {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = keys.Close() })
	number, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0))
	device, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = device.Close() })
	require.NoError(t, unix.IoctlSetWinsize(int(keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 100}))
	p := &pseudoTerminal{T: t, keys: keys, device: device, parts: make(chan []byte, 1000)}
	go func() { // the read ends with the test's terminal
		for {
			part := make([]byte, 4096)
			n, err := keys.Read(part)
			if err != nil {
				return
			}
			p.parts <- part[:n]
		}
	}()
	p.before = p.mode()
	return p
}

func (p *pseudoTerminal) mode() unix.Termios {
	p.Helper()
	mode, err := unix.IoctlGetTermios(int(p.device.Fd()), unix.TCGETS)
	require.NoError(p, err)
	return *mode
}

// screenLimit bounds the wait for a text on the screen: seconds on a busy machine.
const screenLimit = time.Minute

// until reads the screen up to a text.
func (p *pseudoTerminal) until(text string) {
	p.Helper()
	var screen bytes.Buffer
	late := time.After(screenLimit)
	for !strings.Contains(screen.String(), text) {
		select {
		case part := <-p.parts:
			screen.Write(part)
		case <-late:
			require.Fail(p, "the screen has no "+strconv.Quote(text), "%q", screen.String())
		}
	}
}

// q, Ctrl-C and signals end the command without an error, and the terminal is as it was. The program is a process of its own.
func TestTopQuits(t *testing.T) {
	for name, quit := range map[string]func(p *pseudoTerminal, process *os.Process) error{
		"q":      func(p *pseudoTerminal, _ *os.Process) error { _, err := p.keys.WriteString("xq"); return err },
		"ctrl-c": func(p *pseudoTerminal, _ *os.Process) error { _, err := p.keys.WriteString("\x03"); return err },
		"term":   func(_ *pseudoTerminal, process *os.Process) error { return process.Signal(syscall.SIGTERM) },
		"hangup": func(_ *pseudoTerminal, process *os.Process) error { return process.Signal(syscall.SIGHUP) },
		"quit":   func(_ *pseudoTerminal, process *os.Process) error { return process.Signal(syscall.SIGQUIT) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPseudoTerminal(t)
			command := exec.CommandContext(t.Context(), os.Args[0], "top", "-driver", "sim", "-interval", "50ms") //nolint:gosec // this binary
			command.Env = append(os.Environ(), asProgram+"=1")
			var errs bytes.Buffer
			command.Stdin, command.Stdout, command.Stderr = p.device, p.device, &errs
			require.NoError(t, command.Start())
			p.until("q quits")
			assert.Zero(t, p.mode().Lflag&(unix.ICANON|unix.ECHO), "keys arrive at once, and are not shown")
			require.NoError(t, quit(p, command.Process))
			p.until(showCursor)
			require.NoError(t, command.Wait(), errs.String())
			assert.Equal(t, p.before, p.mode())
		})
	}
}

// failing is a source that panics, or fails.
type failing struct{ panics bool }

func (f failing) sample(context.Context) (*page.Sample, error) {
	if f.panics {
		panic("a defect")
	}
	return nil, errors.New("no sample")
}

func (failing) memoryMap(context.Context, int) (*page.Map, error) { return &page.Map{}, nil }

// A panic, an error, and a panic of the load restore the terminal, too.
func TestTopGivesTheTerminalBack(t *testing.T) {
	p := newPseudoTerminal(t)
	with := &program{ctx: t.Context(), stdin: p.device, stdout: p.device, stderr: io.Discard}
	assert.PanicsWithValue(t, "a defect", func() { _ = (&topCmd{}).show(t.Context(), with, failing{panics: true}) })
	assert.Equal(t, p.before, p.mode())
	require.ErrorContains(t, (&topCmd{}).show(t.Context(), with, failing{}), "no sample")
	assert.Equal(t, p.before, p.mode())

	w := &workload{play: func(context.Context) error { panic("a defect of a part") }}
	raw := false
	assert.Panics(t, func() {
		_ = w.run(t.Context(), func(ctx context.Context) error {
			ctx, k, err := keysOf(ctx, p.device)
			require.NoError(t, err)
			defer k.restore()
			raw = p.mode() != p.before
			<-ctx.Done()
			return nil
		})
	})
	assert.True(t, raw)
	assert.Equal(t, p.before, p.mode())
	for range 3 { // a line ends one of the reads
		_, err := p.keys.WriteString("q\n")
		require.NoError(t, err)
	}
}

// Without a terminal there are no keys.
func TestKeysNeedATerminal(t *testing.T) {
	t.Parallel()
	for _, stdin := range []io.Reader{nil, strings.NewReader("q")} {
		ctx, k, err := keysOf(t.Context(), stdin)
		require.NoError(t, err)
		assert.False(t, k.read)
		require.NoError(t, ctx.Err())
		k.restore()
	}
	ended := make(chan struct{})
	reader, writer := io.Pipe()
	go func() { awaitQuit(reader); close(ended) }()
	written := make(chan error, 1)
	go func() {
		_, err := writer.Write([]byte("more"))
		_, again := writer.Write([]byte{'x'}) // is read after the first was looked at
		written <- errors.Join(err, again)
	}()
	select {
	case err := <-written:
		require.NoError(t, err)
	case <-ended:
		require.Fail(t, "any key quits")
	}
	require.NoError(t, writer.Close())
	<-ended
}
