package heapprofile

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/site"
)

// Write writes the devices' memory as a compressed profile. Errors: the writer's.
func Write(w io.Writer, devices ...*vram.Device) error {
	if err := Of(devices...).Write(w); err != nil {
		return fmt.Errorf("heapprofile: %w", err)
	}
	return nil
}

// Of returns the devices' memory at this moment.
func Of(devices ...*vram.Device) *profile.Profile {
	b := builder{
		profile: &profile.Profile{
			SampleType: []*profile.ValueType{
				{Type: "alloc_objects", Unit: "count"},
				{Type: "alloc_space", Unit: "bytes"},
				{Type: "inuse_objects", Unit: "count"},
				{Type: "inuse_space", Unit: "bytes"},
			},
			DefaultSampleType: "inuse_space",
			TimeNanos:         time.Now().UnixNano(),
			PeriodType:        &profile.ValueType{Type: "space", Unit: "bytes"},
			Mapping: []*profile.Mapping{{
				ID: 1, File: valid(filepath.Base(os.Args[0])), HasFunctions: true, HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true,
			}},
		},
		functions: map[function]*profile.Function{}, locations: map[place]*profile.Location{},
	}
	for _, d := range devices {
		b.add(d)
	}
	return b.profile
}

// function and place are the keys of a profile's entries.
type (
	function struct{ name, file string }
	place    struct {
		function
		line int
	}
)

// builder makes a profile.
type builder struct {
	profile   *profile.Profile
	functions map[function]*profile.Function
	locations map[place]*profile.Location
}

// add adds the samples of a device.
func (b *builder) add(d *vram.Device) {
	p := d.Profile()
	b.profile.Period = max(b.profile.Period, p.SampleBytes)
	if len(p.Records) == 0 { // Info would open a device that nobody has used
		return
	}
	info := d.Info()
	device := fmt.Sprintf("%d (%s)", info.Ordinal, valid(info.Name))
	b.profile.Comments = append(b.profile.Comments, fmt.Sprintf("device %s: SampleBytes %d", device, p.SampleBytes))
	for i := range p.Records {
		r := &p.Records[i]
		labels := map[string][]string{"device": {device}}
		if r.Stream != 0 {
			labels["stream"] = []string{fmt.Sprint(r.Stream)}
		}
		if r.Tag != "" {
			labels["tag"] = []string{valid(r.Tag)}
		}
		if r.Tenant != "" {
			labels["tenant"] = []string{valid(r.Tenant)}
		}
		b.profile.Sample = append(b.profile.Sample, &profile.Sample{
			Location: b.stack(r.Stack), Label: labels,
			Value: []int64{r.Allocated.Count, r.Allocated.Bytes, r.InUse.Count, r.InUse.Bytes},
		})
	}
}

// valid returns a text as UTF-8, which all texts of a profile have to be: those that read it refuse the whole profile
// otherwise.
func valid(text string) string { return strings.ToValidUTF8(text, "\ufffd") }

// otherPlaces stands for the places that the device counts together.
const otherPlaces = "vram: other places"

func (b *builder) stack(s site.Stack) (all []*profile.Location) {
	if !s.Known() {
		return []*profile.Location{b.location(&runtime.Frame{Function: otherPlaces})}
	}
	frames := s.Frames()
	for i := range frames {
		all = append(all, b.location(&frames[i]))
	}
	return all
}

func (b *builder) location(f *runtime.Frame) *profile.Location {
	at := place{function{f.Function, f.File}, f.Line}
	if l := b.locations[at]; l != nil {
		return l
	}
	l := &profile.Location{
		ID: uint64(len(b.locations) + 1), Mapping: b.profile.Mapping[0], Address: uint64(f.PC),
		Line: []profile.Line{{Function: b.function(at.function), Line: int64(f.Line)}},
	}
	b.locations[at] = l
	b.profile.Location = append(b.profile.Location, l)
	return l
}

func (b *builder) function(of function) *profile.Function {
	if f := b.functions[of]; f != nil {
		return f
	}
	name := valid(of.name)
	f := &profile.Function{ID: uint64(len(b.functions) + 1), Name: name, SystemName: name, Filename: valid(of.file)}
	b.functions[of] = f
	b.profile.Function = append(b.profile.Function, f)
	return f
}
