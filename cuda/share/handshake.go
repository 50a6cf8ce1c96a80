package share

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
)

// errNoConnection refuses a nil connection.
var errNoConnection = fmt.Errorf("share: no connection: %w", os.ErrInvalid)

// Export sends the memory to the process at the other end of the connection, which calls Import, and returns when that
// one has mapped it and both have opened each other's events. The connection belongs to the memory from now on. A
// deadline of the connection ends the wait. With an error the memory stays alone, as it was. Several calls may wait at
// a time, each for a peer of its own: the first whose peer answers links the memory, and the others return ErrLinked.
// Errors: ErrClosed, ErrLinked, *PeerError, *RefusedError, *VersionError, *ProtocolError, *SizeError, *GPUError, those
// of the connection, and the driver's.
func (m *Memory) Export(conn *net.UnixConn) error {
	if conn == nil {
		return errNoConnection
	}
	if m == nil || m.quit == nil {
		return errors.Join(cuda.ErrNotOpen, conn.Close())
	}
	if err := m.beginExport(conn); err != nil {
		return errors.Join(err, conn.Close())
	}
	defer m.exports.Done()
	l := newLink(m.device, conn)
	err := m.export(l)
	m.linking.Lock()
	delete(m.pending, conn)
	m.linking.Unlock()
	if err == nil {
		return nil
	}
	if why := m.refusal(); why != nil && !errors.Is(err, why) { // it has ended this call, maybe
		err = errors.Join(why, err)
	}
	return errors.Join(err, l.abandon())
}

// beginExport notes a connection on which an Export waits, so that Close and another Export end it.
func (m *Memory) beginExport(conn *net.UnixConn) error {
	m.linking.Lock()
	defer m.linking.Unlock()
	if err := m.refusal(); err != nil {
		return err
	}
	m.pending[conn] = struct{}{}
	m.exports.Add(1)
	return nil
}

// refusal returns the reason why no Export can succeed: the memory is closed, or linked.
func (m *Memory) refusal() error {
	select {
	case <-m.quit:
		return ErrClosed
	default:
	}
	if m.link.Load() != nil {
		return ErrLinked
	}
	return nil
}

// endExports ends the Exports that wait: they close their connections again.
func (m *Memory) endExports() {
	m.linking.Lock()
	defer m.linking.Unlock()
	for conn := range m.pending {
		_ = conn.Close()
	}
}

// linked starts the link, unless Close was called.
func (m *Memory) linked(l *link) error {
	m.use.RLock()
	defer m.use.RUnlock()
	if m.closed {
		return ErrClosed
	}
	if err := l.conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	m.link.Store(l)
	go func() {
		l.read(&m.use)
		m.watch(l)
	}()
	return nil
}

// export plays Export's side of the greetings. Close waits for it.
func (m *Memory) export(l *link) error {
	info := m.device.Info()
	offer := greeting{
		kind: kindOffer, bytes: m.bytes, roundedBytes: m.pages.bytes, granularity: info.GranularityBytes, gpu: info.UUID,
	}
	if err := l.makeEvent(&offer); err != nil {
		return err
	}
	if err := m.send(l, &offer); err != nil {
		return err
	}
	answer, err := l.greeted(kindAnswer, "export")
	if err != nil {
		return err
	}
	if reason, err := checkAnswer(answer, offer, info); err != nil {
		return errors.Join(err, l.refuse(reason))
	}
	confirmation := answer
	confirmation.kind, confirmation.flags, confirmation.event = kindConfirmation, 0, cudadrv.EventDescriptor{}
	if err := l.openEvent(answer, &confirmation); err != nil {
		return errors.Join(err, l.refuse(RefusedDriver))
	}
	l.publishesEvents = answer.flags&openedEvent != 0
	return m.confirm(l, &confirmation)
}

// confirm links the memory, unless another Export has, and ends the others.
func (m *Memory) confirm(l *link, confirmation *greeting) error {
	m.linking.Lock()
	defer m.linking.Unlock()
	if err := l.greet(confirmation, "export"); err != nil { // another Export, or Close, has closed the connection, maybe
		return err
	}
	if err := m.linked(l); err != nil {
		return err
	}
	for conn := range m.pending {
		if conn != l.conn {
			_ = conn.Close()
		}
	}
	return nil
}

// send sends the offer with a descriptor of the handle, which is closed here: the one in the message lives on.
func (m *Memory) send(l *link, offer *greeting) error {
	shareable, _ := m.device.(cudadrv.ShareableMemory) // newMemory has looked
	f, err := exportHandle(shareable, m.pages.handle)
	if err != nil {
		return err
	}
	err = sendDescriptor(l.conn, offer.encode(), f)
	if err != nil {
		err = ended("export", err)
	}
	return errors.Join(err, f.Close())
}

// Import receives memory that the process at the other end of the connection exports, and maps it on the device of the context,
// which must be the same GPU. The connection belongs to the memory from now on; with an error it is closed, and nothing is
// left. It returns when the peer has opened the events of this process. A deadline of the connection ends the wait. Errors:
// *PeerError, *RefusedError, *VersionError, *ProtocolError, *SizeError, *GPUError, *DescriptorError, cuda.ErrNotOpen,
// vram.ErrClosed, a *vram.OutOfMemoryError where the device's limit leaves no room, the connection's, and the driver's:
// cudadrv.NotSupported where the device has no shareable handles.
func Import(c *cuda.Context, conn *net.UnixConn) (*Memory, error) {
	if conn == nil {
		return nil, errNoConnection
	}
	m, shareable, err := newMemory(c, "cuMemImportFromShareableHandle")
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	l := newLink(m.device, conn)
	err = m.importFrom(l, shareable)
	if err == nil {
		err = m.linked(l)
	}
	if err != nil {
		return nil, errors.Join(err, m.pages.release(), l.abandon())
	}
	return m, nil
}

// importFrom plays Import's side of the greetings.
func (m *Memory) importFrom(l *link, shareable cudadrv.ShareableMemory) error {
	offer, reason, err := m.receive(l, shareable)
	if err != nil {
		if reason != 0 {
			err = errors.Join(err, l.refuse(reason))
		}
		return err
	}
	m.bytes = offer.bytes
	answer := offer
	answer.kind, answer.flags, answer.event = kindAnswer, 0, cudadrv.EventDescriptor{}
	err = m.pages.place()
	if err == nil {
		err = l.makeEvent(&answer)
	}
	if err == nil {
		err = l.openEvent(offer, &answer)
	}
	if err != nil {
		return errors.Join(err, l.refuse(RefusedDriver))
	}
	if err := l.greet(&answer, "import"); err != nil {
		return err
	}
	confirmation, err := l.greeted(kindConfirmation, "import")
	if err != nil {
		return err
	}
	if _, err := checkAnswer(confirmation, offer, m.device.Info()); err != nil {
		return err
	}
	l.publishesEvents = confirmation.flags&openedEvent != 0
	return nil
}

// receive reads the offer and makes a handle of its descriptor. Descriptors are closed. With an error it returns the reason for
// the peer; 0: none is sent.
func (m *Memory) receive(l *link, shareable cudadrv.ShareableMemory) (offer greeting, reason Refusal, err error) {
	message := make([]byte, greetingBytes)
	files, n, err := receiveDescriptors(l.conn, message)
	defer func() {
		for _, f := range files {
			err = errors.Join(err, f.Close())
		}
	}()
	if err != nil {
		if _, ok := errors.AsType[*DescriptorError](err); ok {
			return offer, RefusedDescriptor, err
		}
		return offer, 0, ended("import", err)
	}
	info := m.device.Info()
	if offer, err = decode(message[:n], kindOffer); err != nil {
		if _, ok := errors.AsType[*VersionError](err); ok {
			return offer, RefusedVersion, err
		}
		return offer, 0, err
	}
	if reason, err := checkOffer(offer, info); err != nil {
		return offer, reason, err
	}
	if len(files) != 1 {
		return offer, RefusedDescriptor, &DescriptorError{len(files)}
	}
	m.pages.bytes = offer.roundedBytes
	if err = m.pages.charge(); err != nil {
		return offer, RefusedLimit, err
	}
	if m.pages.handle, err = importHandle(shareable, files[0]); err != nil {
		return offer, RefusedDriver, err
	}
	return offer, 0, nil
}

// makeEvent makes the event of this process, where the device can, and puts its descriptor into the greeting.
func (l *link) makeEvent(g *greeting) (err error) {
	events := l.events
	if events == nil {
		return nil
	}
	if l.own, err = events.EventCreateShared(); err != nil {
		return err
	}
	g.flags |= hasEvent
	g.event, err = events.IpcGetEventHandle(l.own)
	return err
}

// openEvent opens the event of the peer, where it has one and the device can, and says so in the greeting.
func (l *link) openEvent(theirs greeting, g *greeting) (err error) {
	if l.events == nil || theirs.flags&hasEvent == 0 {
		return nil
	}
	if l.theirs, err = l.events.IpcOpenEventHandle(theirs.event); err != nil {
		return err
	}
	l.awaitsEvents = true
	g.flags |= openedEvent
	return nil
}

// greet sends a greeting.
func (l *link) greet(g *greeting, op string) error {
	if _, err := l.conn.Write(g.encode()); err != nil {
		return ended(op, err)
	}
	return nil
}

// refuse sends the peer the reason why this process refuses. It ignores errors of a peer that is gone.
func (l *link) refuse(reason Refusal) error {
	_, err := l.conn.Write((&greeting{kind: kindRefusal, reason: reason}).encode())
	if err != nil && isGone(err) {
		return nil
	}
	return err
}

// greeted reads a greeting. Descriptors that come with it are closed by the kernel.
func (l *link) greeted(kind uint32, op string) (greeting, error) {
	message := make([]byte, greetingBytes)
	if _, err := io.ReadFull(l.conn, message); err != nil {
		return greeting{}, ended(op, err)
	}
	return decode(message, kind)
}
