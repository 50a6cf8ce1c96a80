package gpus

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/jsonform"
)

// Device is a GPU, as of one reading.
type Device struct {
	Index int    `json:"index"` // NVML's and nvidia-smi's number, which is not CUDA's
	Name  string `json:"name"`
	UUID  string `json:"uuid"` // as "GPU-" and 32 hexadecimal digits in groups
	PCI   string `json:"pci"`  // as "0000:3b:00.0"

	TotalBytes int64 `json:"total_bytes"`
	UsedBytes  int64 `json:"used_bytes"` // of all processes, and of the driver where ReservedBytes is 0
	FreeBytes  int64 `json:"free_bytes"`
	// ReservedBytes are the driver's own; 0: part of UsedBytes, with drivers before 510.
	ReservedBytes int64 `json:"reserved_bytes"`
	MemoryKnown   bool  `json:"memory_known"` // false: the four above are 0

	Processes      []Process `json:"processes"`       // the most bytes first; those whose bytes are not known come last
	ProcessesKnown bool      `json:"processes_known"` // false: some are missing

	// Problems are the failures of questions about the device, a *CallError or an *AnswerError each.
	Problems []error `json:"-"`
}

// MarshalJSON implements json.Marshaler: problems are texts, and an empty list is [].
func (d Device) MarshalJSON() ([]byte, error) {
	type plain Device
	p := plain(d)
	p.Processes = jsonform.List(d.Processes)
	problems := []string{}
	for _, err := range d.Problems {
		problems = append(problems, err.Error())
	}
	return json.Marshal(struct {
		plain
		Problems []string `json:"problems"`
	}{p, problems})
}

// Kind is a set of kinds of contexts.
type Kind uint8

// The kinds.
const (
	Compute  Kind = 1 << iota // CUDA
	Graphics                  // OpenGL, Vulkan and others
	MPS                       // a client of the Multi-Process Service
)

// kinds are the letters that nvidia-smi has for kinds, in its order.
var kinds = [...]struct { //nolint:gochecknoglobals // constant table
	kind   Kind
	letter string
}{{MPS, "M"}, {Compute, "C"}, {Graphics, "G"}}

// String returns the letters of nvidia-smi: "C", "G", "M", and "C+G" for a set.
func (k Kind) String() string {
	var letters []string
	for _, one := range kinds {
		if k&one.kind != 0 {
			letters = append(letters, one.letter)
		}
	}
	return strings.Join(letters, "+")
}

// MarshalText implements encoding.TextMarshaler, as String writes.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler: it reads the texts that MarshalText writes.
func (k *Kind) UnmarshalText(text []byte) error {
	var set Kind
	for _, one := range kinds {
		set |= one.kind
	}
	for known := range set + 1 {
		if known.String() == string(text) {
			*k = known
			return nil
		}
	}
	return fmt.Errorf("gpus: %q is no kind of process", text)
}

// NoInstance is the Instance of a process on a GPU without MIG.
const NoInstance = -1

// Process is a process with a context on a device.
type Process struct {
	PID        int    `json:"pid"`
	Command    string `json:"command"` // the name of its program, without arguments; "": not known
	Place      Place  `json:"place"`
	Bytes      int64  `json:"bytes"`
	BytesKnown bool   `json:"bytes_known"` // false: Bytes is 0
	Kinds      Kind   `json:"kinds"`
	Instance   int    `json:"instance"` // of MIG, or NoInstance
	Own        bool   `json:"own"`      // this process
}

// sortProcesses sorts by bytes, the most first, and then by PID.
func sortProcesses(all []Process) {
	slices.SortFunc(all, func(a, b Process) int {
		if a.BytesKnown != b.BytesKnown {
			if a.BytesKnown {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.PID, b.PID), cmp.Compare(a.Instance, b.Instance))
	})
}

// Find returns the device that is a GPU of CUDA: the one of the same UUID, or else of the same PCI address, as for an instance of
// MIG.
func Find(devices []Device, gpu cudadrv.Info) (Device, bool) {
	if gpu.UUID != (cudadrv.UUID{}) {
		for _, d := range devices {
			if id, ok := parseUUID(d.UUID); ok && id == gpu.UUID {
				return d, true
			}
		}
	}
	if gpu.PCI != "" {
		for _, d := range devices {
			if strings.EqualFold(d.PCI, gpu.PCI) {
				return d, true
			}
		}
	}
	return Device{}, false
}

// parseUUID reads "GPU-" and 32 hexadecimal digits in five groups.
func parseUUID(text string) (id cudadrv.UUID, ok bool) {
	digits, ok := strings.CutPrefix(text, "GPU-")
	digits = strings.ReplaceAll(digits, "-", "")
	if !ok || len(digits) != hex.EncodedLen(len(id)) {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(digits))
	return id, err == nil
}
