//go:build !linux

package share

import (
	"net"
	"os"

	"github.com/go-vram/vram/cudadrv"
)

// Handles are file descriptors on Linux only.

func exportHandle(cudadrv.ShareableMemory, cudadrv.Handle) (*os.File, error) {
	return nil, unsupported("cuMemExportToShareableHandle", cudadrv.ShareableHandles)
}

func importHandle(cudadrv.ShareableMemory, *os.File) (cudadrv.Handle, error) {
	return 0, unsupported("cuMemImportFromShareableHandle", cudadrv.ShareableHandles)
}

func sendDescriptor(*net.UnixConn, []byte, *os.File) error {
	return unsupported("sendmsg", cudadrv.ShareableHandles)
}

func receiveDescriptors(*net.UnixConn, []byte) ([]*os.File, int, error) {
	return nil, 0, unsupported("recvmsg", cudadrv.ShareableHandles)
}
