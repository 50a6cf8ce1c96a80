package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOldDependenciesNeedReasons(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	all := []dependency{
		{Path: "example.org/young", Version: "v1.0.0", Time: now.AddDate(0, -17, 0)},
		{Path: "example.org/old", Version: "v1.0.0", Time: now.AddDate(0, -19, 0)},
		{Path: "example.org/old", Version: "v1.0.0", Time: now.AddDate(0, -19, 0)}, // of a second module
	}
	var out strings.Builder
	require.NoError(t, report(&out, all, map[string]string{"example.org/old": "finished"}, now))
	assert.Equal(t, "example.org/old v1.0.0 of 2025-04-27: finished\n", out.String())

	require.EqualError(t, report(&out, all, nil, now),
		"example.org/old v1.0.0 is older than 18 months: raise it, or write the reason into lab/supply")
	require.EqualError(t, report(&out, all[:1], map[string]string{"example.org/old": "finished"}, now),
		"example.org/old has a reason and is no old dependency: delete the reason")
}

func TestDatabaseHasAnIndexOfModules(t *testing.T) {
	t.Parallel()
	reports, database := t.TempDir(), t.TempDir()
	_, err := writeDatabase(database, reports)
	require.ErrorContains(t, err, "has no reports")

	const first = `{"id":"GO-1","modified":"2026-01-02T00:00:00Z","affected":[{"package":{"name":"b"}},{"package":{"name":"b"}}]}`
	const second = `{"id":"GO-2","modified":"2026-01-01T00:00:00Z","affected":[{"package":{"name":"a"}},{"package":{"name":"b"}}]}`
	require.NoError(t, os.WriteFile(filepath.Join(reports, "GO-1.json"), []byte(first), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(reports, "GO-2.json"), []byte(second), 0o600))
	count, err := writeDatabase(database, reports)
	require.NoError(t, err)
	assert.Equal(t, 2, count)
	for name, want := range map[string]string{
		"index/db.json": `{"modified":"2026-01-02T00:00:00Z"}`,
		"index/modules.json": `[{"path":"a","vulns":[{"id":"GO-2","modified":"2026-01-01T00:00:00Z"}]},
			{"path":"b","vulns":[{"id":"GO-1","modified":"2026-01-02T00:00:00Z"},{"id":"GO-2","modified":"2026-01-01T00:00:00Z"}]}]`,
		"ID/GO-1.json": first,
	} {
		text, err := os.ReadFile(filepath.Join(database, name))
		require.NoError(t, err)
		assert.JSONEq(t, want, string(text), name)
	}
}

func TestCalledFindingsOutsideTheStandardLibraryFail(t *testing.T) {
	t.Parallel()
	const (
		imported = `{"osv":"GO-1","trace":[{"module":"example.org/m","version":"v1.0.0"}]}`
		standard = `{"osv":"GO-2","fixed_version":"v1.26.9","trace":[{"module":"stdlib","package":"net/http","function":"Get"}]}`
		called   = `{"osv":"GO-3","fixed_version":"v1.1.0","trace":[{"module":"example.org/m","version":"v1.0.0","package":"example.org/m/p","function":"F"}]}`
	)
	read := func(texts ...string) (all []finding) {
		for _, text := range texts {
			var f finding
			require.NoError(t, json.Unmarshal([]byte(text), &f))
			all = append(all, f)
		}
		return all
	}
	var out strings.Builder
	require.NoError(t, judge(&out, read(imported, standard, standard)))
	assert.Equal(t, "GO-2: net/http.Get, mended in Go 1.26.9\ncalled findings: 1 of the standard library, 0 others\n", out.String())
	require.EqualError(t, judge(&out, read(called, standard)), "GO-3: example.org/m/p.F of v1.0.0 is called, mended in v1.1.0")
}
