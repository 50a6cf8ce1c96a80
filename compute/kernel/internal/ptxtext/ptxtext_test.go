package ptxtext

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/internal/packed"
)

// compiler puts a program into the path that answers as clang-19 does: its text has the arguments.
func compiler(t *testing.T, script string) {
	t.Helper()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "clang-19"), []byte("#!/bin/sh\n"+script), 0o700)) //nolint:gosec // it is run
	t.Setenv("PATH", folder)
}

// answers is a compiler that succeeds.
const answers = `if [ "$1" = --version ]; then echo "clang version 19"; echo more; exit; fi
printf '// made\n.version 7.0 // of PTX\n\n \tline:  \t%s\n' "$*"
`

var source = packed.Source{Name: "k", File: "k.cu", Defines: []string{"A=1", "B=2"}, Command: []string{"clang-19", "-O3"}}

func TestCompile(t *testing.T) {
	compiler(t, answers)
	text, err := Compile("source", source)
	require.NoError(t, err)
	assert.Equal(t, ".version 7.0\nline:  -O3 -DA=1 -DB=2 source/k.cu -o -\n", string(text))
	again, err := Compile("source", source)
	require.NoError(t, err)
	assert.Equal(t, text, again, "the command of the source is as it was")
	version, err := CompilerVersion()
	require.NoError(t, err)
	assert.Equal(t, "clang version 19", version)
}

// What the compiler reports is the error, and so is a warning: a text with one is not embedded.
func TestCompilerErrors(t *testing.T) {
	compiler(t, "echo 'k.cu:1: no such thing' >&2\nexit 1\n")
	_, err := Compile("source", source)
	require.ErrorContains(t, err, "k: exit status 1\nk.cu:1: no such thing")
	compiler(t, "echo 'k.cu:1: unused' >&2\necho text\n")
	_, err = Compile("source", source)
	require.ErrorContains(t, err, "k.cu:1: unused")
	t.Setenv("PATH", t.TempDir())
	_, err = Compile("source", source)
	require.Error(t, err)
	_, err = CompilerVersion()
	require.ErrorContains(t, err, "ptxtext: ")
}

// The stamp differs with each file's name, length and text, and with all of each source.
func TestStamp(t *testing.T) {
	files := fstest.MapFS{"a": {Data: []byte("one")}, "b": {Data: []byte("two")}}
	stamps := map[string]string{}
	add := func(name string, files fstest.MapFS, names []string, sources ...packed.Source) {
		stamp, err := Stamp(files, names, sources)
		require.NoError(t, err)
		assert.Empty(t, stamps[stamp], name)
		assert.Len(t, stamp, 64)
		stamps[stamp] = name
	}
	both := []string{"a", "b"}
	add("as it is", files, both, source)
	add("one file", files, both[:1], source)
	add("another text", fstest.MapFS{"a": {Data: []byte("one")}, "b": {Data: []byte("owt")}}, both, source)
	add("a longer text", fstest.MapFS{"a": {Data: []byte("one")}, "b": {Data: []byte("two ")}}, both, source)
	add("another name", fstest.MapFS{"a": {Data: []byte("one")}, "c": {Data: []byte("two")}}, []string{"a", "c"}, source)
	add("no source", files, both)
	add("two sources", files, both, source, source)
	for i, change := range []func(s *packed.Source){
		func(s *packed.Source) { s.Name = "l" }, func(s *packed.Source) { s.File = "l.cu" },
		func(s *packed.Source) { s.Defines = nil }, func(s *packed.Source) { s.Command = []string{"clang-19"} },
	} {
		other := source
		change(&other)
		add(string(rune('0'+i)), files, both, other)
	}
	again, err := Stamp(files, both, []packed.Source{source})
	require.NoError(t, err)
	assert.Equal(t, "as it is", stamps[again])
	_, err = Stamp(files, []string{"none"}, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// house makes a package's folder with a source and an old text.
func house(t *testing.T) (root, house string) {
	t.Helper()
	root = t.TempDir()
	house = filepath.Join(root, "house")
	for name, text := range map[string]string{"source/k.cu": "text", "ptx/old.ptx.gz": "old", "ptx/made": "before"} {
		path := filepath.Join(house, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return root, house
}

// Write replaces all texts, and writes the stamp and the compiler's version.
func TestWrite(t *testing.T) {
	compiler(t, answers)
	root, house := house(t)
	second := source
	second.Name = "l"
	sources := []packed.Source{source, second}
	total, err := Write(house, root, []string{"house/source/k.cu"}, sources)
	require.NoError(t, err)
	bytes := 0
	for _, name := range []string{"k", "l"} {
		text, err := packed.Text(os.DirFS(house), name)
		require.NoError(t, err)
		assert.Equal(t, ".version 7.0\nline:  -O3 -DA=1 -DB=2 "+house+"/source/k.cu -o -\n", text)
		info, err := os.Stat(filepath.Join(house, "ptx", name+".ptx.gz"))
		require.NoError(t, err)
		bytes += int(info.Size())
	}
	assert.Equal(t, bytes, total)
	assert.NoFileExists(t, filepath.Join(house, "ptx/old.ptx.gz"))
	made, err := os.ReadFile(filepath.Join(house, "ptx/made"))
	require.NoError(t, err)
	stamp, err := Stamp(os.DirFS(root), []string{"house/source/k.cu"}, sources)
	require.NoError(t, err)
	assert.Equal(t, stamp+"\nclang version 19\n", string(made))
}

// Where a source does not compile nothing is replaced; other failures are errors.
func TestWriteErrors(t *testing.T) {
	compiler(t, "exit 1\n")
	root, folder := house(t)
	_, err := Write(folder, root, nil, []packed.Source{source})
	require.Error(t, err)
	assert.FileExists(t, filepath.Join(folder, "ptx/old.ptx.gz"))
	compiler(t, answers)
	_, err = Write(folder, root, []string{"none"}, []packed.Source{source})
	require.ErrorIs(t, err, os.ErrNotExist)
	compiler(t, strings.Replace(answers, "exit;", "exit 1;", 1))
	_, err = Write(folder, root, nil, []packed.Source{source})
	require.ErrorContains(t, err, "exit status 1", "it has no version")
	compiler(t, answers)
	_, err = Write(filepath.Join(folder, "none"), root, nil, []packed.Source{source})
	require.ErrorIs(t, err, os.ErrNotExist, "no folder for texts")
	_, err = Write(folder+"[", root, nil, nil)
	require.ErrorIs(t, err, filepath.ErrBadPattern)
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "ptx/full.ptx.gz/file"), 0o700))
	_, err = Write(folder, root, nil, nil)
	require.Error(t, err, "an old text that cannot be removed")
}
