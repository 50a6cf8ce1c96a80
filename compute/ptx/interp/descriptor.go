package interp

// descriptor says where a matrix of wgmma lies in shared memory: chapter "Matrix Descriptor Format" of the PTX manual;
// the layouts follow CUTLASS, include/cute/atom/mma_traits_sm90_gmma.hpp, "canonical layouts". A line is a row of A or
// a column of B.
type descriptor struct {
	start, leading, stride uint64 // bytes
	lineBytes              uint64 // of the swizzled pattern: 32, 64, 128; 16 without a swizzle
	swizzleBits            uint64 // ones where bits 7 to 9 of an address change bits 4 to 6
}

// The fields of a descriptor. Addresses and offsets leave out four bits.
const (
	descriptorField    = 1<<14 - 1
	descriptorReserved = uint64(0x3<<14 | 0x3<<30 | 0x7<<46 | 0x3ff<<52)
	descriptorBase     = uint64(7 << 49)
)

// newDescriptor reads a descriptor. wrong names the part that is not implemented.
func newDescriptor(bits uint64) (d descriptor, wrong string) {
	switch {
	case bits&descriptorReserved&^descriptorBase != 0:
		return d, "bits that have no meaning are set"
	case bits&descriptorBase != 0:
		return d, "a base offset is not implemented"
	}
	field := func(at int) uint64 { return bits >> at & descriptorField * chunkBytes }
	d = descriptor{start: field(0), leading: field(16), stride: field(32)} //nolint:mnd // places of the fields
	switch bits >> 62 {                                                    //nolint:mnd // the uppermost field
	case 0:
		d.lineBytes = chunkBytes
	case 1:
		d.lineBytes, d.swizzleBits = 128, 7 //nolint:mnd // 8 chunks
	case 2: //nolint:mnd // the second
		d.lineBytes, d.swizzleBits = 64, 3 //nolint:mnd // 4 chunks
	default:
		d.lineBytes, d.swizzleBits = 32, 1 //nolint:mnd // 2 chunks
	}
	return d, ""
}

// along returns the address of one of the two chunks of a line whose elements are contiguous: K-major.
func (d *descriptor) along(line, chunk int) uint64 {
	n, c := uint64(line), uint64(chunk) //nolint:gosec // small
	next := uint64(chunkBytes)
	if d.swizzleBits == 0 {
		next = d.leading
	}
	return d.swizzled(d.start + n%8*d.lineBytes + n/8*d.stride + c*next)
}

// across returns the address of the elements of eight lines, from a multiple of eight on, at one depth: M-major, N-major.
func (d *descriptor) across(line, depth int) uint64 {
	n, k := uint64(line/8), uint64(depth) //nolint:gosec,mnd // small; lines of a chunk
	if d.swizzleBits == 0 {
		return d.start + n*d.stride + k%8*chunkBytes + k/8*d.leading
	}
	each := d.lineBytes / chunkBytes
	return d.swizzled(d.start + n%each*chunkBytes + n/each*d.leading + k%8*d.lineBytes + k/8*d.stride)
}

// swizzled exchanges chunks: bits of the address itself count, not of the offset in the matrix.
func (d *descriptor) swizzled(address uint64) uint64 { return address ^ address>>7&d.swizzleBits<<4 }
