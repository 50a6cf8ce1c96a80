//go:build linux && (amd64 || arm64) && !gpu

package share

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An Export waits for its own peer alone, and ends where another one has linked the memory.
func TestExportsDoNotWaitForEachOther(t *testing.T) {
	a, b := newPair(t)
	m := a.make()
	silent, listens := connection(t)
	first := inBackground(func() error { return m.Export(silent) })
	_, err := io.ReadFull(listens, make([]byte, greetingBytes))
	require.NoError(t, err)

	late, _ := connection(t)
	require.NoError(t, late.SetDeadline(time.Now().Add(time.Millisecond)))
	require.ErrorIs(t, m.Export(late), os.ErrDeadlineExceeded)

	mine, other := connection(t)
	second := inBackground(func() error { return m.Export(mine) })
	theirs, err := Import(b.c, other)
	require.NoError(t, err)
	require.NoError(t, <-second)
	require.ErrorIs(t, <-first, ErrLinked)
	_, err = listens.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the peer gets the reason")
	assert.Empty(t, m.pending)
	require.NoError(t, m.Publish(a.c))
	require.NoError(t, theirs.Await(t.Context(), b.c))
	require.NoError(t, theirs.Close())
}

// An importer holds no more descriptors than tell that there are too many, in however many messages they come.
func TestDescriptorsInManyMessages(t *testing.T) {
	s := newSide(t, newFake(t).driver())
	a, b := connection(t)
	require.NoError(t, b.SetDeadline(time.Now().Add(time.Minute)))
	offer := offerOf(s)
	message := offer.encode()
	for i := range 3 { // the rest does not come
		_, _, err := a.WriteMsgUnix(message[i:i+1], syscall.UnixRights(files(t, 1)...), nil)
		require.NoError(t, err)
	}
	_, err := Import(s.c, b)
	as[*DescriptorError](t, err)
	assert.Equal(t, RefusedDescriptor, refusal(t, a))

	received, _, err := receiveDescriptors(manyDescriptors(t), make([]byte, greetingBytes))
	as[*DescriptorError](t, err)
	assert.LessOrEqual(t, len(received), 2)
	for _, f := range received {
		require.NoError(t, f.Close())
	}
}

// manyDescriptors returns a connection on which a peer has sent a message with ten descriptors.
func manyDescriptors(t *testing.T) *net.UnixConn {
	t.Helper()
	a, b := connection(t)
	_, _, err := a.WriteMsgUnix([]byte(magic), syscall.UnixRights(files(t, 10)...), nil)
	require.NoError(t, err)
	return b
}

// A control message whose length is wrong is refused, and messages of other kinds count for nothing.
func TestControlMessagesAreChecked(t *testing.T) {
	whole := syscall.UnixRights(1)
	other := slices.Clone(whole)
	binary.NativeEndian.PutUint32(other[len(other)-syscall.CmsgSpace(4)+12:], 99) // its type
	for name, c := range map[string]struct {
		message []byte
		refused bool
	}{
		"none": {nil, false}, "another kind": {other, false}, "too short for one": {whole[:8], false}, "a length beyond the end": {whole[:17], true},
	} {
		files, err := parseRights(c.message)
		assert.Empty(t, files, name)
		var refused *ProtocolError
		assert.Equal(t, c.refused, errors.As(err, &refused), "%s: %v", name, err)
	}
}

// A connection that was closed is closed once: its error has no other one of the end.
func TestAConnectionThatWasClosed(t *testing.T) {
	a, _ := newPair(t)
	mine, theirs := connection(t)
	require.NoError(t, mine.Close())
	require.NoError(t, theirs.Close())
	m := a.make()
	err := m.Export(mine)
	require.ErrorIs(t, err, net.ErrClosed)
	assert.Equal(t, 1, strings.Count(err.Error(), net.ErrClosed.Error()), "%v", err)
	_, err = Import(a.c, theirs)
	require.ErrorIs(t, err, net.ErrClosed)
	assert.Equal(t, 1, strings.Count(err.Error(), net.ErrClosed.Error()), "%v", err)
	assert.Equal(t, peerTimeout, time.Duration(newLink(m.device, mine).patience.Load()), "streams have as long as the peer had")
}
