package page

import (
	"context"
	"time"

	"github.com/go-vram/vram"
)

const (
	// mostProcesses bounds the list of processes, as mostWaiting does its own.
	mostProcesses = 20
	// processesLimit bounds the wait for the list. Not longer: the sample waits for it.
	processesLimit = 250 * time.Millisecond
)

// Process is a process with memory on the GPU: see vram.Config.Processes.
type Process struct {
	PID        int    `json:"pid"`
	Command    string `json:"command,omitempty"`
	Place      string `json:"place,omitempty"`
	Bytes      int64  `json:"bytes"`
	BytesKnown bool   `json:"bytesKnown"`
	Own        bool   `json:"own,omitempty"` // the process of the page
}

// readProcesses lists the processes on the GPU of a device in use, if vram.Config.Processes does.
func (d *Device) readProcesses(dev *vram.Device) {
	ctx, cancel := context.WithTimeout(context.Background(), processesLimit)
	defer cancel()
	all, err := dev.GPUProcesses(ctx)
	if err != nil {
		return
	}
	d.ProcessesKnown, d.ProcessCount = true, len(all)
	for _, p := range all[:min(len(all), mostProcesses)] {
		d.Processes = append(d.Processes, Process(p))
	}
}
