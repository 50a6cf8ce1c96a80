package acceptance_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/site"
)

const ourTests = "github.com/go-vram/vram/internal/acceptance_test."

// memory is a program's own wrapper of a stream.
type memory struct{ s *vram.Stream }

//go:noinline
func (m *memory) get(t *testing.T, tag string) (vram.Buffer, error) {
	t.Helper()
	return m.s.AllocFor(t.Context(), vram.Request{Bytes: 1 << 20, Tag: tag})
}

func getInlined[T any](m *memory, t *testing.T, _ T) (vram.Buffer, error) { //nolint:thelper // a program's own function
	return m.get(t, "inlined")
}

//go:noinline
func release(b vram.Buffer) error {
	return slices.MinFunc([]error{b.Free()}, func(error, error) int { return 0 })
}

// placesOf returns the functions of a stack.
func placesOf(s site.Stack) (all []string) {
	for _, f := range s.Frames() {
		all = append(all, f.Function)
	}
	return all
}

// Helpers, by package and by function, are in no report of a device: refused frees, profiles, live buffers, out of memory, events
// of an observer, and leaks.
func TestNoReportNamesAHelper(t *testing.T) {
	var events []vram.BufferEvent
	h := openHouse(t, vram.Config{
		Helpers:    []string{ourTests + "(*memory).get", ourTests + "getInlined", ourTests + "release", "slices"},
		Debug:      true,
		LimitBytes: 16 * mib,
		Observer: vram.Observer{
			Allocated: func(e vram.BufferEvent) { events = append(events, e) },
			Freed:     func(e vram.BufferEvent) { events = append(events, e) },
		},
		SampleBytes: 1,
	}, sim.Config{})
	m := &memory{h.stream()}
	isHere := func(s site.Stack) {
		t.Helper()
		assert.Contains(t, s.String(), "acceptance_test.TestNoReportNamesAHelper (helpers_test.go:")
		for _, f := range placesOf(s) {
			assert.NotContains(t, f, "memory")
			assert.NotContains(t, f, "getInlined")
			assert.NotContains(t, f, "release")
			assert.False(t, strings.HasPrefix(f, "slices."), f)
		}
	}

	x, err := m.get(t, "weights")
	require.NoError(t, err)
	y, err := getInlined(m, t, 1)
	require.NoError(t, err)
	require.NoError(t, release(y))
	refused, ok := errors.AsType[*vram.FreeError](release(y))
	require.True(t, ok)
	isHere(refused.Allocated)
	isHere(refused.Freed)

	for _, e := range events {
		isHere(e.Place)
	}
	assert.Len(t, events, 3)
	profile := h.Profile()
	require.Len(t, profile.Records, 2)
	for _, r := range profile.Records {
		isHere(r.Stack)
	}
	list, err := h.LiveBuffers(t.Context())
	require.NoError(t, err)
	require.Len(t, list.Buffers, 1)
	isHere(list.Buffers[0].Allocated)

	_, err = m.s.Alloc(16 * mib)
	short, ok := errors.AsType[*vram.OutOfMemoryError](err)
	require.True(t, ok, err)
	require.NotEmpty(t, short.Largest)
	isHere(short.Largest[0].Allocated)
	assert.NotContains(t, short.Report(), "memory).get")

	_, err = m.get(t, "leak")
	require.NoError(t, err)
	require.NoError(t, x.Free())
	leak, ok := errors.AsType[*vram.InUseError](h.Close())
	require.True(t, ok)
	require.Len(t, leak.Buffers, 1)
	isHere(leak.Buffers[0].Allocated)
	assert.Regexp(t, `tag "leak", allocated at acceptance_test\.TestNoReportNamesAHelper \(helpers_test.go:\d+\)$`, leak.Error())
}

// A helper without a name is refused, with its number.
func TestAHelperWithoutAName(t *testing.T) {
	_, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{}), Helpers: []string{""}})
	require.ErrorContains(t, err, "Helpers[0]")
	_, err = vram.Open(vram.Config{Driver: sim.New(sim.Config{}), Helpers: []string{"a", " "}})
	refused, ok := errors.AsType[*vram.ConfigError](err)
	require.True(t, ok, err)
	assert.Equal(t, "Helpers[1]", refused.Field)
}

// withHelpers leaves two helpers out of places, as docs/troubleshooting.md has it.
func withHelpers() (cfg vram.Config) {
	cfg.Helpers = []string{
		"example.com/app/mem",             // a package
		"example.com/app/run.(*Pool).Get", // a method, as in a stack trace
	}
	return cfg
}

func TestTheHelpersOfTheDocs(t *testing.T) {
	assert.Len(t, withHelpers().Helpers, 2)
	h := site.NewHelpers(withHelpers().Helpers)
	assert.NotNil(t, h)
}
