package cudadrv

// TensorType is the type of a tensor's elements; numbers are CUDA's (CUtensorMapDataType).
type TensorType int32

// The types.
const (
	TensorFloat16  TensorType = 6
	TensorFloat32  TensorType = 7
	TensorBFloat16 TensorType = 9
	// TensorTFloat32 is fp32 in memory, which bulk copies to shared memory round to 10 bits of fraction, ties to even.
	TensorTFloat32 TensorType = 11
)

// Bytes is the size of an element, or 0.
func (t TensorType) Bytes() int64 {
	switch t {
	case TensorFloat16, TensorBFloat16:
		return 2
	case TensorFloat32, TensorTFloat32:
		return 4
	}
	return 0
}

// TensorSwizzle says in which order the 16-byte pieces of a row of a box lie in shared memory; numbers are CUDA's
// (CUtensorMapSwizzle).
type TensorSwizzle int32

// The orders. Swizzle128 exchanges the eight pieces of each 128 bytes: piece p of line l is at p^(l%8).
const (
	SwizzleNone TensorSwizzle = 0
	Swizzle32   TensorSwizzle = 1
	Swizzle64   TensorSwizzle = 2
	Swizzle128  TensorSwizzle = 3
)

// Bytes is the length of a line whose pieces are exchanged: the longest row that a box may have. 0: no bound.
func (s TensorSwizzle) Bytes() int64 {
	if s == SwizzleNone {
		return 0
	}
	return 16 << s
}

// The limits of a TensorMap.
const (
	MaxTensorRank        = 5
	MaxTensorBox         = 256     // elements of a box in each dimension
	MaxTensorDim         = 1 << 32 // elements of a tensor in each dimension
	MaxTensorStrideBytes = 1 << 40 // and each stride is less
	TensorAlignment      = 16      // of the address and the strides, in bytes
)

// TensorMap describes a tensor in device memory and the box of it that one bulk copy (cp.async.bulk.tensor) moves. Elements of
// a box beyond the tensor's edge arrive as zeros. Dimension 0 is contiguous.
type TensorMap struct {
	Ptr     Ptr // a multiple of TensorAlignment
	Type    TensorType
	Swizzle TensorSwizzle
	Rank    int32                    // 1 to MaxTensorRank: how many entries of the arrays count. The others are 0
	Dims    [MaxTensorRank]int64     // elements, at least 1
	Strides [MaxTensorRank - 1]int64 // bytes from an index of dimension n+1 to the next one: multiples of TensorAlignment
	Box     [MaxTensorRank]int32     // elements, at least 1; those of dimension 0 are a multiple of 16 bytes
}

// EncodedTensorMap is a TensorMap as a kernel takes it: a parameter by value (.param .align 64 .b8 x[128]), which the kernel
// must not copy elsewhere. Its contents are the driver's.
type EncodedTensorMap [128]byte

// TensorMaps is implemented by devices with bulk copies of tensors; it works where Info has the capability BulkTensors, and
// fails with CUDA_ERROR_NOT_SUPPORTED elsewhere.
type TensorMaps interface {
	// TensorMapEncodeTiled encodes a description. It makes no work for the device, and does not look whether the memory is
	// allocated. CUDA_ERROR_INVALID_VALUE: the description exceeds a limit.
	TensorMapEncodeTiled(t TensorMap) (EncodedTensorMap, error)
}

// Valid reports whether a description keeps the limits.
func (t *TensorMap) Valid() bool {
	if t == nil {
		return false
	}
	each := t.Type.Bytes()
	if each == 0 || t.Swizzle < SwizzleNone || t.Swizzle > Swizzle128 || t.Rank < 1 || t.Rank > MaxTensorRank || t.Ptr == 0 || t.Ptr%TensorAlignment != 0 {
		return false
	}
	for n := range MaxTensorRank {
		if n >= int(t.Rank) {
			if t.Dims[n] != 0 || t.Box[n] != 0 || t.Strides[n-1] != 0 {
				return false
			}
			continue
		}
		if t.Dims[n] < 1 || t.Dims[n] > MaxTensorDim || t.Box[n] < 1 || t.Box[n] > MaxTensorBox {
			return false
		}
		if n > 0 && (t.Strides[n-1] < 0 || t.Strides[n-1] >= MaxTensorStrideBytes || t.Strides[n-1]%TensorAlignment != 0) {
			return false
		}
	}
	row := int64(t.Box[0]) * each
	return row%TensorAlignment == 0 && (t.Swizzle == SwizzleNone || row <= t.Swizzle.Bytes())
}
