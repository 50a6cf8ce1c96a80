package bytecheck

import "bytes"

// run is a number of bytes with one value.
type run struct {
	bytes int64
	value byte
}

// content has the expected bytes of a buffer, from its first on. It never changes: a pending reading keeps the content of its
// moment.
type content []run

// fillOf is the content that a fill with that seed makes: up to four runs, so that bytes in the wrong place show.
// No value of it is 0 or scribble.
func fillOf(bytes int64, seed uint64) content {
	if bytes == 0 {
		return nil
	}
	const most = 4 // not more: each is a driver call; not fewer: halves that are exchanged would look alike
	length := max(512, (bytes+most-1)/most)
	c := make(content, 0, most)
	for i := uint64(0); bytes > 0; i++ {
		n := min(length, bytes)
		c = append(c, run{n, byte(1 + (seed+i*97)%(scribble-1))})
		bytes -= n
	}
	return c
}

// zeros is the content of zeroed memory.
func zeros(bytes int64) content { return content{{bytes, 0}} }

// part is the content from offset on, of that many bytes.
func (c content) part(offset, bytes int64) content {
	out := make(content, 0, len(c))
	for _, r := range c {
		skipped := min(offset, r.bytes)
		offset -= skipped
		if n := min(r.bytes-skipped, bytes); n > 0 {
			out = append(out, run{n, r.value})
			bytes -= n
		}
	}
	return out
}

// overwritten is c after the first n bytes of src were copied over its own.
func (c content) overwritten(src content, n, ofBytes int64) content {
	return append(src.part(0, n), c.part(n, ofBytes-n)...)
}

// differs finds the first byte of got that is not as c has it. All of got is looked at; c has as many bytes.
func (c content) differs(got []byte) (offset int64, want byte, found bool) {
	for _, r := range c {
		b := got[:r.bytes]
		got = got[r.bytes:]
		// The first is right and each is like the one before: a comparison at the speed of memory.
		if b[0] != r.value || !bytes.Equal(b[1:], b[:len(b)-1]) {
			for i := range b {
				if b[i] != r.value {
					return offset + int64(i), r.value, true
				}
			}
		}
		offset += r.bytes
	}
	return 0, 0, false
}
