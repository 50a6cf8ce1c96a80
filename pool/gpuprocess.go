package pool

import (
	"fmt"
	"strings"

	"github.com/go-vram/vram/internal/units"
)

// GPUProcess is a process with memory on a GPU: see vram.Config.Processes.
type GPUProcess struct {
	PID        int    `json:"pid"`     // as this process sees it
	Command    string `json:"command"` // the name of its program; "": not known
	Place      string `json:"place"`   // its container, pod or unit; "": not known
	Bytes      int64  `json:"bytes"`
	BytesKnown bool   `json:"bytes_known"` // false: Bytes is 0
	Own        bool   `json:"own"`         // this process
}

// String formats the process as "12 GiB by python3 (PID 4711, pod 6f1c…)".
func (p GPUProcess) String() string {
	text := "unknown bytes"
	if p.BytesKnown {
		text = units.Bytes(p.Bytes)
	}
	if p.Command != "" {
		text += " by " + p.Command
	}
	text += fmt.Sprintf(" (PID %d", p.PID)
	if p.Place != "" {
		text += ", " + p.Place
	}
	return text + ")"
}

// describeProcesses names the largest other processes on the GPU in one line.
func (e *OutOfMemoryError) describeProcesses(b *strings.Builder) {
	for i, p := range e.Processes[:min(len(e.Processes), maxHolders)] {
		b.WriteString([...]string{"; other processes on the GPU: ", " / "}[min(i, 1)] + p.String())
	}
}

// reportProcesses writes a line for each other process on the GPU.
func (e *OutOfMemoryError) reportProcesses(b *strings.Builder) {
	if e.ProcessesErr != nil {
		fmt.Fprintf(b, "other processes on the GPU are not known: %v\n", e.ProcessesErr)
		return
	}
	writeLines(b, "other processes on the GPU", e.Processes)
}
