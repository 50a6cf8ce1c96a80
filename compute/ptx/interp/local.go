package interp

import "encoding/binary"

// localMemory is the stack of one thread.
type localMemory struct {
	bytes       []byte
	initialised []bool
}

func (l *localMemory) clear() { l.bytes, l.initialised = l.bytes[:0], l.initialised[:0] }

// grow makes the stack at least so large.
func (l *localMemory) grow(end int) {
	for len(l.bytes) < end {
		l.bytes, l.initialised = append(l.bytes, 0), append(l.initialised, false)
	}
}

// forget makes a part of the stack uninitialised, for a function that begins.
func (l *localMemory) forget(start, bytes int) { clear(l.initialised[start : start+bytes]) }

func (l *localMemory) mark(start, bytes int) {
	for n := start; n < start+bytes; n++ {
		l.initialised[n] = true
	}
}

// copy moves bytes and their initialisation.
func (l *localMemory) copy(to, from, bytes int) {
	copy(l.bytes[to:to+bytes], l.bytes[from:from+bytes])
	copy(l.initialised[to:to+bytes], l.initialised[from:from+bytes])
}

// holes reports whether some bytes were not written.
func (l *localMemory) holes(start, bytes int) bool {
	for _, yes := range l.initialised[start : start+bytes] {
		if !yes {
			return true
		}
	}
	return false
}

// undefinedBits returns the undefined bits of a number in memory, whose bytes were not written.
func (l *localMemory) undefinedBits(start, bytes int) (missing uint64) {
	for n, yes := range l.initialised[start : start+bytes] {
		if !yes {
			missing |= 0xff << (8 * n) //nolint:mnd // a byte
		}
	}
	return missing
}

// lose makes the bytes uninitialised that have an undefined bit.
func (l *localMemory) lose(start, bytes int, missing uint64) {
	for n := range bytes {
		if missing>>(8*n)&0xff != 0 { //nolint:mnd // a byte
			l.initialised[start+n] = false
		}
	}
}

// load reads a number of so many bytes.
func load(from []byte, bytes int) uint64 {
	switch bytes {
	case 1:
		return uint64(from[0])
	case 2: //nolint:mnd // a width
		return uint64(binary.LittleEndian.Uint16(from))
	case 4: //nolint:mnd // a width
		return uint64(binary.LittleEndian.Uint32(from))
	default:
		return binary.LittleEndian.Uint64(from)
	}
}

// store writes a number of so many bytes.
func store(to []byte, bytes int, v uint64) {
	switch bytes {
	case 1:
		to[0] = byte(v)
	case 2: //nolint:mnd // a width
		binary.LittleEndian.PutUint16(to, uint16(v)) //nolint:gosec // cut to the width
	case 4: //nolint:mnd // a width
		binary.LittleEndian.PutUint32(to, uint32(v)) //nolint:gosec // cut to the width
	default:
		binary.LittleEndian.PutUint64(to, v)
	}
}
