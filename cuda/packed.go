package cuda

import "errors"

var (
	// ErrPackedBytes refuses packed parameters that are shorter than the kernel's, or longer.
	ErrPackedBytes = errors.New("cuda: wrong size of packed parameters")
	// ErrNotBuffer refuses an argument by value in a list of buffers.
	ErrNotBuffer = errors.New("cuda: the argument is no buffer")
)

// LaunchPacked is Launch with parameters that the caller has packed, as for CU_LAUNCH_PARAM_BUFFER_POINTER: each parameter at
// its offset in Function.Parameters. It is for callers that have the bytes of parameters only, and for kernels that follow
// addresses in a struct or in memory. packed has the size of all parameters, or up to 15 bytes more, as a C struct may have at
// its end; without known parameters it has at most 4 KiB. It is read before the call returns.
//
// buffers are the buffers that the kernel touches, made with In, Out and InOut: they are checked, ordered and announced as
// arguments of Launch, and a graph keeps them. The launch does not compare them with the addresses in packed, whose types it
// cannot check either. Nil pointers among them (OrNull) count for nothing.
//
// Errors: as Launch. In an *ArgumentError, with which nothing was submitted, Index counts the buffers; with ErrPackedBytes it is
// -1.
func (c *Context) LaunchPacked(f *Function, g Geometry, packed []byte, buffers ...Arg) error {
	if err := c.runs(f); err != nil {
		return err
	}
	if err := f.fits(len(packed)); err != nil {
		return err
	}
	p := c.borrow()
	if p.size = copy(p.bytes[:], packed); f.known {
		p.size = f.paramBytes
	}
	done, err := c.launchQuickly(f, g, p, buffers, true)
	if !done && err == nil {
		err = c.launchSlowly(f, g, p, buffers, true)
	}
	c.giveBack(p)
	return err
}

// structAlign is the largest alignment of a C struct of parameters.
const structAlign = 16

// fits returns the error of packed parameters of that size.
func (f *Function) fits(bytes int) error {
	least, most := 0, maxParamBytes
	if f.known {
		least, most = f.paramBytes, min(f.paramBytes+structAlign-1, maxParamBytes)
	}
	if bytes >= least && bytes <= most {
		return nil
	}
	want := int64(maxParamBytes)
	if f.known {
		want = int64(f.paramBytes)
	}
	return &ArgumentError{Kernel: f.name, Index: -1, Err: ErrPackedBytes, Bytes: int64(bytes), Want: want}
}

// declared checks a list of buffers. plain is as in place.
func (c *submission) declared(kernel string, buffers []Arg) (plain bool, err error) {
	plain = true
	for i := range buffers {
		a := &buffers[i]
		if a.mode == byValue {
			if a.kind == addressKind && a.bits == 0 {
				continue
			}
			return false, &ArgumentError{Kernel: kernel, Index: i, Got: a.got(), Err: ErrNotBuffer, Bytes: int64(a.size), Want: -1}
		}
		own, err := c.work.Check(a.buffer, a.writes())
		if err = c.checkPart(a, err); err != nil {
			return false, &ArgumentError{Kernel: kernel, Index: i, Got: a.got(), Err: err}
		}
		plain = plain && own
	}
	return plain, nil
}
