package cuda

import (
	"fmt"

	"github.com/go-vram/vram/cudadrv"
)

// EncodeTensorMap encodes the description of a tensor for a kernel that copies it in bulk: cp.async.bulk.tensor. The kernel
// takes the result by value, as Value of it, and must not copy it to other memory. A launch does not know the memory that a
// tensor map describes: the kernel needs the buffer as a parameter, too, so that it is ordered and kept. It makes one driver call
// and does not wait. Errors: ErrNotOpen, vram.ErrClosed, and the driver's: cudadrv.InvalidValue for a description beyond a
// limit, cudadrv.NotSupported where Info lacks cudadrv.BulkTensors.
func (c *Context) EncodeTensorMap(t cudadrv.TensorMap) (encoded cudadrv.EncodedTensorMap, err error) {
	if !c.opened() {
		return encoded, ErrNotOpen
	}
	maps, ok := c.device.(cudadrv.TensorMaps)
	if !ok {
		return encoded, unsupported("cuTensorMapEncodeTiled")
	}
	err = c.open(func() (err error) {
		encoded, err = maps.TensorMapEncodeTiled(t)
		return err
	})
	if err != nil {
		return encoded, fmt.Errorf("cuda: encoding a tensor map: %w", err)
	}
	return encoded, nil
}
