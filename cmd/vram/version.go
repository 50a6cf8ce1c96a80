package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// released is the version of a release. `make release` sets it at link time, since a build without git knows none.
var released string //nolint:gochecknoglobals // never written: the linker sets it

// versionCmd implements the command version.
type versionCmd struct{}

// Run prints one line.
func (versionCmd) Run(p *program) error { return printVersion(p.stdout) }

func printVersion(w io.Writer) error {
	_, err := fmt.Fprintf(w, "vram %s %s %s/%s\n", cmp.Or(released, version(debug.ReadBuildInfo())), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// version returns the module's version, or the commit that it was built from.
func version(info *debug.BuildInfo, ok bool) string {
	const unknown = "(devel)"
	if !ok {
		return unknown
	}
	if v := info.Main.Version; v != "" && v != unknown {
		return v
	}
	commit, modified := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = " " + s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "+modified"
		}
	}
	return unknown + commit + modified
}
