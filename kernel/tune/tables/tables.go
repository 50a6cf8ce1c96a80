// Package tables has the tuning tables that are part of the project: measured rows of package kernel/tune, one file a kind of device.
//
// `go run ./ops/measure` on a device writes its file.
package tables

import (
	"embed"
	"sync"

	"github.com/go-vram/vram/kernel/tune"
)

//go:embed *.txt
var files embed.FS

// Default is the rows of all files, read on the first call. It does not change. A file that is damaged has no rows: a test looks at each.
var Default = sync.OnceValue(func() *tune.Table { //nolint:gochecknoglobals // made on first use: constant tables
	all := &tune.Table{}
	entries, err := files.ReadDir(".")
	if err != nil {
		return all
	}
	for _, e := range entries {
		if t, err := Read(e.Name()); err == nil {
			all.Merge(t)
		}
	}
	return all
})

// Read is the table of one file.
func Read(name string) (*tune.Table, error) {
	text, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return tune.Parse(string(text))
}
