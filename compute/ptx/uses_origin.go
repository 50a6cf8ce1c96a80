package ptx

// level says how a pointer is part of a value.
type level uint8

const (
	absent level = iota
	index        // a number was computed from it
	half         // 32 of its bits, in a register of 32 bits or more
	base         // the pointer itself, perhaps with an offset
)

// anywhere is the offset of an address in a variable that the text does not tell.
const anywhere = int64(-1) << 63

// origin is where a value comes from: everything that it may be computed from. It only grows, in join.
type origin struct {
	set    bool                // something defines the value
	number bool                // it may be a number without a pointer
	loaded level               // from memory that is not followed
	gap    bool                // it may be the difference of two pointers
	bent   bool                // it may be a pointer whose bits were moved
	mixed  bool                // two parts may be the pointer, and one of them is an index
	fixed  bool                // it may be the address of a variable of the module, of the heap, or of the driver
	shared bool                // it may be an address in shared memory
	roots  map[int]level       // pointers of the parameters
	places map[*Variable]int64 // addresses of variables in local memory and of parameters: the offset, or anywhere
}

// join adds the origins of o, and reports whether they were new.
func (v *origin) join(o origin) (grown bool) {
	flag := func(to *bool, from bool) {
		if from && !*to {
			*to, grown = true, true
		}
	}
	flag(&v.set, o.set)
	flag(&v.number, o.number)
	flag(&v.gap, o.gap)
	flag(&v.bent, o.bent)
	flag(&v.mixed, o.mixed)
	flag(&v.fixed, o.fixed)
	flag(&v.shared, o.shared)
	if o.loaded > v.loaded {
		v.loaded, grown = o.loaded, true
	}
	for r, l := range o.roots {
		if l > v.roots[r] {
			if v.roots == nil {
				v.roots = map[int]level{}
			}
			v.roots[r], grown = l, true
		}
	}
	for p, offset := range o.places {
		switch before, ok := v.places[p]; {
		case !ok:
			if v.places == nil {
				v.places = map[*Variable]int64{}
			}
			v.places[p], grown = offset, true
		case before != offset && before != anywhere:
			v.places[p], grown = anywhere, true
		}
	}
	return grown
}

// mapped returns the origin with each level changed, where a level may only fall or stay.
func (v origin) mapped(to func(level) level) origin {
	v.loaded = to(v.loaded)
	if len(v.roots) > 0 {
		roots := make(map[int]level, len(v.roots))
		for r, l := range v.roots {
			roots[r] = to(l)
		}
		v.roots = roots
	}
	return v
}

// highest returns the highest level of a part.
func (v origin) highest() level {
	highest := v.loaded
	for _, l := range v.roots {
		highest = max(highest, l)
	}
	return highest
}

// based reports whether the value may be an address that is followed.
func (v origin) based() bool {
	if v.fixed || v.shared || len(v.places) > 0 {
		return true
	}
	for _, l := range v.roots {
		if l == base {
			return true
		}
	}
	return false
}

// moved returns the origin with its addresses of variables at offsets that are not known.
func (v origin) moved() origin { return v.shifted(anywhere) }

// shifted adds a constant to the addresses of variables.
func (v origin) shifted(by int64) origin {
	if len(v.places) == 0 || by == 0 {
		return v
	}
	places := make(map[*Variable]int64, len(v.places))
	for p, offset := range v.places {
		if offset != anywhere && by != anywhere {
			places[p] = offset + by
		} else {
			places[p] = anywhere
		}
	}
	v.places = places
	return v
}

// narrowed returns the origin in a register or in memory of so many bits.
func (v origin) narrowed(bits int) origin {
	switch {
	case bits >= 64: //nolint:mnd // a pointer
		return v
	case bits >= 32: //nolint:mnd // half a pointer
		return v.mapped(func(l level) level { return min(l, half) }).moved()
	}
	return v.bend()
}

// widened returns the origin of a value of 64 bits that is put together from halves.
func (v origin) widened() origin {
	return v.mapped(func(l level) level {
		if l == half {
			return base
		}
		return l
	})
}

// bend returns the origin of a value whose bits were moved, so that it is an index where it is added to a pointer.
func (v origin) bend() origin {
	v.bent = v.bent || v.highest() >= half
	v.number = true
	return v.mapped(func(l level) level { return min(l, index) }).moved()
}

// scaled returns the origin of a product, a quotient or another number that is no pointer. A quotient of a distance may be a
// distance again.
func (v origin) scaled() origin {
	loaded := v.loaded
	v.number = true
	v = v.mapped(func(l level) level { return min(l, index) }).moved()
	if v.gap {
		v.loaded = loaded
	}
	return v
}

// demoted returns the origin of a number that is added to a pointer. The distance to another pointer stays.
func (v origin) demoted() origin {
	if v.gap {
		return v
	}
	v = v.mapped(func(l level) level { return min(l, index) })
	v.bent = false
	return v
}

// union returns the origins of both.
func union(all ...origin) (v origin) {
	for _, o := range all {
		v.join(o)
	}
	return v
}
