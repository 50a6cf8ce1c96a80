// Command supply checks the dependencies of this module. It needs the module proxy.
//
//	supply deps FOLDER...              names direct dependencies that are old, without a reason in the table below
//	supply vuln GOVULNCHECK FOLDER...  runs govulncheck against the database of golang.org/x/vulndb
//
// A FOLDER has a go.mod.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

func main() {
	if err := run(context.Background(), os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "supply:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	switch {
	case len(args) >= 2 && args[0] == "deps":
		return deps(ctx, out, args[1:], time.Now())
	case len(args) >= 3 && args[0] == "vuln":
		return vuln(ctx, out, args[1], args[2:])
	}
	return errors.New("usage: supply deps FOLDER..., or supply vuln GOVULNCHECK FOLDER... with one folder at least")
}
