package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// stdlib is govulncheck's name of the standard library.
const stdlib = "stdlib"

// vuln runs govulncheck over modules. It prints the findings that the code calls and fails if one is outside the standard
// library. The ones of the standard library depend on the Go release that builds a program, and are printed with the release
// that mends them.
func vuln(ctx context.Context, out io.Writer, govulncheck string, folders []string) error {
	text, err := goCommand(ctx, os.TempDir(), "mod", "download", "-json", "golang.org/x/vulndb@latest")
	if err != nil {
		return err
	}
	var module struct{ Dir, Version string }
	if err := json.Unmarshal(text, &module); err != nil {
		return err
	}
	database, err := os.MkdirTemp("", "vulndb")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(database) }()
	count, err := writeDatabase(database, filepath.Join(module.Dir, "data", "osv"))
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "%d reports of golang.org/x/vulndb %s, %s\n", count, module.Version, runtime.Version())

	var findings []finding
	for _, folder := range folders {
		found, err := scan(ctx, govulncheck, database, folder)
		if err != nil {
			return err
		}
		findings = append(findings, found...)
	}
	return judge(out, findings)
}

// osvReport is the part of a report in the format OSV that the database's index needs.
type osvReport struct {
	ID       string    `json:"id"`
	Modified time.Time `json:"modified"`
	Affected []struct {
		Package struct {
			Name string `json:"name"`
		} `json:"package"`
	} `json:"affected"`
}

// writeDatabase writes the reports of a folder in the layout that govulncheck reads, and returns their number.
func writeDatabase(database, reports string) (count int, err error) {
	type vulnerability struct {
		ID       string    `json:"id"`
		Modified time.Time `json:"modified"`
	}
	type module struct {
		Path  string          `json:"path"`
		Vulns []vulnerability `json:"vulns"`
	}
	for _, folder := range []string{"index", "ID"} {
		if err := os.MkdirAll(filepath.Join(database, folder), 0o750); err != nil {
			return 0, err
		}
	}
	names, err := filepath.Glob(filepath.Join(reports, "*.json"))
	if err != nil {
		return 0, err
	}
	if len(names) == 0 {
		return 0, fmt.Errorf("%s has no reports", reports)
	}
	modules := map[string]*module{}
	var newest time.Time
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return 0, err
		}
		var r osvReport
		if err := json.Unmarshal(text, &r); err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		if r.Modified.After(newest) {
			newest = r.Modified
		}
		paths := map[string]bool{}
		for _, affected := range r.Affected {
			paths[affected.Package.Name] = true
		}
		for path := range paths {
			if modules[path] == nil {
				modules[path] = &module{Path: path}
			}
			modules[path].Vulns = append(modules[path].Vulns, vulnerability{r.ID, r.Modified})
		}
		if err := os.WriteFile(filepath.Join(database, "ID", r.ID+".json"), text, 0o600); err != nil {
			return 0, err
		}
	}
	index := slices.SortedFunc(maps.Values(modules), func(a, b *module) int { return cmp.Compare(a.Path, b.Path) })
	for name, value := range map[string]any{"db": map[string]time.Time{"modified": newest}, "modules": index} {
		text, err := json.Marshal(value)
		if err != nil {
			return 0, err
		}
		if err := os.WriteFile(filepath.Join(database, "index", name+".json"), text, 0o600); err != nil {
			return 0, err
		}
	}
	return len(names), nil
}

// finding is a vulnerability on which govulncheck reports. The first frame of Trace is the vulnerable symbol; it has a function
// if the code calls it.
type finding struct {
	OSV          string `json:"osv"`
	FixedVersion string `json:"fixed_version"`
	Trace        []struct {
		Module   string `json:"module"`
		Version  string `json:"version"`
		Package  string `json:"package"`
		Function string `json:"function"`
	} `json:"trace"`
}

// scan returns govulncheck's findings in a module.
func scan(ctx context.Context, govulncheck, database, folder string) (found []finding, err error) {
	cmd := exec.CommandContext(ctx, govulncheck, "-db", "file://"+database, "-format", "json", "./...")
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("govulncheck in %s: %w", folder, err)
	}
	type message struct {
		Config  *struct{} `json:"config"`
		Finding *finding  `json:"finding"`
	}
	messages, err := decodeAll[message](bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if len(messages) == 0 || messages[0].Config == nil {
		return nil, fmt.Errorf("govulncheck in %s wrote no configuration", folder)
	}
	for _, m := range messages {
		if m.Finding != nil {
			found = append(found, *m.Finding)
		}
	}
	return found, nil
}

// judge prints each called finding once and fails if one is outside the standard library.
func judge(out io.Writer, findings []finding) error {
	seen := map[string]bool{}
	var faults []error
	for _, f := range findings {
		if len(f.Trace) == 0 || f.Trace[0].Function == "" || seen[f.OSV+f.Trace[0].Module] {
			continue
		}
		symbol := f.Trace[0]
		seen[f.OSV+symbol.Module] = true
		mended := cmp.Or(f.FixedVersion, "no version")
		if symbol.Module == stdlib {
			_, _ = fmt.Fprintf(out, "%s: %s.%s, mended in Go %s\n", f.OSV, symbol.Package, symbol.Function, strings.TrimPrefix(mended, "v"))
		} else {
			faults = append(faults, fmt.Errorf("%s: %s.%s of %s is called, mended in %s", f.OSV, symbol.Package, symbol.Function, symbol.Version, mended))
		}
	}
	_, _ = fmt.Fprintf(out, "called findings: %d of the standard library, %d others\n", len(seen)-len(faults), len(faults))
	return errors.Join(faults...)
}
