package vram

// Lookup finds the live buffer in whose memory an address lies, at its beginning or inside: views of a buffer know no more
// than an address, and dev.Lookup(p) and then RecordStream announces their uses. The result is the same buffer as its allocation
// returned, but that Bytes is the length of its block, which may be more than was asked for. It reports false for memory that is free,
// cached or pending, for a buffer that is being handed over at this moment, and for foreign addresses. The caller sees to it that nobody frees the buffer meanwhile. It takes a turn
// of the streams in the order in which they were opened, until one has it, and the first call visits every block of theirs; later ones
// take logarithmic time.
func (d *Device) Lookup(p Ptr) (Buffer, bool) {
	if !d.opened() {
		return Buffer{}, false
	}
	for _, s := range d.streams.Load().open {
		if b, found := s.Lookup(p); found {
			return b, true
		}
	}
	return Buffer{}, false
}
