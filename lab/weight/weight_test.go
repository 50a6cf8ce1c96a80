package weight

import (
	"debug/buildinfo"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
)

const program = "github.com/go-vram/vram/lab/weight/hello"

// command runs the go command and returns what it prints.
func command(t *testing.T, args ...string) string {
	t.Helper()
	var complained strings.Builder
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Stderr = &complained
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // with cgo a program is smaller by 0.1 MB, and needs a C compiler
	said, err := cmd.Output()
	require.NoError(t, err, complained.String())
	return string(said)
}

// built builds the program and returns its size, which does not depend on where the sources lie, and the paths of the modules in it
// besides this one.
func built(t *testing.T, flags ...string) (sizeBytes int64, modules []string) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "hello")
	command(t, append(append([]string{"build", "-buildvcs=false", "-trimpath", "-o", binary}, flags...), program)...)
	file, err := os.Stat(binary)
	require.NoError(t, err)
	info, err := buildinfo.ReadFile(binary)
	require.NoError(t, err)
	for _, dep := range info.Deps {
		modules = append(modules, dep.Path)
	}
	return file.Size(), modules
}

// The program with the built-in framework has some 5 MB with its symbols, as the README has it: 5.20 MB with Go 1.26 on
// linux/amd64, and 3.54 MB without them. A program that only prints has 2.40 MB. The modules are named, so that a new one is a decision.
func TestTheBuiltinFrameworkIsSmall(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return // It links a program twice.
	}
	sizeBytes, modules := built(t, "-tags=vram_builtin")
	assert.Less(t, sizeBytes, int64(5_300_000))
	assert.Equal(t, []string{"github.com/ebitengine/purego"}, modules)

	sizeBytes, _ = built(t, "-tags=vram_builtin", "-ldflags=-s -w")
	assert.Less(t, sizeBytes, int64(3_600_000))
}

// heavy are the packages, of those that a program with the built-in framework must not have, that the program has.
func heavy(t *testing.T, flags ...string) (linked []string) {
	t.Helper()
	said := command(t, append(append([]string{"list", "-deps"}, flags...), program)...)
	for name := range strings.Lines(said) {
		switch name = strings.TrimSpace(name); name {
		case "net/http", "expvar", "encoding/json", "log/slog", "github.com/asynkron/protoactor-go/actor", "github.com/prometheus/client_golang/prometheus":
			linked = append(linked, name)
		}
	}
	return linked
}

// What is linked is as the package comment, the README and docs/decisions/009 have it.
func TestWhatIsLinked(t *testing.T) {
	t.Parallel()
	assert.Empty(t, heavy(t, "-tags=vram_builtin"))
	assert.Len(t, heavy(t, "-tags="), 6)
}

// Importing vram registers what the linked framework registers, and nothing else. This process imports it, as a caller does.
func TestHandlersThatImportingRegisters(t *testing.T) {
	t.Parallel()
	device, err := vram.Open(vram.Config{LimitBytes: -1}) // So that the import is one that is used.
	require.Error(t, err)
	assert.Nil(t, device)
	for path, want := range map[string]string{"/debug/vars": debugVars, "/debug/pprof/": "", "/metrics": "", "/": ""} {
		_, pattern := http.DefaultServeMux.Handler(httptest.NewRequest(http.MethodGet, path, http.NoBody))
		assert.Equal(t, want, pattern, path)
	}
}
