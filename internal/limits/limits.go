package limits

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Limit is a bound, and where it is written. The zero value is none.
type Limit struct {
	Bytes  int64
	Source string
}

// least returns the lower of two limits.
func (l Limit) least(other Limit) Limit {
	if l.Source == "" || other.Source != "" && other.Bytes < l.Bytes {
		return other
	}
	return l
}

// Device names a GPU as the sources do.
type Device struct {
	Ordinal    int    // that the process sees
	PCI        string // as "0000:3b:00.0"; "": not known
	HostMemory bool   // it uses the host's memory
}

// Surroundings are the variables and files that have limits.
type Surroundings struct {
	Variable func(name string) (value string, ok bool) // os.LookupEnv
	Files    fs.FS                                     // of the root directory; nil: none
}

// SourceError is a source that cannot be read. It sets no limit.
type SourceError struct {
	Source string
	Err    error
}

// Error names the source.
func (p *SourceError) Error() string { return p.Source + ": " + p.Err.Error() }

// Unwrap returns Err.
func (p *SourceError) Unwrap() error { return p.Err }

var (
	errSize  = errors.New(`want a size as "8G", "512MB" or "4096"`)
	errPairs = errors.New(`want devices with sizes, as "0=8G,1=10GB"`)
	errLong  = errors.New("the file is longer than 64 KiB")
)

// Least returns the least limit on the memory of a device, and the sources that cannot be read. A limit of 0 bytes is one.
func (s Surroundings) Least(d Device) (least Limit, problems []*SourceError) {
	add := func(source string, bytes int64, ok bool, err error) {
		if err != nil {
			problems = append(problems, &SourceError{source, err})
		} else if ok {
			least = least.least(Limit{bytes, source})
		}
	}
	for _, v := range []struct {
		name string
		read func(text string) (bytes int64, ok bool, err error)
	}{
		{"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", func(text string) (int64, bool, error) { return ofDevice(text, d.Ordinal) }},
		{s.ofHAMi(d.Ordinal), func(text string) (int64, bool, error) {
			n, err := parseBytes(text)
			return n, n > 0, err // HAMi's 0 is none
		}},
	} {
		if text, ok := s.Variable(v.name); ok && strings.TrimSpace(text) != "" {
			n, ok, err := v.read(text)
			add(v.name, n, ok, err)
		}
	}
	for _, f := range s.groupFiles(d) {
		n, ok, err := f.limit()
		add("/"+f.path, n, ok, err)
	}
	return least, problems
}

// ofHAMi returns the name of the variable that HAMi reads for a device.
func (s Surroundings) ofHAMi(ordinal int) string {
	const all = "CUDA_DEVICE_MEMORY_LIMIT"
	one := all + "_" + strconv.Itoa(ordinal)
	if text, ok := s.Variable(one); ok && strings.TrimSpace(text) != "" {
		return one
	}
	return all
}

// ofDevice returns the size of a device in "0=8G,1=10GB"; the least, where it has several.
func ofDevice(text string, ordinal int) (bytes int64, ok bool, err error) {
	for pair := range strings.SplitSeq(text, ",") {
		name, size, found := strings.Cut(pair, "=")
		if !found {
			return 0, false, errPairs
		}
		device, err := strconv.ParseUint(strings.TrimSpace(name), 10, 31)
		if err != nil {
			return 0, false, errPairs
		}
		n, err := parseBytes(size)
		if err != nil {
			return 0, false, err
		}
		if int(device) == ordinal && (!ok || n < bytes) {
			bytes, ok = n, true
		}
	}
	return bytes, ok, nil
}

// mostBytes bounds a number from outside.
const mostBytes = 1 << 62

// parseBytes reads a size with a unit of MPS or HAMi: none, K, M, G or T, in either case, with or without a B.
func parseBytes(text string) (int64, error) {
	text = strings.ToUpper(strings.TrimSpace(text))
	number := strings.TrimSuffix(text, "B")
	shift := 0
	if number != "" {
		if i := strings.IndexByte("KMGT", number[len(number)-1]); i >= 0 {
			number, shift = number[:len(number)-1], 10*(i+1)
		}
	}
	n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 63)
	if err != nil || n > mostBytes>>shift {
		return 0, errSize
	}
	return int64(n) << shift, nil //nolint:gosec // at most mostBytes
}

// groupFile is a file of a control group that bounds memory.
type groupFile struct {
	files fs.FS
	path  string
	pci   string // the lines of the device's regions count; "": the file is one number
}

// groupFiles returns the files that may bound the memory of a device, from the process's own group up.
func (s Surroundings) groupFiles(d Device) []groupFile {
	if s.Files == nil || d.PCI == "" && !d.HostMemory {
		return nil
	}
	var all []groupFile
	for at := s.group(); ; at = path.Dir(at) {
		folder := path.Join(mount, at)
		if d.PCI != "" {
			all = append(all, groupFile{s.Files, path.Join(folder, "dmem.max"), strings.ToLower(d.PCI)})
		}
		if d.HostMemory {
			all = append(all, groupFile{s.Files, path.Join(folder, "memory.max"), ""})
		}
		if at == "/" {
			if d.PCI != "" {
				all = append(all, groupFile{s.Files, path.Join(folder, "dmem.capacity"), strings.ToLower(d.PCI)})
			}
			return all
		}
	}
}

// mount is the folder of control groups of version 2 on Linux distributions.
const mount = "sys/fs/cgroup"

// group returns the process's control group as the process sees it, "/" where that cannot be read: in a container the
// process's own group usually is the root that it sees.
func (s Surroundings) group() string {
	text, err := readFile(s.Files, "proc/self/cgroup")
	if err != nil {
		return "/"
	}
	for line := range strings.Lines(text) {
		if at, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "0::"); ok {
			return path.Clean("/" + at)
		}
	}
	return "/"
}

// limit reads the file: the least of its numbers that count. A file that is not there, regions that have no line, and "max" are no
// limit.
func (f groupFile) limit() (bytes int64, ok bool, err error) {
	text, err := readFile(f.files, f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if f.pci != "" {
			if len(fields) == 0 || !isRegion(strings.ToLower(fields[0]), f.pci) {
				continue
			}
			fields = fields[1:]
		}
		if len(fields) != 1 {
			return 0, false, fmt.Errorf("want a number or max: %q", clip(line))
		}
		if fields[0] == "max" {
			continue
		}
		n, err := strconv.ParseUint(fields[0], 10, 63)
		if err != nil {
			return 0, false, fmt.Errorf("want a number or max: %q", clip(line))
		}
		if n = min(n, mostBytes); !ok || int64(n) < bytes { //nolint:gosec // at most mostBytes
			bytes, ok = int64(n), true //nolint:gosec // likewise
		}
	}
	return bytes, ok, nil
}

// isRegion reports whether a region of dmem is the memory of the device: "nvidia/0000:3b:00.0/vidmem" of NVIDIA's driver, or
// "drm/0000:3b:00.0/vram0" of others.
func isRegion(name, pci string) bool {
	if name == "nvidia/"+pci+"/vidmem" {
		return true
	}
	number, ok := strings.CutPrefix(name, "drm/"+pci+"/vram")
	return ok && strings.Trim(number, "0123456789") == ""
}

// clip shortens a text for an error.
func clip(text string) string {
	const most = 80
	return text[:min(len(text), most)]
}

// readFile reads a short file.
func readFile(files fs.FS, name string) (string, error) {
	f, err := files.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	const most = 64 << 10
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && len(text) > most {
		err = errLong
	}
	return string(text), err
}
