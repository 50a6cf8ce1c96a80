package model

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
)

// Draw says how the tokens of a sequence are drawn, on the device.
type Draw struct {
	Temperature float64 // logits are divided by it. 0: always the most probable token, of equal ones the first
	Top         int     // so many of the most probable tokens are drawn, and those as probable as the last of them; 0: all
	Seed        uint64  // the same seed, prompt and model draw the same tokens
}

// check returns a *ConfigError for numbers by which no kernel can draw.
func (d Draw) check() error {
	if !(d.Temperature >= 0 && d.Temperature <= math.MaxFloat32) || d.Top < 0 || d.Top > mostOf { // NaN is neither
		return &ConfigError{fmt.Sprintf("Temperature %v and Top %d: want 0 or more", d.Temperature, d.Top)}
	}
	return nil
}

// Sequence is a text that a Decoder continues, with its keys and values in pages of device memory. Decoder.NewSequence makes
// one, and Free frees its pages. It is for one goroutine at a time.
type Sequence struct {
	decoder *Decoder
	pages   vram.Batch
	buffers []cuda.Buffer
	draw    Draw

	limit    int   // most positions
	position int   // of the token that the next step takes; 0 before the prefill
	token    int64 // that token
	freed    bool
}

// PageBytes returns the size of a page: the keys and values of Decoding.PageRows positions in all layers.
func (d *Decoder) PageBytes() int64 {
	c := d.config
	return int64(2*c.Layers*c.Width) * int64(d.decoding.PageRows) * int64(c.Type.Size())
}

// SequenceBytes returns the memory of a sequence of so many tokens, prompt and continuation together.
func (d *Decoder) SequenceBytes(tokens int) int64 { return int64(d.pagesOf(tokens)) * d.PageBytes() }

// pagesOf returns the number of pages for a sequence. Its last token needs no keys.
func (d *Decoder) pagesOf(tokens int) int {
	return max(1, (tokens-1+d.decoding.PageRows-1)/d.decoding.PageRows)
}

// NewSequence allocates the pages of a sequence of so many tokens, prompt and continuation together: all or none, charged to the
// tenant, which may be nil. Where memory is short it waits until ctx ends, and holds nothing: so sequences cannot block each
// other. Any number of goroutines may call it. Errors: *ConfigError, and as vram's AllocBatchFor.
func (d *Decoder) NewSequence(ctx context.Context, tokens int, draw Draw, tenant *vram.Tenant) (*Sequence, error) {
	if tokens < 2 || tokens > d.config.Context+1 {
		return nil, &ConfigError{fmt.Sprintf("a sequence of %d tokens: want 2 to %d", tokens, d.config.Context+1)}
	}
	if err := draw.check(); err != nil {
		return nil, err
	}
	bytes := make([]int64, d.pagesOf(tokens))
	for i := range bytes {
		bytes[i] = d.PageBytes()
	}
	pages, err := d.steps.c.Stream().AllocBatchFor(ctx, vram.BatchRequest{Bytes: bytes, Wait: true, Tag: "keys and values", Tenant: tenant})
	if err != nil {
		return nil, err
	}
	return &Sequence{decoder: d, pages: pages, buffers: pages.Buffers(), draw: draw, limit: tokens - 1}, nil
}

// Free frees the pages, after the work that was submitted on them. No call of Prefill or Step has the sequence then, or gets it
// later. Idempotent.
func (s *Sequence) Free() error {
	if s.freed {
		return nil
	}
	s.freed = true
	return s.pages.Free()
}

// Bytes returns the size of the pages.
func (s *Sequence) Bytes() int64 { return int64(len(s.buffers)) * s.decoder.PageBytes() }

// Left returns the number of tokens that Step can still make.
func (s *Sequence) Left() int { return s.limit - s.position }

// state is memory that the kernels read and write: the token and the position of each row, and of each sequence its table of
// pages and its draws. The host writes all of it where sequences come or go; else the kernels advance it.
type state struct {
	rows, sequences, pages int
	buffer                 cuda.Buffer
}

// The fields of the state, in their order.
func (s *state) tokens() cuda.Range    { return cuda.Part(s.buffer, 0, int64(8*s.rows)) }
func (s *state) seeds() cuda.Range     { return s.after(s.tokens(), 8*s.sequences) }
func (s *state) table() cuda.Range     { return s.after(s.seeds(), 8*s.sequences*s.pages) }
func (s *state) positions() cuda.Range { return s.after(s.table(), 4*s.sequences) }
func (s *state) tops() cuda.Range      { return s.after(s.positions(), 4*s.sequences) }
func (s *state) heats() cuda.Range     { return s.after(s.tops(), 4*s.sequences) } // temperatures

func (s *state) after(r cuda.Range, bytes int) cuda.Range {
	return cuda.Part(s.buffer, r.Offset+r.Bytes, int64(bytes))
}

// bytes returns the size of the state.
func (s *state) bytes() int64 {
	return int64(8*(s.rows+s.sequences+s.sequences*s.pages) + 12*s.sequences)
}

// unused is the position of a row without a sequence.
const unused = -1

// write writes the state of sequences; rows without one are not used. tokens: of the rows.
func (s *state) write(c *cuda.Context, tokens []int64, all []*Sequence) error {
	to := make([]byte, s.bytes())
	for i, token := range tokens {
		binary.LittleEndian.PutUint64(to[8*i:], uint64(token)) //nolint:gosec // its bits
	}
	for i := range s.sequences {
		word := func(field cuda.Range, value uint32) {
			binary.LittleEndian.PutUint32(to[field.Offset+int64(4*i):], value)
		}
		if i >= len(all) {
			position := unused
			word(s.positions(), uint32(position)) //nolint:gosec // its bits
			continue
		}
		x := all[i]
		binary.LittleEndian.PutUint64(to[s.seeds().Offset+int64(8*i):], x.draw.Seed)
		for j, b := range x.buffers {
			binary.LittleEndian.PutUint64(to[s.table().Offset+int64(8*(i*s.pages+j)):], uint64(b.Ptr()))
		}
		word(s.positions(), uint32(x.position)) //nolint:gosec // not negative
		word(s.tops(), uint32(x.draw.Top))      //nolint:gosec // checked
		word(s.heats(), math.Float32bits(float32(x.draw.Temperature)))
	}
	return cuda.Store(c, cuda.Whole(s.buffer), to)
}
