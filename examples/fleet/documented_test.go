//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/examples/internal/command"
)

// output is the output of all processes.
type output struct {
	sync.Mutex
	strings.Builder
}

func (o *output) Write(b []byte) (int, error) {
	o.Lock()
	defer o.Unlock()
	return o.Builder.Write(b)
}

// eventLine is a line of the log. Times, and which device of a member a gang gets, differ between runs.
var eventLine = regexp.MustCompile(`(?m)^ *[\d.]+ s  (member [a-d]  .+)$`)

func events(text string) (lines []string) {
	for _, line := range eventLine.FindAllStringSubmatch(text, -1) {
		lines = append(lines, regexp.MustCompile(`-\d`).ReplaceAllString(line[1], "-?"))
	}
	return lines
}

// All gangs get their turn, the one that waits for a killed member's memory too, and the members find nothing held. docs/examples.md shows
// lines of the log.
func TestTheDocumentedEvents(t *testing.T) {
	t.Setenv("VRAM_MEMORY_LIMIT", "")
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	var stdout, stderr output
	require.Equal(t, command.OK, run(t.Context(), []string{"-driver", "sim"}, &stdout, &stderr), "%s%s", &stdout, &stderr)
	assert.Empty(t, stderr.String())
	got := events(stdout.String())
	assert.Equal(t, strings.Count(stdout.String(), "\n"), len(got), "%s", &stdout)
	order := fmt.Sprint(got)
	for _, gang := range []string{"a1", "a2", "b1", "b2", "c1", "c2", "d1", "d2", "service", "heir"} {
		assert.Regexp(t, `asks +gang `+gang+` .*begins +gang `+gang+` .*releases +gang `+gang+` `, order)
	}
	assert.Regexp(t, `begins +gang doomed .*asks +gang heir .*is killed +gang doomed .*begins +gang heir `, order)
	assert.Len(t, regexp.MustCompile(`stops +gang doomed `).FindAllString(order, -1), 4, "the parts of the killed member's gang")
	assert.NotRegexp(t, `(ends|releases) +gang doomed`, order)
	left, err := filepath.Glob(filepath.Join(folder, "*"))
	require.NoError(t, err)
	assert.Empty(t, left, "the ledger is removed")

	page, err := os.ReadFile("../../docs/examples.md")
	require.NoError(t, err)
	shown := events(string(page))
	assert.NotEmpty(t, shown)
	assert.Subset(t, got, shown)
}

// An interrupt ends all processes, which give all back.
func TestAnInterrupt(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	var stdout, stderr output
	first := writer(func(b []byte) (int, error) {
		interrupt()
		return stdout.Write(b)
	})
	assert.Equal(t, command.Interrupted, run(ctx, []string{"-driver", "sim"}, first, &stderr), "%s", &stdout)
	assert.Equal(t, "fleet: interrupted; all memory is given back\n", stderr.String())
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }
