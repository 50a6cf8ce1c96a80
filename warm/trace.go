package warm

import (
	"io"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/internal/trace"
)

// FromTrace returns the buffers that were live at the peak of a recorded run, largest first. The recording is comma-separated
// text, plain or gzip, with the header line
//
//	t_us,op,id,size,stream
//
// and one line per event: microseconds, a or f, the buffer's number from 0 in order of allocation, bytes, and the stream's
// number. Errors have name and the line's number, and wrap an error of r.
func FromTrace(name string, r io.Reader) ([]vram.Demand, error) {
	t, err := trace.Read(name, r)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the recording
	}
	var want []vram.Demand
	for _, h := range t.AtPeak() {
		want = append(want, vram.Demand(h))
	}
	return want, nil
}
