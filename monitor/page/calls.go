package page

import (
	"cmp"
	"runtime"
	"slices"

	"github.com/go-vram/vram"
)

// mostCalls is how many call stacks calls.json has. Not more: with 24 frames each they are 100 KiB.
const mostCalls = 40

// Calls is the answer of calls.json: the call stacks with the most live bytes, the most first, by vram.Device.Profile.
type Calls struct {
	// SampleBytes is vram.Config.SampleBytes as it is in force; 0: the device does not sample.
	SampleBytes int64  `json:"sampleBytes"`
	StackCount  int    `json:"stackCount"` // call stacks with live bytes: Calls has the first of them
	LiveBytes   int64  `json:"liveBytes"`  // of all of them
	Calls       []Call `json:"calls"`
}

// Call is a call stack and the live buffers that were allocated there, as the samples estimate them.
type Call struct {
	Frames      []Frame `json:"frames"` // the innermost first; none: the places beyond those that the profile keeps apart
	LiveBytes   int64   `json:"liveBytes"`
	BufferCount int64   `json:"bufferCount"`
}

// Frame is a place in a program.
type Frame struct {
	Function string `json:"function"`
	File     string `json:"file"`
	Line     int    `json:"line"`
}

// callsOf adds up the records of a profile by call stack, as the program has it: inside the allocator the calls from one place
// may differ.
func callsOf(p vram.Profile) Calls {
	out := Calls{SampleBytes: p.SampleBytes, Calls: []Call{}}
	at := map[string]int{} // in out.Calls
	for _, r := range p.Records {
		if r.InUse.Bytes <= 0 {
			continue
		}
		key := r.Stack.Trace("")
		i, found := at[key]
		if !found {
			i = len(out.Calls)
			at[key] = i
			out.Calls = append(out.Calls, Call{Frames: framesOf(r.Stack.Frames())})
		}
		out.Calls[i].LiveBytes += r.InUse.Bytes
		out.Calls[i].BufferCount += r.InUse.Count
		out.LiveBytes += r.InUse.Bytes
	}
	slices.SortStableFunc(out.Calls, func(a, b Call) int { return cmp.Compare(b.LiveBytes, a.LiveBytes) })
	out.StackCount = len(out.Calls)
	out.Calls = out.Calls[:min(len(out.Calls), mostCalls)]
	return out
}

func framesOf(all []runtime.Frame) []Frame {
	frames := []Frame{}
	for _, f := range all {
		frames = append(frames, Frame{f.Function, f.File, f.Line})
	}
	return frames
}
