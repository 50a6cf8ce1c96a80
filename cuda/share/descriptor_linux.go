package share

import (
	"io"
	"net"
	"os"
	"syscall"

	"github.com/go-vram/vram/cudadrv"
)

// maxDescriptors is how many descriptors of one message are taken: one is right, and a second one shows that there are
// too many. The kernel closes those beyond.
const maxDescriptors = 2

// exportHandle makes a descriptor of a handle. Child processes do not inherit it.
func exportHandle(d cudadrv.ShareableMemory, h cudadrv.Handle) (*os.File, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := d.MemExportToShareableHandle(h)
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "exported memory"), nil //nolint:gosec // a descriptor is not negative
}

// importHandle makes a handle of a descriptor, which stays open.
func importHandle(d cudadrv.ShareableMemory, f *os.File) (cudadrv.Handle, error) {
	return d.MemImportFromShareableHandle(int(f.Fd())) //nolint:gosec // a descriptor fits
}

// sendDescriptor writes a message with a descriptor. Linux takes a message of a greeting's length whole; a part of one is an error.
func sendDescriptor(conn *net.UnixConn, message []byte, f *os.File) error {
	n, _, err := conn.WriteMsgUnix(message, syscall.UnixRights(int(f.Fd())), nil) //nolint:gosec // a descriptor fits
	if err == nil && n < len(message) {
		return io.ErrShortWrite
	}
	return err
}

// receiveDescriptors reads a message whose begin is right, and the descriptors that come with it, which are the
// caller's to close. The net package asks for descriptors that other programs do not inherit.
func receiveDescriptors(conn *net.UnixConn, message []byte) (files []*os.File, readBytes int, err error) {
	for readBytes < len(message) && startsWithMagic(message[:readBytes]) {
		rights := make([]byte, syscall.CmsgSpace(4*maxDescriptors))
		n, rightsBytes, flags, _, err := conn.ReadMsgUnix(message[readBytes:], rights)
		more, parseErr := parseRights(rights[:rightsBytes])
		files = append(files, more...)
		if err == nil {
			err = parseErr
		}
		switch {
		case err != nil: // io.EOF at the end of the connection
			return files, readBytes, err
		case flags&syscall.MSG_CTRUNC != 0:
			return files, readBytes, &DescriptorError{len(files) + 1}
		case len(files) > 1: // the peer may send several with each byte
			return files, readBytes, &DescriptorError{len(files)}
		}
		readBytes += n
	}
	return files, readBytes, nil
}

// parseRights returns the descriptors of control messages.
func parseRights(b []byte) (files []*os.File, err error) {
	messages, err := syscall.ParseSocketControlMessage(b)
	if err != nil {
		return nil, &ProtocolError{"control message: " + err.Error()}
	}
	for i := range messages {
		fds, _ := syscall.ParseUnixRights(&messages[i]) // none of a message of another kind
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "imported memory")) //nolint:gosec // a descriptor is not negative
		}
	}
	return files, nil
}
