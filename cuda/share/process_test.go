//go:build linux && (amd64 || arm64)

package share

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/internal/recoveredtest"
)

// Variables of the environment of a second process: the driver's library, and a function of the driver at which it
// stops.
const (
	libraryVariable = "VRAM_SHARE_TEST_LIBRARY"
	holdVariable    = "VRAM_SHARE_TEST_HOLD"
	roleVariable    = "VRAM_SHARE_TEST"

	// patienceVariable is for how long a process waits for events of a peer that died; by default as programs do.
	patienceVariable = "VRAM_SHARE_TEST_PATIENCE"
)

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) != "" {
		os.Exit(obey())
	}
	recoveredtest.Main(m, removeLibrary)
}

// obey is the second process: it executes the commands on its input, and answers each with a line.
func obey() int {
	input := bufio.NewScanner(os.Stdin)
	driver := fault.Wrap(dynamic.New(dynamic.Config{Library: os.Getenv(libraryVariable)}))
	if hold := os.Getenv(holdVariable); hold != "" {
		driver.SetBefore(func(function string) {
			if function == hold {
				fmt.Println("at", function)
				select {} // until it is killed
			}
		})
	}
	p := &servant{}
	err := p.open(driver)
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	fmt.Println("ready")
	for input.Scan() {
		word, argument, _ := strings.Cut(input.Text(), " ")
		if word == "exit" {
			break
		}
		answer, err := p.do(word, argument)
		if err != nil {
			fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", "; "))
			continue
		}
		fmt.Println("ok" + answer)
	}
	return 0
}

// servant is the state of the second process.
type servant struct {
	conn *net.UnixConn
	dev  *vram.Device
	c    *cuda.Context
	x    cuda.Buffer
	m    *Memory
}

func (p *servant) open(driver cudadrv.Driver) (err error) {
	f := os.NewFile(3, "socket")
	conn, err := net.FileConn(f)
	if err != nil {
		return err
	}
	p.conn = conn.(*net.UnixConn)
	if p.dev, err = vram.Open(vram.Config{Driver: driver}); err != nil {
		return err
	}
	s, err := p.dev.NewStream()
	if err != nil {
		return err
	}
	if p.c, err = cuda.NewContext(s); err != nil {
		return err
	}
	p.x, err = p.c.Alloc(bytes)
	return errors.Join(err, f.Close())
}

func (p *servant) do(word, argument string) (answer string, err error) {
	switch word {
	case "new":
		p.m, err = New(p.c, bytes)
	case "export":
		err = p.m.Export(p.conn)
	case "import":
		if p.m, err = Import(p.c, p.conn); err == nil {
			err = p.hurry()
		}
	case "fill":
		if err = p.c.Fill8(cuda.Whole(p.x), argument[0]); err == nil {
			err = p.m.CopyFrom(p.c, 0, cuda.Whole(p.x))
		}
	case "read":
		var got [2]byte
		got, err = read(p.c, p.m, p.x)
		answer = " " + string(got[:])
	case "publish":
		err = p.m.Publish(p.c)
	case "await":
		err = p.m.Await(context.Background(), p.c)
	case "busy": // for some tenths of a second, on a GPU
		var x cuda.Buffer
		x, err = p.c.Alloc(1 << 30)
		for range 1000 {
			err = errors.Join(err, p.c.Fill8(cuda.Whole(x), 1))
		}
		err = errors.Join(err, x.Free())
	case "settle":
		ctx, cancel := context.WithTimeout(context.Background(), p.settleTime())
		err = p.c.Synchronize(ctx)
		cancel()
	case "drain":
		err = p.c.Synchronize(context.Background())
	case "ways":
		publish, await := p.m.Ways()
		answer = fmt.Sprint(" ", publish, " ", await)
	case "close":
		err = p.m.Close()
	case "end":
		err = errors.Join(p.x.Free(), p.c.Close(), p.dev.Close())
	default:
		err = errors.New("no such word")
	}
	return answer, err
}

// hurry sets the patience that the process is told, if it is told any.
func (p *servant) hurry() error {
	text := os.Getenv(patienceVariable)
	if text == "" {
		return nil
	}
	patience, err := time.ParseDuration(text)
	p.m.link.Load().patience.Store(int64(patience))
	return err
}

// settleTime is long enough for an expected event, and not longer than the patience.
func (p *servant) settleTime() time.Duration {
	return time.Duration(p.m.link.Load().patience.Load()) / 2
}

// process is a second process.
type process struct {
	*testing.T
	command *exec.Cmd
	input   io.Writer
	output  *bufio.Scanner
	waited  bool
}

// start starts a second process, which is killed at the end of the test at the latest.
func start(t *testing.T, library, hold string) (p *process, conn *net.UnixConn) {
	t.Helper()
	conn, theirs := connection(t)
	return startAt(t, theirs, library, hold), conn
}

// startAt is start with the process's end of a connection.
func startAt(t *testing.T, theirs *net.UnixConn, library, hold string) (p *process) {
	t.Helper()
	f, err := theirs.File()
	require.NoError(t, err)
	require.NoError(t, theirs.Close())
	p = &process{T: t, command: exec.Command(os.Args[0])} //nolint:gosec // this program
	p.command.Env = append(os.Environ(), roleVariable+"=1", libraryVariable+"="+library, holdVariable+"="+hold)
	p.command.ExtraFiles = []*os.File{f}
	p.command.Stderr = os.Stderr
	in, err := p.command.StdinPipe()
	require.NoError(t, err)
	p.input = in
	out, err := p.command.StdoutPipe()
	require.NoError(t, err)
	p.output = bufio.NewScanner(out)
	require.NoError(t, p.command.Start())
	t.Cleanup(p.kill)
	require.NoError(t, f.Close())
	p.says("ready")
	return p
}

// tell sends a line.
func (p *process) tell(line string) {
	p.Helper()
	_, err := fmt.Fprintln(p.input, line)
	require.NoError(p, err)
}

// says waits for a line.
func (p *process) says(line string) {
	p.Helper()
	require.True(p, p.output.Scan(), "the process has ended")
	require.Equal(p, line, p.output.Text())
}

// answers waits for a line, and fails the test where none comes for long.
func (p *process) answers() string {
	p.Helper()
	lines := make(chan string, 1)
	go func() {
		p.output.Scan()
		lines <- p.output.Text()
	}()
	select {
	case line := <-lines:
		return line
	case <-time.After(time.Minute):
		p.kill()
		<-lines
		require.FailNow(p, "no answer in a minute: the process was killed")
		return ""
	}
}

// does has the process do something, and wants it to succeed.
func (p *process) does(lines ...string) {
	p.Helper()
	for _, line := range lines {
		p.tell(line)
		p.says("ok")
	}
}

// kill ends the process with SIGKILL, and waits until it has.
func (p *process) kill() {
	if p.waited {
		return
	}
	p.waited = true
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}
