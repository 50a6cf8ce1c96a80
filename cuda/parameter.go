package cuda

import (
	"errors"
	"slices"
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
)

// Parameter is a parameter of a kernel.
type Parameter struct {
	Name   string `json:"name"`   // "" where the kernel's text is not known
	Type   string `json:"type"`   // as PTX writes it, as ".f32", ".u64 .ptr" or ".align 8 .b8[24]"; "" where it is not known
	Offset int64  `json:"offset"` // in bytes, in the buffer of all parameters: see Context.LaunchPacked
	Bytes  int64  `json:"bytes"`
}

// param is a parameter as launches need it.
type param struct {
	offset, bytes int
	takes         kinds
}

// Parameters returns the kernel's parameters. Offsets and sizes are the driver's (CUDA 12.4 and later). Names and types are read
// from the PTX that the module was loaded from, alone or in a fat binary, unless its sizes disagree with the driver's. With an
// older driver all of it is read from PTX. known is false without either. It makes no driver call.
func (f *Function) Parameters() (all []Parameter, known bool) {
	if f == nil || !f.known {
		return nil, false
	}
	return slices.Clone(f.described), true
}

// askParams asks the driver for each parameter of the kernel: as many as the image has, or until there is no further one. Where
// the driver does not support the call and the text is not known, launches lay the arguments out as C does.
func (f *Function) askParams() error {
	text, counted := f.module.signatures[f.name]
	for count := text.count; !counted || len(f.params) < count; {
		offset, bytes, err := f.module.on.kernels.FuncGetParamInfo(f.handle, len(f.params))
		switch {
		case errors.Is(err, cudadrv.InvalidValue): // it has no more
			count, counted = len(f.params), true
			continue
		case errors.Is(err, cudadrv.NotSupported):
			f.params = nil
			if places := text.places(); places != nil {
				f.describe(places, text.params)
			}
			return nil
		case err != nil:
			return err
		}
		f.params = append(f.params, param{int(offset), int(bytes), anyKind})
	}
	if !text.agrees(f.params) {
		text.params = nil
	}
	f.describe(f.params, text.params)
	return nil
}

// describe sets the parameters, with their types where the text is known.
func (f *Function) describe(all []param, text []textParam) {
	f.params, f.known = all, true
	f.described = make([]Parameter, len(all))
	f.refusals = make([]atomic.Pointer[ArgumentError], len(all)+1)
	for i := range all {
		p := &all[i]
		f.described[i] = Parameter{Offset: int64(p.offset), Bytes: int64(p.bytes)}
		if i < len(text) {
			p.takes = text[i].takes()
			f.described[i].Name, f.described[i].Type = text[i].name, text[i].text()
		}
		f.paramBytes = max(f.paramBytes, p.offset+p.bytes)
	}
}

// places lays the parameters out as PTX does: nil where the text is not known.
func (s signature) places() []param {
	if s.params == nil {
		return nil
	}
	all, end := make([]param, len(s.params)), 0
	for i, p := range s.params {
		if p.typ == nil {
			return nil
		}
		end = alignUp(end, int(p.align))
		all[i] = param{end, int(p.bytes), anyKind}
		end += int(p.bytes)
	}
	return all
}

// agrees reports whether the text has the sizes of all parameters whose type it tells, and the offsets up to the first one whose
// type it does not tell.
func (s signature) agrees(all []param) bool {
	if len(s.params) != len(all) {
		return false
	}
	end, laid := 0, true
	for i, p := range s.params {
		if laid = laid && p.typ != nil; p.typ == nil {
			continue
		}
		end = alignUp(end, int(p.align))
		if all[i].bytes != int(p.bytes) || laid && all[i].offset != end {
			return false
		}
		end += int(p.bytes)
	}
	return true
}

// alignUp returns the first multiple of an alignment that is not below an offset.
func alignUp(offset, align int) int { return (offset + align - 1) &^ (align - 1) }
