package sleep

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/host"
	"github.com/go-vram/vram/streams"
)

// piece is a range of device memory, and where its bytes lie in a block of the host.
type piece struct {
	at            cudadrv.Ptr
	offset, bytes int64
}

// chunk is a block of host memory with the pieces in it.
type chunk struct {
	block  host.Block // zero before the chunk is saved
	bytes  int64
	pieces []piece
}

// plan divides memory, which is in order of address, into chunks of a bounded size. Adjacent ranges are one piece, within a
// chunk.
func plan(all []streams.Memory, chunkBytes int64) (chunks []chunk) {
	for _, b := range all {
		for at, left := b.Ptr, b.Bytes; left > 0; {
			if n := len(chunks); n == 0 || chunks[n-1].bytes == chunkBytes {
				chunks = append(chunks, chunk{})
			}
			c := &chunks[len(chunks)-1]
			bytes := min(left, chunkBytes-c.bytes)
			c.add(at, bytes)
			at += cudadrv.Ptr(bytes) //nolint:gosec // a part of a range
			left -= bytes
		}
	}
	return chunks
}

func (c *chunk) add(at cudadrv.Ptr, bytes int64) {
	if n := len(c.pieces); n > 0 {
		if last := &c.pieces[n-1]; last.at+cudadrv.Ptr(last.bytes) == at { //nolint:gosec // a part of a range
			last.bytes += bytes
			c.bytes += bytes
			return
		}
	}
	c.pieces = append(c.pieces, piece{at, c.bytes, bytes})
	c.bytes += bytes
}

// each visits the pieces with their bytes in the host's memory.
func (c *chunk) each(visit func(at cudadrv.Ptr, bytes []byte) error) error {
	all := c.block.Bytes()
	for _, p := range c.pieces {
		if err := visit(p.at, all[p.offset:p.offset+p.bytes]); err != nil {
			return err
		}
	}
	return nil
}

// blocks returns the blocks of chunks.
func blocks(chunks []chunk) (all []host.Block) {
	for i := range chunks {
		if chunks[i].block.Live() {
			all = append(all, chunks[i].block)
		}
	}
	return all
}
