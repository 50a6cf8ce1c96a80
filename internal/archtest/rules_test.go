package archtest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A finding is one place that breaks a rule.
type finding struct {
	place string // a file and line, or a package's folder
	what  string
}

// A rule is a property of the module's source.
type rule struct {
	name   string
	reason string
	check  func(*tree) []finding
}

// houseRules returns every rule.
func houseRules() []rule {
	return []rule{
		{
			name:   "import direction",
			reason: "a layer that imports a higher one can be neither understood nor tested alone",
			check:  checkDirection,
		},
		{
			name:   "root without gorgonia",
			reason: "importing vram must work where there is no CUDA to compile against; callers pass that driver in",
			check:  checkRootWithoutGorgonia,
		},
		{
			name:   "foreign code in its place",
			reason: "one package tests a dependency's surprises, and can replace it",
			check:  checkForeign,
		},
		{
			name:   "cgo under its tag",
			reason: "without the tag the module builds with Go alone",
			check:  checkCgo,
		},
		{
			name:   "no shared locks",
			reason: "state has one owner; a goroutine frozen anywhere inside a call stops nobody else",
			check:  checkLocks,
		},
		{
			name:   "one step to change an atomic",
			reason: "a goroutine that changes it between a load and a store is lost: a count that is wrong for ever",
			check:  checkAtomics,
		},
		{
			name:   "no init and no globals",
			reason: "importing starts nothing, and two devices in one process share nothing",
			check:  checkGlobals,
		},
		{
			name:   "pure cores",
			reason: "fuzzing, model checking and simulation need cores in which the same steps give the same effects",
			check:  checkCores,
		},
		{
			name:   "package comments",
			reason: "a reader meets a package by its purpose",
			check:  checkPackageComments,
		},
		{
			name:   "exported names",
			reason: "users of a package read its comments, not its code",
			check:  checkExported,
		},
		{
			name:   "file length",
			reason: "past a thousand lines a reader loses the place",
			check:  checkFileLength,
		},
		{
			name:   "root files",
			reason: "the root is the front door: a newcomer reads all of its names at once",
			check:  checkRootFiles,
		},
		{
			name:   "laboratory",
			reason: "a program that imports vram downloads and builds nothing of its laboratory",
			check:  checkLaboratory,
		},
	}
}

// TestHouse checks every rule on this module.
func TestHouse(t *testing.T) {
	t.Parallel()
	house := wholeHouse(t)
	require.True(t, house.has("internal/archtest"), "the tree that was read is not this module")
	for _, dir := range []string{"cmd/vram", "examples/quickstart"} {
		require.True(t, house.has(dir), "the module of %s was not read", dir)
	}
	for _, r := range houseRules() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			for _, f := range r.check(house) {
				assert.Failf(t, f.place+": "+f.what, "the reason: %s", r.reason)
			}
		})
	}
}
