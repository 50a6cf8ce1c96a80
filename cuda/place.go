package cuda

// place writes the arguments where the kernel has its parameters. plain says that no buffer needs more than its name: see
// streams.Submitter.Check.
func (c *submission) place(f *Function, p *params, args []Arg) (plain bool, err error) {
	if f.known && len(args) != len(f.params) {
		return false, &ArgumentError{Kernel: f.name, Err: ErrArgumentCount, Bytes: int64(len(args)), Want: int64(len(f.params))}
	}
	end := 0
	plain = true
	for i := range args {
		at, own, err := c.placeOne(f, p, i, end, &args[i])
		if err != nil {
			return false, err
		}
		plain = plain && own
		end = at + int(args[i].size)
	}
	p.size = end
	if f.known {
		p.size = f.paramBytes
	}
	return plain, nil
}

// placeOne writes an argument. end is the end of the one before, which counts where the parameters are not known. It returns
// the offset.
func (c *submission) placeOne(f *Function, p *params, i, end int, a *Arg) (at int, plain bool, err error) {
	size := int(a.size)
	switch {
	case !f.known:
		if at = end; !anyKind.has(a.kind) {
			return 0, false, f.refuse(i, a)
		}
		at = alignUp(end, int(a.align))
	case f.params[i].bytes != size || !f.params[i].takes.has(a.kind):
		return 0, false, f.refuse(i, a)
	default:
		at = f.params[i].offset
	}
	if at+size > maxParamBytes {
		return 0, false, f.refused(i, a, errParameterSpace, int64(size), maxParamBytes)
	}
	value := a.bits
	plain = true
	if a.mode != byValue {
		if plain, err = c.checkBuffer(a); err != nil {
			return 0, false, f.refused(i, a, err, 0, 0)
		}
		value = uint64(a.buffer.Ptr()) + uint64(a.offset) //nolint:gosec // within the buffer
	}
	p.put(at, a, value)
	return at, plain, nil
}

// checkBuffer checks the buffer of an argument, and its part.
func (c *submission) checkBuffer(a *Arg) (plain bool, err error) {
	plain, err = c.work.Check(a.buffer)
	if err == nil && (a.offset != 0 || a.bytes != a.buffer.Bytes()) {
		err = within(a.buffer, a.offset, a.bytes)
	}
	if err != nil {
		err = c.reachable(a, err)
	}
	return plain, err
}

// refuse returns the error of an argument that has not the size or the type of its parameter.
func (f *Function) refuse(i int, a *Arg) error {
	bytes, want := int64(a.size), int64(-1)
	if f.known {
		want = int64(f.params[i].bytes)
	}
	switch {
	case a.typ != nil && a.typ.refused != nil:
		return f.refused(i, a, a.typ.refused, bytes, want)
	case bytes != want || a.kind == noKind:
		return f.refused(i, a, ErrArgumentSize, bytes, want)
	}
	return f.refused(i, a, ErrArgumentType, bytes, want)
}

// refused returns an error of an argument.
func (f *Function) refused(i int, a *Arg, err error, bytes, want int64) error {
	e := &ArgumentError{Kernel: f.name, Index: i, Got: a.got(), Err: err, Bytes: bytes, Want: want}
	if f.known {
		e.Parameter, e.Type = f.described[i].Name, f.described[i].Type
	}
	return e
}

// got returns what an argument is, for errors.
func (a *Arg) got() string {
	switch {
	case a.typ != nil:
		return a.typ.name
	case a.mode != byValue:
		return "a buffer"
	case a.kind != addressKind:
		return a.kind.String()
	case a.bits == 0:
		return "a nil pointer"
	}
	return "cudadrv.Ptr"
}
