// Package tables contains the project's tuning tables: measured rows of package compute/kernel/tune, one file for each kind of
// device.
//
// `go run ./compute/ops/measure` on a device writes its file.
package tables

import (
	_ "embed" // of the files
	"sync"

	"github.com/go-vram/vram/compute/kernel/tune"
)

//go:embed nvidia-h200.txt
var nvidiaH200 string

// files are the texts: embedded as strings they are not copied to be read.
func files() []string { return []string{nvidiaH200} }

// Default is the rows of all files, read on the first call. It does not change. A file that is damaged has no rows: a test
// looks at each.
var Default = sync.OnceValue(func() *tune.Table { //nolint:gochecknoglobals // made on first use: constant tables
	all := &tune.Table{}
	for _, text := range files() {
		if t, err := tune.Parse(text); err == nil {
			all.Merge(t)
		}
	}
	return all
})

var indices = sync.OnceValue(func() (all []*tune.Index) { //nolint:gochecknoglobals // made on first use: constant tables
	for _, text := range files() {
		if x, err := tune.NewIndex(text); err == nil {
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
