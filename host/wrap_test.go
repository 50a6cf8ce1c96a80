package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/watermark/shared"
)

// A limit refuses the first byte and the first block too many, and nothing before.
func TestALimitIsExact(t *testing.T) {
	t.Parallel()
	l := must[*Limit](t)(Limited(NewAligned(), Bounds{Bytes: 100, Blocks: 3}))
	_, err := l.Alloc(101, 0)
	require.ErrorIs(t, err, ErrLimit)
	whole := alloc(t, l, 100, 0)
	_, err = l.Alloc(1, 0)
	var refused *LimitError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, LimitError{RequestedBytes: 1, LiveBytes: 100, LiveBlocks: 1, Bounds: Bounds{100, 3}}, *refused)
	for _, request := range []func(bytes, align int64) (Block, error){l.Alloc, l.AllocZeroed} {
		for _, wrong := range [][2]int64{{-1, 0}, {1, -1}, {1, 3}} {
			_, err := request(wrong[0], wrong[1])
			require.Error(t, err, wrong)
			require.NotErrorIs(t, err, ErrLimit, wrong)
		}
	}
	alloc(t, l, 0, 0)
	free(t, whole)
	one, two, three := alloc(t, l, 1, 0), alloc(t, l, 1, 0), alloc(t, l, 1, 0)
	_, err = l.Alloc(1, 0)
	require.ErrorIs(t, err, ErrLimit)
	require.NoError(t, FreeAll(one, two, three))
	require.ErrorIs(t, one.Free(), ErrDoubleFree)
	free(t, alloc(t, l, 100, 0))
	require.NoError(t, l.Close(t.Context()))
	for _, b := range []Bounds{{Bytes: -1}, {Blocks: -1}} {
		_, err := Limited(NewAligned(), b)
		var bad *ConfigError
		require.ErrorAs(t, err, &bad)
	}
}

// A request that the allocator inside refuses is not charged.
func TestAFailedRequestIsNotCharged(t *testing.T) {
	t.Parallel()
	l := must[*Limit](t)(Limited(must[*Limit](t)(Limited(NewAligned(), Bounds{Blocks: 1})), Bounds{Bytes: 100, Blocks: 3}))
	b := alloc(t, l, 40, 0)
	for range 5 {
		_, err := l.Alloc(60, 0)
		var refused *LimitError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, Bounds{Blocks: 1}, refused.Bounds)
	}
	free(t, b)
	free(t, alloc(t, l, 100, 0))
}

// The limit is never exceeded, however many goroutines request at once.
func TestALimitUnderStress(t *testing.T) {
	t.Parallel()
	var live, peak atomic.Int64
	l := must[*Limit](t)(Limited(NewAligned(), Bounds{Bytes: 1000}))
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 500 {
				b, err := l.Alloc(300, 0)
				if refused := (*LimitError)(nil); errors.As(err, &refused) {
					assert.LessOrEqual(t, refused.LiveBytes, int64(1000), "refused requests count nowhere")
					continue
				}
				if !assert.NoError(t, err) {
					return
				}
				shared.Raise(&peak, live.Add(300))
				live.Add(-300)
				assert.NoError(t, b.Free())
			}
		})
	}
	group.Wait()
	assert.LessOrEqual(t, peak.Load(), int64(900))
	free(t, alloc(t, l, 1000, 0))
}

// Track counts requested bytes, peaks and refusals.
func TestTrackCounts(t *testing.T) {
	t.Parallel()
	p := must[*Pool](t)(Pooled(NewAligned(), PoolConfig{}))
	a := must[*Track](t)(Tracked(p))
	one, two := alloc(t, a, 100, 0), alloc(t, a, 50, 0)
	free(t, one)
	_, err := a.Alloc(-1, 0)
	require.Error(t, err)
	require.Error(t, one.Free())
	assert.Equal(t, Stats{
		LiveBlocks: 1, LiveBytes: 50, PeakBlocks: 2, PeakBytes: 150, Allocs: 2, Frees: 1, Refusals: 1,
		KeptBytes: 128, Misses: 2,
	}, a.Stats())
	free(t, two)
	require.NoError(t, a.Close(t.Context()))
}

// lines is a logger that keeps lines.
type lines struct{ all []string }

func (l *lines) add(level, msg string, args []any) {
	l.all = append(l.all, fmt.Sprint(append([]any{level + " " + msg}, args...)...))
}
func (l *lines) Debug(msg string, args ...any) { l.add("debug", msg, args) }
func (l *lines) Info(msg string, args ...any)  { l.add("info", msg, args) }
func (l *lines) Warn(msg string, args ...any)  { l.add("warn", msg, args) }
func (l *lines) Error(msg string, args ...any) { l.add("error", msg, args) }

// Every call is logged, at the level of its outcome.
func TestCallsAreLogged(t *testing.T) {
	t.Parallel()
	log := &lines{}
	a := must[*Log](t)(Logged(NewAligned(), log))
	b := alloc(t, a, 100, 64)
	_, err := a.Alloc(-1, 0)
	require.Error(t, err)
	require.Error(t, a.Close(t.Context()))
	free(t, b)
	require.Error(t, b.Free())
	require.Error(t, a.Close(nil)) //nolint:staticcheck // a nil context is refused
	require.Len(t, log.all, 6)
	for i, want := range []string{
		"debug host: allocated", "warn host: request refused", "error host: blocks not freed",
		"debug host: freed", "error host: free refused", "error host: close failed",
	} {
		assert.Contains(t, log.all[i], want)
	}
	// A leak is reported with its figures, also where Close has another error.
	s := &strange{Allocator: NewAligned()}
	s.owner = NewOwner(s)
	leaking := must[*Log](t)(Logged(failingClose{s}, log))
	b = alloc(t, leaking, 100, 0)
	require.ErrorIs(t, leaking.Close(t.Context()), ErrLeak)
	free(t, b)
	require.Len(t, log.all, 9)
	assert.Contains(t, log.all[7], "error host: blocks not freed")
	assert.Contains(t, log.all[7], "100")
	_, err = Logged(a, nil)
	require.Error(t, err)
	for _, wrap := range []func() error{
		func() error { _, err := Logged(nil, log); return err },
		func() error { _, err := Tracked(nil); return err },
		func() error { _, err := Zeroed(nil); return err },
		func() error { _, err := Limited(nil, Bounds{}); return err },
	} {
		var bad *ConfigError
		require.ErrorAs(t, wrap(), &bad)
	}
}

// strange is an allocator of another package around one of this.
type strange struct {
	Allocator

	owner *Owner
	frees int
}

func (s *strange) Owner() *Owner { return s.owner }

func (s *strange) Alloc(bytes, align int64) (Block, error) {
	b, err := s.Allocator.Alloc(bytes, align)
	if err != nil {
		return Block{}, err
	}
	return b.Reown(s.Allocator, s)
}

func (s *strange) Free(b Block) error {
	b, err := b.Reown(s, s.Allocator)
	if err != nil {
		return err
	}
	if err := s.Allocator.Free(b); err != nil {
		return err
	}
	s.frees++
	return nil
}

// failingClose is an allocator whose Close has an error more.
type failingClose struct{ *strange }

func (f failingClose) Close(ctx context.Context) error {
	return errors.Join(errors.New("another"), f.strange.Close(ctx))
}

// Allocators of other packages wrap these, and are wrapped.
func TestAnAllocatorOfAnotherPackage(t *testing.T) {
	t.Parallel()
	s := &strange{Allocator: NewAligned()}
	s.owner = NewOwner(s)
	a := must[*Track](t)(Tracked(s))
	b, direct := alloc(t, a, 10, 0), alloc(t, s, 10, 0)
	require.ErrorIs(t, a.Free(direct), ErrForeign)
	require.NoError(t, FreeAll(b, direct))
	require.ErrorIs(t, b.Free(), ErrDoubleFree)
	assert.Equal(t, 2, s.frees)
	assert.Zero(t, s.Stats().LiveBlocks)
	require.NoError(t, a.Close(t.Context()))
}

// Texts name the facts.
func TestTexts(t *testing.T) {
	t.Parallel()
	a := NewAligned()
	b := alloc(t, a, 2048, 0)
	assert.Equal(t, "block of 2 KiB of pageable memory", b.String())
	free(t, b)
	assert.Equal(t, "block of 2 KiB, freed", b.String())
	assert.Equal(t, "block of 0 B", Block{}.String())
	assert.Equal(t, NoMemory, Block{}.Kind())
	_, ok := Block{}.Buffer()
	assert.False(t, ok)
	for text, err := range map[string]error{
		"host: requested -1 bytes, want 0 to 1 TiB":                                &SizeError{-1, maxBytes},
		"host: alignment of 3 bytes, want 0 or a power of two up to 2 MiB":         &AlignError{3, MaxAlign},
		"host: requested 1 KiB with 2 KiB of 1 block live, limit 2 KiB 5 blocks":   &LimitError{1024, 2048, 1, Bounds{2048, 5}},
		"host: 2 blocks of page-locked memory not freed, 8 KiB":                    &LeakError{PageLocked, 2, 8192},
		"host: no 1 KiB of page-locked memory: no":                                 &MemoryError{1024, errors.New("no")},
		"host: use of device memory on stream 0x7: why":                            &UseError{7, Device, "why"},
		"host: stream 0x7 is being captured: a free cannot wait for its work: no":  &CaptureError{7, errors.New("no")},
		"host: X has no page-locked memory (capability pinned host memory)":        &CapabilityError{"X", 2},
		`host: allocator "gpu": unknown device, want cpu, cuda:N or cuda:N/pinned`: &NameError{"gpu", "unknown device"},
		"host: KeepBytes is -1, want 0 or more":                                    &ConfigError{"KeepBytes", -1, "0 or more"},
		"host: the allocator of pageable memory: vram: closed":                     closed(Pageable),
	} {
		assert.Equal(t, text, err.Error())
	}
	kinds := []string{"no memory", "pageable", "page-locked", "device", "unknown kind"}
	for i, text := range kinds {
		assert.Equal(t, text, Kind(i).String())
	}
}
