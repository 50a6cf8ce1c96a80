package packed

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A text is read as it was compressed; a file that is none, or a part of one, is an error with its name.
func TestText(t *testing.T) {
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	_, err := io.WriteString(w, ".version 7.0\n")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	all := compressed.Bytes()
	files := fstest.MapFS{
		"ptx/k.ptx.gz": {Data: all}, "ptx/short.ptx.gz": {Data: all[:len(all)-3]}, "ptx/none.ptx.gz": {Data: []byte("no such format")},
	}
	text, err := Text(files, "k")
	require.NoError(t, err)
	assert.Equal(t, ".version 7.0\n", text)
	for name, want := range map[string]error{"absent": fs.ErrNotExist, "short": io.ErrUnexpectedEOF, "none": gzip.ErrHeader} {
		text, err = Text(files, name)
		require.ErrorIs(t, err, want)
		assert.ErrorContains(t, err, name)
		assert.Empty(t, text)
	}
}

// A source for one compute capability alone has its architecture, and instructions that others do not have.
func TestCompiler(t *testing.T) {
	const command = "clang-19 -x cuda --cuda-device-only --cuda-gpu-arch=%s -nocudainc -nocudalib -O3 -S -std=c++17 -Xclang -target-feature -Xclang %s -Wall -Wno-unused-function"
	for _, c := range []struct {
		capability              int
		only                    bool
		architecture, assembler string
	}{{70, false, "sm_70", "+ptx70"}, {80, false, "sm_80", "+ptx70"}, {90, true, "sm_90a", "+ptx80"}} {
		want := strings.Replace(strings.Replace(command, "%s", c.architecture, 1), "%s", c.assembler, 1)
		assert.Equal(t, strings.Fields(want), Compiler(c.capability, c.only))
	}
}
