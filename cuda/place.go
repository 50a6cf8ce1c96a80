package cuda

// accepts compares arguments with so many of the kernel's parameters from the first one on, and returns the error of a number, a
// size or a type that differs.
func (f *Function) accepts(first, count int, args []Arg) error {
	if !f.known {
		return f.acceptsUnknown(first, args)
	}
	if len(args) != count {
		return f.again(len(f.params), "", ErrArgumentCount, int64(len(args)))
	}
	to := f.params[first:]
	for i := range args {
		if a := &args[i]; to[i].bytes != int(a.size) || !to[i].takes.has(a.kind) {
			return f.refuse(first+i, a)
		}
	}
	return nil
}

// acceptsUnknown is accepts for a kernel whose parameters are not known.
func (f *Function) acceptsUnknown(first int, args []Arg) error {
	for i := range args {
		if !anyKind.has(args[i].kind) {
			return f.refuse(first+i, &args[i])
		}
	}
	return nil
}

// placeAll writes the arguments of all parameters, which the kernel accepts.
func (c *submission) placeAll(f *Function, p *params, args []Arg) (plain bool, err error) {
	if plain, p.size, err = c.place(f, p, 0, 0, args); f.known {
		p.size = f.paramBytes
	}
	return plain, err
}

// place writes arguments that the kernel accepts, of parameters from the first one on, where the kernel has them, or after end
// where they are not known. plain says that no buffer needs more than its name: see streams.Submitter.Check. It returns the end of the last one.
func (c *submission) place(f *Function, p *params, first, end int, args []Arg) (plain bool, _ int, err error) {
	plain = true
	for i := range args {
		a := &args[i]
		size, at := int(a.size), 0
		if f.known {
			at = f.params[first+i].offset
		} else {
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
	bytes, err := int64(a.size), ErrArgumentType
	switch {
	case a.typ != nil && a.typ.refused != nil:
		err = a.typ.refused
	case !f.known || bytes != int64(f.params[i].bytes) || a.kind == noKind:
		err = ErrArgumentSize
	}
	if !f.known {
		return f.refused(i, a, err, bytes, -1)
	}
	return f.again(i, a.got(), err, bytes)
}

// again returns the error of a mistake with a parameter, or, with the index after the last one, with their number. A program that
// makes the same mistake again gets the same error: nothing is allocated. Precondition: f.known.
func (f *Function) again(i int, got string, err error, bytes int64) error {
	last := &f.refusals[i]
	if e := last.Load(); e != nil && e.Bytes == bytes && e.Err == err && e.Got == got { //nolint:errorlint // the same error, not its kind
		return e
	}
	e := &ArgumentError{Kernel: f.name, Got: got, Err: err, Bytes: bytes, Want: int64(len(f.params))}
	if i < len(f.params) {
		e.Index, e.Want = i, int64(f.params[i].bytes)
		e.Parameter, e.Type = f.described[i].Name, f.described[i].Type
	}
	last.Store(e)
	return e
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
