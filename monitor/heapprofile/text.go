package heapprofile

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/internal/units"
)

// WriteText writes the devices' memory as text: one paragraph for each place, those with most bytes first. Errors: the
// writer's.
func WriteText(w io.Writer, devices ...*vram.Device) error {
	var text bytes.Buffer
	for _, d := range devices {
		p := d.Profile()
		if len(p.Records) == 0 {
			fmt.Fprintf(&text, "\nno samples; SampleBytes is %d\n", p.SampleBytes)
			continue
		}
		info := d.Info()
		fmt.Fprintf(&text, "device %d (%s): one sample for %s\n", info.Ordinal, info.Name, units.Bytes(p.SampleBytes))
		slices.SortFunc(p.Records, func(a, b vram.ProfileRecord) int {
			return cmp.Or(cmp.Compare(b.InUse.Bytes, a.InUse.Bytes), cmp.Compare(b.Allocated.Bytes, a.Allocated.Bytes),
				cmp.Compare(a.Stream, b.Stream), slices.Compare(a.Stack, b.Stack))
		})
		for i := range p.Records {
			writeRecord(&text, &p.Records[i])
		}
	}
	if _, err := w.Write(text.Bytes()); err != nil {
		return fmt.Errorf("heapprofile: %w", err)
	}
	return nil
}

func writeRecord(text *bytes.Buffer, r *vram.ProfileRecord) {
	fmt.Fprintf(text, "\nin use %s in %s (%d sampled), allocated %s in %s (%d sampled)",
		units.Bytes(r.InUse.Bytes), units.Count(r.InUse.Count, "buffer"), r.InUse.SampledCount,
		units.Bytes(r.Allocated.Bytes), units.Count(r.Allocated.Count, "buffer"), r.Allocated.SampledCount)
	if r.Stream != 0 {
		fmt.Fprintf(text, ", stream %d", r.Stream)
	}
	if r.Tag != "" {
		fmt.Fprintf(text, ", tag %q", r.Tag)
	}
	if r.Tenant != "" {
		fmt.Fprintf(text, ", tenant %q", r.Tenant)
	}
	text.WriteByte('\n')
	if !r.Stack.Known() {
		fmt.Fprintf(text, "    %s\n", otherPlaces)
		return
	}
	text.WriteString(r.Stack.Trace("    "))
}
