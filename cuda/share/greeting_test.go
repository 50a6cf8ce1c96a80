//go:build linux && (amd64 || arm64) && !gpu

package share

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// offer is a right one of a device.
func offerOf(s *side) greeting {
	info := s.dev.Info()
	return greeting{
		kind: kindOffer, bytes: bytes, roundedBytes: 2 * info.GranularityBytes, granularity: info.GranularityBytes, gpu: info.UUID,
	}
}

// files are descriptors of nothing in particular.
func files(t *testing.T, count int) (fds []int) {
	t.Helper()
	for range count {
		f, err := os.CreateTemp(t.TempDir(), "")
		require.NoError(t, err)
		t.Cleanup(func() { _ = f.Close() })
		fds = append(fds, int(f.Fd()))
	}
	return fds
}

// refusal reads the other side's refusal; 0: the other side closed the connection.
func refusal(t *testing.T, conn *net.UnixConn) Refusal {
	t.Helper()
	message := make([]byte, greetingBytes)
	if _, err := io.ReadFull(conn, message); err != nil {
		return 0
	}
	_, err := decode(message, kindAnswer)
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	return refused.Reason
}

// Offers are checked before the driver maps them. The peer gets the reason, and no descriptor stays open.
func TestOffersAreChecked(t *testing.T) {
	f := newFake(t)
	s := newSide(t, f.driver())
	info := s.dev.Info()
	before := f.memory()
	for name, wrong := range map[string]struct {
		change      func(*greeting)
		raw         func([]byte) []byte
		descriptors int
		want        any // the type of the error
		reason      Refusal
	}{
		"no bytes":             {change: func(g *greeting) { g.bytes = 0 }, want: &SizeError{}, reason: RefusedSize},
		"negative":             {change: func(g *greeting) { g.bytes = -bytes }, want: &SizeError{}, reason: RefusedSize},
		"larger than the GPU":  {change: func(g *greeting) { g.bytes, g.roundedBytes = 1<<50, 1<<50 }, want: &SizeError{}, reason: RefusedSize},
		"not whole granules":   {change: func(g *greeting) { g.roundedBytes = bytes }, want: &SizeError{}, reason: RefusedSize},
		"a granule too many":   {change: func(g *greeting) { g.roundedBytes += info.GranularityBytes }, want: &SizeError{}, reason: RefusedSize},
		"a granule too few":    {change: func(g *greeting) { g.roundedBytes -= info.GranularityBytes }, want: &SizeError{}, reason: RefusedSize},
		"another granularity":  {change: func(g *greeting) { g.granularity *= 2 }, want: &SizeError{}, reason: RefusedSize},
		"another GPU":          {change: func(g *greeting) { g.gpu[3]++ }, want: &GPUError{}, reason: RefusedGPU},
		"no GPU":               {change: func(g *greeting) { g.gpu = cudadrv.UUID{} }, want: &GPUError{}, reason: RefusedGPU},
		"a note":               {change: func(g *greeting) { g.kind = kindFence }, want: &ProtocolError{}},
		"a refusal":            {change: func(g *greeting) { g.kind, g.reason = kindRefusal, RefusedGPU }, want: &RefusedError{}},
		"another version":      {raw: func(b []byte) []byte { b[8] = 9; return b }, want: &VersionError{}, reason: RefusedVersion},
		"another protocol":     {raw: func([]byte) []byte { return []byte("GET / HTTP/1.1\r\n") }, want: &ProtocolError{}},
		"a part of it":         {raw: func(b []byte) []byte { return b[:40] }, want: &PeerError{}},
		"no descriptor":        {descriptors: -1, want: &DescriptorError{}, reason: RefusedDescriptor},
		"two descriptors":      {descriptors: 2, want: &DescriptorError{}, reason: RefusedDescriptor},
		"nine descriptors":     {descriptors: 9, want: &DescriptorError{}, reason: RefusedDescriptor},
		"a file of the disk":   {descriptors: 1, want: &cudadrv.CallError{}, reason: RefusedDriver},
		"wrong and descriptor": {change: func(g *greeting) { g.bytes = 0 }, descriptors: 1, want: &SizeError{}, reason: RefusedSize},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := connection(t)
			offer := offerOf(s)
			if wrong.change != nil {
				wrong.change(&offer)
			}
			message := offer.encode()
			if wrong.raw != nil {
				message = wrong.raw(message)
			}
			fds := files(t, max(wrong.descriptors, 0))
			_, _, err := a.WriteMsgUnix(message, syscall.UnixRights(fds...), nil)
			require.NoError(t, err)
			if len(message) < greetingBytes && startsWithMagic(message) {
				require.NoError(t, a.CloseWrite())
			}
			open := descriptors(t)
			_, err = Import(s.c, b)
			require.Error(t, err)
			assertType(t, wrong.want, err)
			if size, ok := errors.AsType[*SizeError](err); ok {
				assert.Equal(t, [3]int64{offer.bytes, info.GranularityBytes, info.TotalBytes}, [3]int64{size.Bytes, size.GranularityBytes, size.LimitBytes})
			}
			if gpu, ok := errors.AsType[*GPUError](err); ok {
				assert.Equal(t, GPUError{Theirs: offer.gpu, Ours: info.UUID}, *gpu)
			}
			assert.Equal(t, wrong.reason, refusal(t, a))
			require.NoError(t, a.Close())
			for kind, count := range descriptors(t) {
				assert.LessOrEqual(t, count, open[kind], kind)
			}
			assert.Equal(t, before, f.memory())
		})
	}
}

// assertType asserts that a tree of errors has one of a type.
func assertType(t *testing.T, want any, err error) {
	t.Helper()
	switch want.(type) {
	case *SizeError:
		as[*SizeError](t, err)
	case *GPUError:
		as[*GPUError](t, err)
	case *ProtocolError:
		as[*ProtocolError](t, err)
	case *RefusedError:
		as[*RefusedError](t, err)
	case *VersionError:
		as[*VersionError](t, err)
	case *PeerError:
		as[*PeerError](t, err)
	case *DescriptorError:
		as[*DescriptorError](t, err)
	case *cudadrv.CallError:
		as[*cudadrv.CallError](t, err)
	default:
		t.Errorf("%T", want)
	}
}

// An answer is one to the offer: the same sizes on the same GPU, in the same version.
func TestAnswersAreChecked(t *testing.T) {
	f := newFake(t)
	s := newSide(t, f.driver())
	m := s.make()
	before, inherited := f.memory(), inheritable(t)
	for name, wrong := range map[string]struct {
		change func(*greeting)
		want   any
		reason Refusal
	}{
		"other bytes":     {func(g *greeting) { g.bytes-- }, &SizeError{}, RefusedSize},
		"a smaller range": {func(g *greeting) { g.roundedBytes /= 2 }, &SizeError{}, RefusedSize},
		"another GPU":     {func(g *greeting) { g.gpu[0]++ }, &GPUError{}, RefusedGPU},
		"an offer":        {func(g *greeting) { g.kind = kindOffer }, &ProtocolError{}, 0},
		"a refusal":       {func(g *greeting) { g.kind, g.reason = kindRefusal, RefusedDriver }, &RefusedError{}, 0},
		"a false event":   {func(g *greeting) { g.flags = hasEvent }, &cudadrv.CallError{}, RefusedDriver},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := connection(t)
			exported := inBackground(func() error { return m.Export(a) })
			message := make([]byte, greetingBytes)
			received, n, err := receiveDescriptors(b, message)
			require.NoError(t, err)
			require.Len(t, received, 1)
			assert.Equal(t, inherited, inheritable(t), "descriptors that a started program would have")
			require.NoError(t, received[0].Close())
			answer, err := decode(message[:n], kindOffer)
			require.NoError(t, err)
			answer.kind, answer.flags = kindAnswer, 0
			wrong.change(&answer)
			_, err = b.Write(answer.encode())
			require.NoError(t, err)
			err = <-exported
			assertType(t, wrong.want, err)
			info := s.dev.Info()
			if size, ok := errors.AsType[*SizeError](err); ok {
				assert.Equal(t, SizeError{answer.bytes, answer.roundedBytes, info.GranularityBytes, info.TotalBytes}, *size)
			}
			if gpu, ok := errors.AsType[*GPUError](err); ok {
				assert.Equal(t, GPUError{Theirs: answer.gpu, Ours: info.UUID}, *gpu)
			}
			assert.Equal(t, wrong.reason, refusal(t, b))
			require.ErrorIs(t, m.Publish(s.c), ErrNotLinked)
			assert.Equal(t, before, f.memory())
		})
	}
}

// A confirmation is one to the offer, too: an importer believes no peer that changes its mind, and keeps nothing of it.
func TestConfirmationsAreChecked(t *testing.T) {
	from, f := newSide(t, newFake(t).driver()), newFake(t)
	s := newSide(t, f.driver())
	m := from.make()
	before := f.memory()
	for name, c := range map[string]struct {
		change func(*greeting)
		want   any // nil: none
	}{
		"the same":            {func(*greeting) {}, nil},
		"other bytes":         {func(g *greeting) { g.bytes-- }, &SizeError{}},
		"a larger range":      {func(g *greeting) { g.roundedBytes *= 2 }, &SizeError{}},
		"another granularity": {func(g *greeting) { g.granularity *= 2 }, &SizeError{}},
		"another GPU":         {func(g *greeting) { g.gpu[0]++ }, &GPUError{}},
		"an answer":           {func(g *greeting) { g.kind = kindAnswer }, &ProtocolError{}},
		"a refusal":           {func(g *greeting) { g.kind, g.reason = kindRefusal, RefusedDriver }, &RefusedError{}},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := connection(t)
			offer := offerOf(from)
			require.NoError(t, m.send(newLink(m.device, a), &offer))
			var theirs *Memory
			imported := inBackground(func() (err error) {
				theirs, err = Import(s.c, b)
				return err
			})
			message := make([]byte, greetingBytes)
			_, err := io.ReadFull(a, message)
			require.NoError(t, err)
			confirmation, err := decode(message, kindAnswer)
			require.NoError(t, err)
			confirmation.kind, confirmation.flags = kindConfirmation, 0
			c.change(&confirmation)
			_, err = a.Write(confirmation.encode())
			require.NoError(t, err)
			err = <-imported
			if theirs == nil {
				assertType(t, c.want, err)
				_, err = a.Read(message)
				require.ErrorIs(t, err, io.EOF, "the connection is closed")
			} else {
				assert.Nil(t, c.want, "it is linked")
				require.NoError(t, a.Close())
				require.NoError(t, theirs.Close())
			}
			assert.Equal(t, before, f.memory())
		})
	}
}

// A refusal reaches the exporter, whose driver would have said the same.
func TestTheImportersDriverFails(t *testing.T) {
	a, b := newPair(t)
	require.NoError(t, b.faults.Add(ruleFor("cuMemMap", 1)))
	m := a.make()
	x, y := connection(t)
	exported := inBackground(func() error { return m.Export(x) })
	_, err := Import(b.c, y)
	require.ErrorIs(t, err, cudadrv.Unknown)
	var refused *RefusedError
	require.ErrorAs(t, <-exported, &refused)
	assert.Equal(t, RefusedDriver, refused.Reason)
	assert.Equal(t, "share: the peer refused: driver", refused.Error())
	assert.EqualError(t, &PeerError{Op: "await", Err: ErrPeerDied}, "share: await: the connection ended before the peer closed the memory")
}

// Notes that cannot be end the link, and not the memory.
func TestNotesAreChecked(t *testing.T) {
	for name, message := range map[string][]byte{
		"a fence left out":      note{kindFence, 2}.encode(),
		"fence 0":               note{kindFence, 0}.encode(),
		"an offer":              note{kindOffer, 1}.encode(),
		"other bytes":           make([]byte, noteBytes),
		"two releases":          append(note{kind: kindReleased}.encode(), note{kind: kindReleased}.encode()...),
		"a fence after its end": append(note{kind: kindGoodbye}.encode(), note{kindFence, 1}.encode()...),
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newPair(t)
			m, theirs := linkSides(t, a, b)
			_, err := theirs.link.Load().conn.Write(message)
			require.NoError(t, err)
			err = m.Await(t.Context(), a.c)
			var gone *PeerError
			require.ErrorAs(t, err, &gone)
			if name != "a fence after its end" {
				as[*ProtocolError](t, err)
			}
			<-theirs.link.Load().done
			require.ErrorIs(t, theirs.Publish(b.c), ErrPeerDied)
			a.fill(m, 'n')
			a.holds(m, 'n')
		})
	}
}

// A peer that takes nothing does not hold up Publish for ever.
func TestAPeerThatDoesNotRead(t *testing.T) {
	s := newSide(t, newFake(t).driver())
	m := s.make()
	a, b := connection(t)
	require.NoError(t, a.SetWriteBuffer(1))
	exported := inBackground(func() error { return m.Export(a) })
	message := make([]byte, greetingBytes)
	received, _, err := receiveDescriptors(b, message)
	require.NoError(t, err)
	require.NoError(t, received[0].Close())
	answer, err := decode(message, kindOffer)
	require.NoError(t, err)
	answer.kind, answer.flags = kindAnswer, openedEvent
	_, err = b.Write(answer.encode())
	require.NoError(t, err)
	require.NoError(t, <-exported)
	m.link.Load().timeout = time.Millisecond
	for err == nil {
		err = m.Publish(s.c)
	}
	require.ErrorIs(t, err, ErrPeerDied)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.ErrorIs(t, m.Await(t.Context(), s.c), ErrPeerDied)
	require.ErrorIs(t, m.link.Load().conn.Close(), net.ErrClosed, "a part of a note may have been sent: nothing may follow it")
	require.NoError(t, m.Close())
}

// A goodbye that nobody answers is told, and everything is given back.
func TestAPeerThatDoesNotAnswerAGoodbye(t *testing.T) {
	s := newSide(t, newFake(t).driver())
	m := s.make()
	a, b := connection(t)
	exported := inBackground(func() error { return m.Export(a) })
	message := make([]byte, greetingBytes)
	received, _, err := receiveDescriptors(b, message)
	require.NoError(t, err)
	require.NoError(t, received[0].Close())
	answer, err := decode(message, kindOffer)
	require.NoError(t, err)
	answer.kind, answer.flags = kindAnswer, openedEvent
	_, err = b.Write(answer.encode())
	require.NoError(t, err)
	require.NoError(t, <-exported)
	m.link.Load().timeout = time.Millisecond
	require.ErrorIs(t, m.Close(), os.ErrDeadlineExceeded)
	require.NoError(t, m.Close())
}

func FuzzGreetings(f *testing.F) {
	right := greeting{kind: kindOffer, bytes: 1, roundedBytes: mib, granularity: mib}
	f.Add(right.encode())
	f.Add([]byte(magic))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		info := cudadrv.Info{TotalBytes: 1 << 40, GranularityBytes: 2 * mib, UUID: cudadrv.UUID{1}}
		g, err := decode(b, kindOffer)
		if err != nil {
			return
		}
		assert.Equal(t, b, g.encode())
		if _, err := checkOffer(g, info); err == nil {
			assert.Positive(t, g.bytes)
			assert.GreaterOrEqual(t, g.roundedBytes, g.bytes)
			assert.Zero(t, g.roundedBytes%info.GranularityBytes)
			assert.LessOrEqual(t, g.roundedBytes, info.TotalBytes)
		}
		if len(b) >= noteBytes {
			if n, err := decodeNote(b[:noteBytes]); err == nil {
				assert.Equal(t, b[:noteBytes], n.encode())
			}
		}
	})
}
