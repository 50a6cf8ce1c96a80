package browser

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	// required is the variable that makes a missing Chromium a failure: make browser sets it.
	required = "VRAM_BROWSER"
	// waitLimit is how long a test waits for the page: on a busy machine seconds.
	waitLimit = time.Minute
	// pictures is the folder for the pictures; git ignores it.
	pictures = "pictures"
)

// chromium is the path of a Chromium or Chrome, or the test ends here.
func chromium(t *testing.T) string {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"}
	if named := os.Getenv("CHROMIUM"); named != "" {
		names = []string{named}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	require.Empty(t, os.Getenv(required), "there is no %s on this machine", strings.Join(names, ", "))
	t.Skip("there is no Chromium on this machine: make browser installs it") //nolint:forbidigo // the page needs a browser
	return ""
}

// viewer is a tab of a browser.
type viewer struct {
	*testing.T
	ctx context.Context // chromedp's name of the tab

	mu       sync.Mutex
	messages []string // of the console
}

// newViewer starts a browser, which ends with the test.
func newViewer(t *testing.T) *viewer {
	t.Helper()
	options := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
	options = append(options, chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, // containers and root have no sandbox; the page is our own
		chromedp.WSURLReadTimeout(waitLimit))
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(end)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(end)
	v := &viewer{T: t, ctx: ctx}
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate("about:blank")))
	console := chromedp.Console(ctx)
	go func() { // it ends with the tab
		for message, err := range console {
			if err != nil {
				return
			}
			v.mu.Lock()
			v.messages = append(v.messages, message.String())
			v.mu.Unlock()
		}
	}()
	return v
}

// look sets the view: its size, light or dark.
func (v *viewer) look(width, height int64, scheme string) {
	v.Helper()
	v.do(chromedp.EmulateViewport(width, height))
	_, err := chromedp.Call(v.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	require.NoError(v, err)
}

func (v *viewer) do(steps ...chromedp.Action[chromedp.Void]) {
	v.Helper()
	ctx, end := context.WithTimeout(v.ctx, waitLimit)
	defer end()
	require.NoError(v, chromedp.Do(ctx, steps...))
}

// eval is the value of an expression of JavaScript.
func eval[T any](v *viewer, expression string) T {
	v.Helper()
	ctx, end := context.WithTimeout(v.ctx, waitLimit)
	defer end()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(v, err, expression)
	return value
}

// until waits for an expression to become true.
func (v *viewer) until(why, expression string) {
	v.Helper()
	ctx, end := context.WithTimeout(v.ctx, waitLimit)
	defer end()
	_, err := chromedp.Run(ctx, chromedp.Poll[bool](expression, chromedp.WithPollingInterval(20*time.Millisecond)))
	require.NoError(v, err, why)
}

func (v *viewer) text(id string) string {
	v.Helper()
	return eval[string](v, `document.getElementById("`+id+`").textContent`)
}

// picture saves the whole page.
func (v *viewer) picture(name string) {
	v.Helper()
	png, err := chromedp.Run(v.ctx, chromedp.FullScreenshot(100))
	require.NoError(v, err)
	require.NoError(v, os.MkdirAll(pictures, 0o750))
	require.NoError(v, os.WriteFile(filepath.Join(pictures, name+".png"), png, 0o600))
}

// quiet checks that the page has printed no error and no warning.
func (v *viewer) quiet() {
	v.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	assert.Empty(v, v.messages)
}

var running = flag.String("url", "", "the address of a running page, of which pictures are made")

// With a page that runs elsewhere it makes pictures for docs: light.png and dark.png of the whole page, and the same of a
// phone.
//
//	vram serve -addr 127.0.0.1:8080 &
//	lab/browser/run.sh -run Running -url http://127.0.0.1:8080/
func TestPicturesOfARunningPage(t *testing.T) {
	if *running == "" {
		return // make browser has no other page than the tests'
	}
	v := newViewer(t)
	v.look(1200, 900, "light")
	v.do(chromedp.Navigate(*running))
	v.until("the map and the call stacks come", `!document.getElementById("map").hidden && document.getElementById("call-rows").children.length > 0`)
	for _, scheme := range []string{"light", "dark"} {
		v.look(1200, 900, scheme)
		v.until("requests wait", `document.getElementById("waiter-rows").children.length > 0`)
		v.until("the page has its width", `innerWidth === 1200`)
		v.picture("running-" + scheme)
		v.look(360, 740, scheme)
		v.until("the page has its width", `innerWidth === 360`)
		v.picture("running-phone-" + scheme)
		eval[bool](v, `(document.querySelector('#map-colours [data-by="stream"]').click(), true)`)
	}
}
