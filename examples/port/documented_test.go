package main

import (
	"bytes"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
)

// docs/examples.md has the program's output.
func TestTheDocumentedOutput(t *testing.T) {
	page, err := os.ReadFile("../../docs/examples.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)## Port\n.*?```text\n(.*?)```").FindStringSubmatch(string(page))
	require.NotNil(t, block)
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), vram.Config{DriverName: "cpu"}, &out))
	assert.Equal(t, block[1], out.String())
}

// docs/porting.md has the lines of each form.
func TestTheDocumentedLines(t *testing.T) {
	page, err := os.ReadFile("../../docs/porting.md")
	require.NoError(t, err)
	for _, form := range []struct{ name, file string }{
		{"old", "old/main.go"},
		{"wrapper", "wrapper/main.go"},
		{"port", "main.go"},
	} {
		source, err := os.ReadFile(form.file)
		require.NoError(t, err)
		row := regexp.MustCompile(`(?m)^\| \[` + form.name + `\]\([^)]*\) \| (\d+) \|`).FindSubmatch(page)
		require.NotNil(t, row, form.name)
		assert.Equal(t, string(row[1]), strconv.Itoa(bytes.Count(source, []byte("\n"))), form.name)
	}
}
