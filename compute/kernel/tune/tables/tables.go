// Package tables contains the project's tuning tables: measured rows of package compute/kernel/tune, one file for each kind of
// device.
//
// `go run ./compute/ops/measure` on a device writes its file.
package tables

import (
	_ "embed" // of the files
	"io/fs"
	"sync"

	"github.com/go-vram/vram/compute/kernel/tune"
)

//go:embed nvidia-h200.txt
var nvidiaH200 string

// file is a text: embedded as a string it is not copied to be read.
type file struct{ name, text string }

func files() []file { return []file{{"nvidia-h200.txt", nvidiaH200}} }

// Default is the rows of all files, read on the first call. It does not change. A file that is damaged has no rows: a test
// looks at each.
var Default = sync.OnceValue(func() *tune.Table { //nolint:gochecknoglobals // made on first use: constant tables
	all := &tune.Table{}
	for _, f := range files() {
		if t, err := tune.Parse(f.text); err == nil {
			all.Merge(t)
		}
	}
	return all
})

var indices = sync.OnceValue(func() (all []*tune.Index) { //nolint:gochecknoglobals // made on first use: constant tables
	for _, f := range files() {
		if x, err := tune.NewIndex(f.text); err == nil {
			all = append(all, x)
		}
	}
	return all
})

// Rows are those that Default has for a kind of work on a kind of device. It reads no others: a process that starts looks for
// few.
func Rows(on tune.Device, of tune.Key) []tune.Row {
	for _, x := range indices() {
		if rows, err := x.Rows(on, of); err == nil && rows != nil {
			return rows
		}
	}
	return nil
}

// Read is the table of one file. Errors: fs.ErrNotExist, errors of tune.Parse.
func Read(name string) (*tune.Table, error) {
	for _, f := range files() {
		if f.name == name {
			return tune.Parse(f.text)
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}
