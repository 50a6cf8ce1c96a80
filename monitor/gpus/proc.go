package gpus

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of texts of /proc and of the library. Not shorter: a control group's path may have 4096 bytes in each of a dozen lines.
const (
	longestName  = 64
	longestFile  = 64 << 10
	longestTitle = 4096
)

// identify fills in the command and the place of a process. Files that cannot be read leave them empty.
func identify(files fs.FS, p *Process) {
	folder := fmt.Sprintf("proc/%d/", p.PID)
	title, _, _ := strings.Cut(readStart(files, folder+"cmdline", longestTitle), "\x00")
	if p.Command = printable(path.Base(title), longestName); title == "" {
		p.Command = printable(strings.TrimRight(readStart(files, folder+"comm", longestName), "\n"), longestName)
	}
	p.Place = placeOf(readStart(files, folder+"cgroup", longestFile))
}

// readStart returns the first bytes of a file, "" if it cannot be read.
func readStart(files fs.FS, name string, most int64) string {
	f, err := files.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // nothing was written
	text, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return ""
	}
	return string(text)
}

// printable returns a text without control characters and invalid UTF-8, of at most so many bytes: programs choose their names,
// and terminals obey them.
func printable(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if len(text) <= most {
		return text
	}
	for !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
