package memorymap

// Builder makes a list of ranges. The zero Builder merges only equal neighbours.
type Builder struct {
	// ResolutionBytes is the minimum length of a separate range.
	ResolutionBytes int64

	list  []Range
	last  Range // grows by equal neighbours; of no bytes: none
	small Range // of short neighbours in one cell; of no bytes: none
}

// Add adds a range that begins at the end of the previous one or later. A range of no bytes adds nothing.
func (b *Builder) Add(r Range) {
	switch {
	case r.Bytes == 0:
	case b.last.Bytes > 0 && r.continues(&b.last):
		b.last.Bytes += r.Bytes
		b.last.Buffers += r.Buffers
	default:
		b.place()
		b.last = r
	}
}

// List returns the list and empties the builder.
func (b *Builder) List() []Range {
	b.place()
	b.flush()
	list := b.list
	b.list = nil
	return list
}

// place adds the last range to the list, or to the short ones.
func (b *Builder) place() {
	r := b.last
	b.last = Range{}
	switch {
	case r.Bytes == 0:
	case r.Bytes >= b.ResolutionBytes:
		b.flush()
		b.list = append(b.list, r)
	case b.small.Bytes > 0 && r.Start == b.small.End() && r.Start/b.ResolutionBytes == b.small.Start/b.ResolutionBytes:
		b.small = mix(b.small, r)
	default:
		b.flush()
		b.small = r
	}
}

// flush adds the short ranges to the list.
func (b *Builder) flush() {
	if b.small.Bytes > 0 {
		b.list = append(b.list, b.small)
		b.small = Range{}
	}
}

// mix returns one range for two neighbours: in their common state, or mixed with the sums of both.
func mix(a, b Range) Range {
	out := Range{Start: a.Start, Bytes: a.Bytes + b.Bytes, Buffers: a.Buffers + b.Buffers}
	if a.Stream == b.Stream {
		out.Stream = a.Stream
	}
	if a.State == b.State && a.State != Mixed && a.Asleep == b.Asleep && (a.State != Free || a.Stream == b.Stream) {
		out.State, out.Asleep = a.State, a.Asleep
		if a.Tag == b.Tag {
			out.Tag = a.Tag
		}
		return out
	}
	out.State, out.Sums = Mixed, new(Sums)
	a.AddTo(out.Sums)
	b.AddTo(out.Sums)
	return out
}
