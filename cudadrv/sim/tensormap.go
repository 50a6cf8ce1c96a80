package sim

import (
	"bytes"
	"encoding/binary"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

var _ cudadrv.TensorMaps = (*Device)(nil)

// tensorMark begins the encoded tensor maps of simulated devices.
var tensorMark = [8]byte{'v', 'r', 'a', 'm', ' ', 'm', 'a', 'p'} //nolint:gochecknoglobals // a constant

// encodedTensor is the layout of an encoded tensor map.
type encodedTensor struct {
	Mark [8]byte
	Map  cudadrv.TensorMap
}

// TensorMapEncodeTiled encodes a description in a form of the simulation.
func (d *Device) TensorMapEncodeTiled(t cudadrv.TensorMap) (encoded cudadrv.EncodedTensorMap, err error) {
	const c = call.TensorMapEncodeTiled
	err = d.do(c, cudadrv.BulkTensors, func(*gpu) error {
		if !t.Valid() {
			return fail(c, cudadrv.InvalidValue, "%+v", t)
		}
		_, err := binary.Encode(encoded[:], binary.LittleEndian, encodedTensor{tensorMark, t})
		return err
	})
	return encoded, err
}

// DecodeTensorMap reads a tensor map that a simulated device encoded: executors of kernels need it. It reports whether it is
// one.
func DecodeTensorMap(encoded []byte) (cudadrv.TensorMap, bool) {
	var e encodedTensor
	if len(encoded) != len(cudadrv.EncodedTensorMap{}) {
		return cudadrv.TensorMap{}, false
	}
	n, err := binary.Decode(encoded, binary.LittleEndian, &e)
	if err != nil || e.Mark != tensorMark || !e.Map.Valid() || len(bytes.Trim(encoded[n:], "\x00")) > 0 {
		return cudadrv.TensorMap{}, false
	}
	return e.Map, true
}
