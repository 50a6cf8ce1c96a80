package site_test

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv/site"
)

const here1 = "github.com/go-vram/vram/cudadrv/site_test."

type bank struct{ helpers *site.Helpers }

//go:noinline
func (b *bank) get() site.Stack { return b.helpers.Here(0) }

func (b bank) inlined() site.Stack { return b.helpers.Here(0) }

//go:noinline
func generic[T any](h *site.Helpers, _ T) site.Stack { return h.Here(0) }

//go:noinline
func with(f func() site.Stack) site.Stack { return f() }

func withInlined(f func() site.Stack) (s site.Stack) {
	func() { s = f() }()
	return s
}

//go:noinline
func inClosure(h *site.Helpers) site.Stack {
	return with(func() site.Stack { return with(func() site.Stack { return h.Here(0) }) })
}

// inClosureInlined starts a goroutine whose function is a closure: inlined, it is named after the caller.
func inClosureInlined(h *site.Helpers, to chan site.Stack) {
	go func() { to <- called(h) }()
}

//go:noinline
func called(h *site.Helpers) site.Stack { return h.Here(0) }

func one(yield func() bool) { yield() }

//go:noinline
func inRange(h *site.Helpers) (s site.Stack) {
	for range one {
		s = h.Here(0)
	}
	return s
}

func functions(s site.Stack) (all []string) {
	for _, f := range s.Frames() {
		all = append(all, f.Function)
	}
	return all
}

// Each form of a function is left out by its name, and the place is the test's.
func TestHelpersByFunction(t *testing.T) {
	for name, c := range map[string]struct {
		helpers []string
		place   func(h *site.Helpers) site.Stack
	}{
		"function":                  {[]string{"called"}, called},
		"method of a pointer":       {[]string{"(*bank).get"}, func(h *site.Helpers) site.Stack { return (&bank{h}).get() }},
		"method without the star":   {[]string{"bank.get"}, func(h *site.Helpers) site.Stack { return (&bank{h}).get() }},
		"value of a method":         {[]string{"(*bank).get", "with"}, func(h *site.Helpers) site.Stack { return with((&bank{h}).get) }},
		"inlined method of a value": {[]string{"bank.inlined"}, func(h *site.Helpers) site.Stack { return bank{h}.inlined() }},
		"generic function":          {[]string{"generic"}, func(h *site.Helpers) site.Stack { return generic(h, "x") }},
		"instance of one":           {[]string{"generic[map[string]int]"}, func(h *site.Helpers) site.Stack { return generic(h, 1) }},
		"closures":                  {[]string{"inClosure", "with"}, inClosure},
		"body of a range":           {[]string{"inRange", "one"}, inRange},
		"inlined around a closure of the program": {[]string{"withInlined"}, func(h *site.Helpers) site.Stack {
			return withInlined(func() site.Stack { return h.Here(0) })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			names := make([]string, 0, len(c.helpers))
			for _, n := range c.helpers {
				names = append(names, here1+n)
			}
			for range 2 { // the second time from the table
				s := c.place(site.NewHelpers(names))
				for _, f := range functions(s) {
					for _, n := range c.helpers {
						assert.NotContains(t, f, n)
					}
				}
				assert.Contains(t, s.String(), "site_test.TestHelpersByFunction", s.Trace(""))
			}
			assert.Greater(t, len(functions(c.place(nil))), len(functions(c.place(site.NewHelpers(names)))), "without helpers they are there")
		})
	}
}

// Functions of a package are left out, inlined ones too, and a closure of an inlined one has the name of the caller.
func TestHelpersByPackage(t *testing.T) {
	h := site.NewHelpers([]string{"slices", "sync"})
	var s site.Stack
	_ = slices.IndexFunc([]int{1}, func(int) bool { s = h.Here(0); return true })
	var once sync.Once
	var later site.Stack
	once.Do(func() { later = h.Here(0) })
	var most site.Stack
	sync.OnceFunc(func() { most = h.Here(0) })()
	for _, s := range []site.Stack{s, later, most} {
		assert.Contains(t, s.String(), "site_test.TestHelpersByPackage")
		for _, f := range s.Frames() {
			assert.NotContains(t, f.File, "/sync/", f.Function)
			assert.NotContains(t, f.File, "/slices/", f.Function)
		}
		assert.Contains(t, functions(s), here1+"TestHelpersByPackage")
	}
	for _, f := range functions(called(site.NewHelpers([]string{"github.com/go-vram/vram/cudadrv"}))) {
		assert.NotEmpty(t, f, "a folder above is another package")
	}
	assert.Contains(t, called(site.NewHelpers([]string{"github.com/go-vram/vram/cudadrv"})).String(), "site_test.called")
}

// A call whose kind is kept replaces another one: each has its own kind.
func TestCallsThatShareASlot(t *testing.T) {
	h := site.NewHelpers([]string{here1 + "called", here1 + "generic"})
	begin := reflect.ValueOf(called).Pointer()
	kinds := map[uint64]int{}
	for range 2 {
		for call := begin - 20_000; call < begin+20_000; call += 5 {
			want := site.KindLookedUp(h, call)
			require.Equal(t, want, site.KindOf(h, call))
			kinds[want]++
		}
	}
	require.Greater(t, len(kinds), 1)
}

// A stack of helpers alone keeps them: a place is better than none.
func TestHelpersAlone(t *testing.T) {
	h := site.NewHelpers([]string{here1 + "called", here1 + "inClosureInlined"})
	to := make(chan site.Stack)
	inClosureInlined(h, to)
	assert.Contains(t, (<-to).String(), "site_test.called")
	assert.Nil(t, site.NewHelpers(nil))
	whole := called(nil)
	assert.Equal(t, whole, (*site.Helpers)(nil).Without(whole))
}

// The names that the compiler gives to closures belong to their functions, and no other names do.
func TestNamesOfClosures(t *testing.T) {
	for function, want := range map[string]bool{
		"example.com/app/mem.Get":                     true,
		"example.com/app/mem.Get[...]":                true,
		"example.com/app/mem.Get.func1":               true,
		"example.com/app/mem.Get.func1.2":             true,
		"example.com/app/mem.Get.gowrap3":             true,
		"example.com/app/mem.Get-range1":              true,
		"example.com/app/mem.Get[...].func2-range1":   true,
		"example.com/app/mem.(*Pool).Take":            true,
		"example.com/app/mem.(*Pool[...]).Take-fm":    true,
		"example.com/app/mem.Pool.Take.deferwrap1":    true,
		"example.com/app.Step.Get.func1":              true, // inlined: see the file
		"example.com/app.(*Loop).Run.Pool.Take.func1": true,
		"example.com/app/mem.Getter":                  false,
		"example.com/app/mem.Get.func1.Put.func2":     false, // a closure of Put, inlined
		"example.com/app/mem.(*Pool).Get":             false,
		"example.com/app.Get":                         false,
		"example.com/app.Step.Get":                    false,
		"example.com/other/mem.Get":                   false,
		"gopkg.in/mem%2ev3.Get":                       false,
	} {
		h := site.NewHelpers([]string{"example.com/app/mem.Get", "example.com/app/mem.(*Pool).Take"})
		assert.Equal(t, want, site.Has(h, function, "/src/app/mem/pool.go"), function)
	}
	h := site.NewHelpers([]string{"gopkg.in/mem.v3"})
	assert.True(t, site.Has(h, "gopkg.in/mem%2ev3.Get", "x.go"))
	assert.False(t, site.Has(h, "gopkg.in/mem.Get", "x.go"))
	h = site.NewHelpers([]string{"example.com/app/mem"})
	assert.True(t, site.Has(h, "example.com/app.Step.With.func1", "/mod/example.com/app/mem@v1.2.3/with.go"))
	assert.False(t, site.Has(h, "example.com/app.Step.With.func1", "/mod/example.com/app/step.go"))
	assert.False(t, site.Has(h, "example.com/app.Step.With", "/mod/example.com/app/mem/with.go"))
	assert.False(t, site.Has(h, "example.com/other/mem.Step.With.func1", "/mod/example.com/other/mem/with.go"), "its own package has that folder")
	h = site.NewHelpers([]string{"example.com/app/mem.With"})
	assert.True(t, site.Has(h, "example.com/app.Step.With.func1", "/mod/example.com/app/mem/with.go"))
	assert.False(t, site.Has(h, "example.com/app.Step.Other.func1", "/mod/example.com/app/mem/with.go"))
	assert.False(t, site.Has(h, "example.com/app.Step.With.func1", "/mod/example.com/app/step.go"))
	assert.False(t, site.Has(h, "example.com/other/mem.Step.With.func1", "/mod/example.com/other/mem/with.go"))
}

// Calls that share a slot of the table replace each other, and the answers stay right.
func TestHelpersAtOnce(t *testing.T) {
	h := site.NewHelpers([]string{here1 + "called"})
	var all sync.WaitGroup
	var wrong atomic.Int64
	for range 8 {
		all.Go(func() {
			for range 200 {
				if slices.Contains(functions(called(h)), here1+"called") {
					wrong.Add(1)
				}
			}
		})
	}
	all.Wait()
	assert.Zero(t, wrong.Load())
}

func BenchmarkHereWithHelpers(b *testing.B) {
	b.ReportAllocs()
	h := site.NewHelpers([]string{"example.com/app/mem"})
	for b.Loop() {
		called(h)
	}
}
