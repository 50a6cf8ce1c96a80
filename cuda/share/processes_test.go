//go:build linux && (amd64 || arm64)

package share

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
)

// Tests with a second process, on the fake library or with -tags gpu on the driver of this machine. Memory that both
// have mapped has the same bytes.

func openFirst(t *testing.T, library string) *side {
	t.Helper()
	return newSide(t, dynamic.New(dynamic.Config{Library: library}))
}

func TestBytesGoBetweenProcesses(t *testing.T) {
	library := libraryUnderTest(t)
	s := openFirst(t, library)
	p, conn := start(t, library, "")
	before := descriptors(t)
	m := s.make()
	p.tell("import")
	require.NoError(t, m.Export(conn))
	p.says("ok")
	publish, await := m.Ways()
	assert.Equal(t, [2]Way{ByEvent, ByEvent}, [2]Way{publish, await})
	p.tell("ways")
	p.says("ok event event")
	require.ErrorIs(t, m.Export(nil), errNoConnection)

	s.fill(m, 'a')
	require.NoError(t, m.Publish(s.c))
	p.does("await")
	p.tell("read")
	p.says("ok aa")
	p.does("fill b", "publish")
	require.NoError(t, m.Await(t.Context(), s.c))
	s.holds(m, 'b')

	// The peer's last fence counts, and then it has closed: the memory is there until this process closes, too.
	p.does("fill c", "publish", "close", "end")
	require.NoError(t, m.Await(t.Context(), s.c))
	s.holds(m, 'c')
	var gone *PeerError
	require.ErrorAs(t, m.Await(t.Context(), s.c), &gone)
	require.ErrorIs(t, gone, ErrPeerClosed)
	require.ErrorIs(t, m.Publish(s.c), ErrPeerClosed)
	s.fill(m, 'd')
	s.holds(m, 'd')
	assert.Equal(t, Stats{Published: 1, Awaited: 2}, m.Stats())
	require.NoError(t, m.Close())
	for kind, count := range descriptors(t) {
		assert.LessOrEqual(t, count, before[kind], kind)
	}
}

// The process that made the memory dies: the other one has it, with its bytes.
func TestMemoryOutlivesItsMaker(t *testing.T) {
	library := libraryUnderTest(t)
	s := openFirst(t, library)
	p, conn := start(t, library, "")
	p.does("new", "fill x")
	p.tell("export")
	m, err := Import(s.c, conn)
	require.NoError(t, err)
	p.says("ok")
	p.does("publish")
	require.NoError(t, m.Await(t.Context(), s.c))
	s.holds(m, 'x')
	require.Equal(t, bytes, m.Bytes())

	awaited := inBackground(func() error { return m.Await(background(), s.c) })
	p.kill()
	err = <-awaited
	require.ErrorIs(t, err, ErrPeerDied)
	var gone *PeerError
	require.ErrorAs(t, err, &gone)
	assert.Equal(t, "await", gone.Op)
	require.ErrorIs(t, m.Publish(s.c), ErrPeerDied)
	s.holds(m, 'x')
	s.fill(m, 'y')
	s.holds(m, 'y')
	require.NoError(t, m.Close())
	require.ErrorIs(t, m.CopyTo(s.c, 0, cuda.Whole(s.x)), ErrClosed)
}

// A peer that imports is killed at each step: the exporter has its memory, can try again, and leaks nothing.
func TestAnImporterDies(t *testing.T) {
	const imports, opens = "cuMemImportFromShareableHandle", "cuIpcOpenEventHandle"
	for name, step := range map[string]struct {
		at     string // where it is when it dies
		killAt string // where this process is then
	}{
		"before it reads the header": {},
		"after the header":           {at: imports},
		"before its answer":          {at: opens},
		"after its answer":           {killAt: opens},
	} {
		t.Run(name, func(t *testing.T) {
			library := libraryUnderTest(t)
			s := openFirst(t, library)
			m := s.make()
			s.fill(m, 'k')
			before := descriptors(t)
			p, conn := start(t, library, step.at)
			if step.killAt != "" {
				s.faults.SetBefore(func(function string) {
					if function == step.killAt {
						p.kill()
					}
				})
			}
			exported := inBackground(func() error { return m.Export(conn) })
			if step.at != "" || step.killAt != "" {
				p.tell("import")
			}
			if step.at != "" {
				p.says("at " + step.at)
			}
			if step.killAt == "" {
				p.kill()
			}
			err := <-exported
			require.ErrorIs(t, err, ErrPeerDied)
			var gone *PeerError
			require.ErrorAs(t, err, &gone)
			assert.Equal(t, "export", gone.Op)
			p.kill()
			s.faults.SetBefore(nil)
			for kind, count := range descriptors(t) {
				assert.LessOrEqual(t, count, before[kind], kind)
			}
			require.ErrorIs(t, m.Publish(s.c), ErrNotLinked)
			s.holds(m, 'k')

			// Another process takes it.
			again, conn := start(t, library, "")
			again.tell("import")
			require.NoError(t, m.Export(conn))
			again.says("ok")
			again.tell("read")
			again.says("ok kk")
			again.does("close", "end")
			require.NoError(t, m.Close())
		})
	}
}

// A peer that exports is killed at each step: the importer is left with nothing.
func TestAnExporterDies(t *testing.T) {
	const imports, exports, opens = "cuMemImportFromShareableHandle", "cuMemExportToShareableHandle", "cuIpcOpenEventHandle"
	for name, step := range map[string]struct{ at, killAt string }{
		"before its header":         {at: exports},
		"after its header":          {killAt: imports},
		"after the answer":          {at: opens},
		"while its event is opened": {killAt: opens},
	} {
		t.Run(name, func(t *testing.T) {
			library := libraryUnderTest(t)
			s := openFirst(t, library)
			p, conn := start(t, library, step.at)
			before := descriptors(t)
			p.does("new")
			if step.killAt != "" {
				s.faults.SetBefore(func(function string) {
					if function == step.killAt {
						p.kill()
					}
				})
			}
			p.tell("export")
			imported := inBackground(func() error {
				_, err := Import(s.c, conn)
				return err
			})
			if step.at != "" {
				p.says("at " + step.at)
				p.kill()
			}
			err := <-imported
			require.ErrorIs(t, err, ErrPeerDied)
			var gone *PeerError
			require.ErrorAs(t, err, &gone)
			assert.Equal(t, "import", gone.Op)
			for kind, count := range descriptors(t) {
				assert.LessOrEqual(t, count, before[kind], kind)
			}
		})
	}
}

// A peer dies with fences that nobody has awaited: their work may not have finished.
func TestFencesOfADeadPeerAreLost(t *testing.T) {
	library := libraryUnderTest(t)
	s := openFirst(t, library)
	p, conn := start(t, library, "")
	p.does("new")
	p.tell("export")
	m, err := Import(s.c, conn)
	require.NoError(t, err)
	p.says("ok")
	p.does("fill f", "publish", "publish")
	p.kill()
	<-m.link.Load().ended
	require.ErrorIs(t, m.Await(t.Context(), s.c), ErrPeerDied)
	assert.Zero(t, m.Stats().Awaited)
	require.NoError(t, m.Close())
}

// Work waits for the event of a peer that is killed before the event is reached: on an H200 the work never runs. No call waits
// for it for ever: waits for the stream, the memory and the device end with an error, and the process ends. Both are processes
// that can be killed.
func TestWorkBehindTheEventOfADeadPeer(t *testing.T) {
	for name, lines := range map[string][]string{
		"the memory is closed first": {"close", "close", "drain", "end"},
		"the device is closed first": {"end", "close", "close"},
	} {
		t.Run(name, func(t *testing.T) { endAfterADeath(t, lines) })
	}
}

// endAfterADeath has a process end in that order after its peer has died: each step ends, and says why it could not do its
// part.
func endAfterADeath(t *testing.T, lines []string) {
	t.Helper()
	library := libraryUnderTest(t)
	a, b := connection(t)
	if !onGPU {
		t.Setenv("FAKECUDA_UNREACHED", "1")
		t.Setenv(patienceVariable, "50ms")
	}
	maker, user := startAt(t, a, library, ""), startAt(t, b, library, "")
	maker.does("new")
	maker.tell("export")
	user.does("import")
	maker.says("ok")
	if onGPU {
		maker.does("busy")
	}
	maker.does("publish")
	user.does("await", "fill u")
	maker.kill()
	killed := time.Now()
	answer := func(line string) string {
		t.Helper()
		user.tell(line)
		said := user.answers()
		t.Logf("%5.1f s after the death, %s: %s", time.Since(killed).Seconds(), line, said)
		return said
	}
	const stranded = "has work that waits for an event of a process that died"
	assert.Regexp(t, "deadline exceeded|"+stranded, answer("settle"), "the stream is given up after a while, which may be over")
	assert.Contains(t, answer("await"), "connection ended")
	for _, line := range lines {
		assert.Contains(t, answer(line), stranded)
	}
	user.tell("exit")
	assert.NoError(t, user.command.Wait())
	t.Logf("%5.1f s after the death, the process has ended", time.Since(killed).Seconds())
	user.waited = true
}

// A peer may send a descriptor of other memory than it says: the driver does not map it.
func TestAHandleOfAnotherSizeIsNotMapped(t *testing.T) {
	s := openFirst(t, libraryUnderTest(t))
	m := s.make()
	granule := s.dev.Info().GranularityBytes
	for _, granules := range []int64{1, 3} {
		a, b := connection(t)
		f, err := exportHandle(m.device.(cudadrv.ShareableMemory), m.pages.handle)
		require.NoError(t, err)
		offer := greeting{
			kind: kindOffer, bytes: granules * granule, roundedBytes: granules * granule, granularity: granule, gpu: s.dev.Info().UUID,
		}
		require.NoError(t, sendDescriptor(a, offer.encode(), f))
		require.NoError(t, f.Close())
		_, err = Import(s.c, b)
		var refused *cudadrv.CallError
		require.ErrorAs(t, err, &refused, "%d granules of 2", granules)
	}
}

// No program that is started later has the descriptor.
func TestExportedDescriptorsAreNotInherited(t *testing.T) {
	s := openFirst(t, libraryUnderTest(t))
	m := s.make()
	inherited := inheritable(t)
	shareable := m.device.(cudadrv.ShareableMemory)
	for _, d := range []cudadrv.ShareableMemory{shareable, inheriting{shareable}} {
		f, err := exportHandle(d, m.pages.handle)
		require.NoError(t, err)
		assert.Equal(t, inherited, inheritable(t))
		require.NoError(t, f.Close())
	}
}

// inheriting is memory whose descriptors other programs inherit, as CUDA does not say that they do not.
type inheriting struct{ cudadrv.ShareableMemory }

func (x inheriting) MemExportToShareableHandle(h cudadrv.Handle) (int, error) {
	fd, err := x.ShareableMemory.MemExportToShareableHandle(h)
	if err != nil {
		return 0, err
	}
	again, err := syscall.Dup(fd) // which inherits
	return again, errors.Join(err, syscall.Close(fd))
}
