package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"
)

// oldMonths is the age at which a direct dependency needs a reason. Most live projects release within a year; with less than
// that the table would be about habits of release, with more it would miss a project that has ended.
const oldMonths = 18

// reasons says why an old dependency stays.
var reasons = map[string]string{ //nolint:gochecknoglobals // never written
	"github.com/asynkron/protoactor-go": "no later version; OpenTelemetry and Prometheus are raised over the versions that it asks for",
	"github.com/x448/float16":           "no later version; it converts between two number formats, and has no more to do",
	"go.uber.org/goleak":                "no later version; tests alone import it",
	"gorgonia.org/cu":                   "no later version; only builds with the tag gorgonia link it",
	"gorgonia.org/tensor":               "no later version; bridge/gorgonia implements its interfaces",
}

// dependency is a module as `go list -m -json` prints it.
type dependency struct {
	Path     string
	Version  string
	Time     time.Time
	Main     bool
	Indirect bool
	Replace  *struct{ Path string }
}

// deps lists the direct dependencies of modules. It fails if an old one has no reason, or a reason has no old one.
func deps(ctx context.Context, out io.Writer, folders []string, now time.Time) error {
	var all []dependency
	for _, folder := range folders {
		direct, err := directDependencies(ctx, folder)
		if err != nil {
			return err
		}
		all = append(all, direct...)
	}
	return report(out, all, reasons, now)
}

func report(out io.Writer, all []dependency, reasons map[string]string, now time.Time) error {
	limit := now.AddDate(0, -oldMonths, 0)
	old := map[string]bool{}
	var faults []error
	for _, d := range all {
		if !d.Time.Before(limit) || old[d.Path] {
			continue
		}
		old[d.Path] = true
		reason := reasons[d.Path]
		if reason == "" {
			reason = "NO REASON"
			faults = append(faults, fmt.Errorf("%s %s is older than %d months: raise it, or write the reason into lab/supply", d.Path, d.Version, oldMonths))
		}
		_, _ = fmt.Fprintf(out, "%s %s of %s: %s\n", d.Path, d.Version, d.Time.Format(time.DateOnly), reason)
	}
	for path := range reasons {
		if !old[path] {
			faults = append(faults, fmt.Errorf("%s has a reason and is no old dependency: delete the reason", path))
		}
	}
	return errors.Join(faults...)
}

// directDependencies asks the go command for the modules that a go.mod requires directly, with the times of their versions.
func directDependencies(ctx context.Context, folder string) ([]dependency, error) {
	text, err := goCommand(ctx, folder, "mod", "edit", "-json")
	if err != nil {
		return nil, err
	}
	var file struct{ Require []dependency }
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	args := []string{"list", "-m", "-mod=readonly", "-json"}
	for _, d := range file.Require {
		if !d.Indirect {
			args = append(args, d.Path)
		}
	}
	if text, err = goCommand(ctx, folder, args...); err != nil {
		return nil, err
	}
	direct, err := decodeAll[dependency](bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	direct = slices.DeleteFunc(direct, func(d dependency) bool { return d.Main || d.Replace != nil })
	for _, d := range direct {
		if d.Time.IsZero() {
			return nil, fmt.Errorf("%s %s has no time", d.Path, d.Version)
		}
	}
	return direct, nil
}

// goCommand runs the go command in a module without go.work and returns its output.
func goCommand(ctx context.Context, folder string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", args[0], err)
	}
	return text, nil
}

// decodeAll reads JSON values up to the end.
func decodeAll[T any](r io.Reader) (all []T, err error) {
	for d := json.NewDecoder(r); ; {
		var value T
		switch err := d.Decode(&value); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, value)
	}
}
