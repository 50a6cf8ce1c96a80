package warm

import (
	"io"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/internal/trace"
)

// FromTrace is what a recorded run held when it held most, longest buffers first. The recording is comma-separated text,
// plain or gzip, with the header line
//
//	t_us,op,id,size,stream
//
// and one line an event: microseconds, a or f, the buffer's number from 0 in order of allocation, bytes, the
// stream's number. Name is for errors, which say the line and what is wrong with it; others are r's.
func FromTrace(name string, r io.Reader) ([]vram.Demand, error) {
	t, err := trace.Read(name, r)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names what was read
	}
	var want []vram.Demand
	for _, h := range t.AtPeak() {
		want = append(want, vram.Demand(h))
	}
	return want, nil
}
