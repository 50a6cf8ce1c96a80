package cuda

// placeAll writes the arguments of all parameters.
func (c *submission) placeAll(f *Function, p *params, args []Arg) (plain bool, err error) {
	if f.known && len(args) != len(f.params) {
		return false, &ArgumentError{Kernel: f.name, Err: ErrArgumentCount, Bytes: int64(len(args)), Want: int64(len(f.params))}
	}
	if plain, p.size, err = c.place(f, p, 0, 0, args); f.known {
		p.size = f.paramBytes
	}
	return plain, err
}

// place writes the arguments of parameters from the first one on, where the kernel has them, or after end where they are not
// known. plain says that no buffer needs more than its name: see streams.Submitter.Check. It returns the end of the last one.
func (c *submission) place(f *Function, p *params, first, end int, args []Arg) (plain bool, _ int, err error) {
	plain = true
	for i := range args {
		a := &args[i]
		size, at := int(a.size), 0
		if f.known {
			to := &f.params[first+i]
			if to.bytes != size || !to.takes.has(a.kind) {
				return false, 0, f.refuse(first+i, a)
			}
			at = to.offset
		} else {
			if !anyKind.has(a.kind) {
				return false, 0, f.refuse(first+i, a)
			}
			at = alignUp(end, int(a.align))
		}
		if at+size > maxParamBytes {
			return false, 0, f.refused(first+i, a, errParameterSpace, int64(size), maxParamBytes)
		}
		value := a.bits
		if a.mode != byValue {
			own, err := c.work.Check(a.buffer, a.writes())
			if err != nil || a.offset != 0 || a.bytes != a.buffer.Bytes() {
				err = c.checkPart(a, err)
			}
			if err != nil {
				return false, 0, f.refused(first+i, a, err, 0, 0)
			}
			plain = plain && own
			value = uint64(a.buffer.Ptr()) + uint64(a.offset) //nolint:gosec // within the buffer
		}
		p.put(at, a, value)
		end = at + size
	}
	return plain, end, nil
}

// checkPart checks the part of an argument's buffer. err is the error of the buffer.
func (c *submission) checkPart(a *Arg, err error) error {
	if err == nil {
		err = within(a.buffer, a.offset, a.bytes)
	}
	if err != nil {
		err = c.reachable(a, err)
	}
	return err
}

// refuse returns the error of an argument whose size or type is not its parameter's.
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

// got names an argument for errors.
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
