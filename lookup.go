package vram

// Lookup finds the live buffer in whose memory an address lies, at its beginning or inside: for
// code that has only an address, a view of a tensor for instance, and has to announce a use with
// RecordStream. The result stands for the same allocation as the original buffer; only its Bytes
// may be more, the length of the whole block. It is false for free, cached and pending memory, for
// a buffer that is being transferred at this moment, and for addresses that are not this device's.
// The caller makes sure that the buffer is not freed meanwhile.
//
// It asks the streams one after the other, in the order in which they were opened, and waits for
// the request that each is serving. The first call visits every block of a stream; later ones take
// logarithmic time.
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
