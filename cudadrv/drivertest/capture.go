package drivertest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// Captures are operations of other code on streams, for which cudadrv has no calls. Errors are as in a Device.
type Captures interface {
	// BeginCapture begins a capture in the relaxed mode.
	BeginCapture(s cudadrv.Stream) error
	// EndCapture ends it and drops the graph.
	EndCapture(s cudadrv.Stream) error
}

// RunCaptures checks a driver's calls on streams that are captured into graphs: the expected results are from an H100. open is
// called once for each sequence of calls.
func RunCaptures(t *testing.T, open func(t *testing.T) (cudadrv.Driver, Captures)) {
	t.Helper()
	for _, row := range captureSequences {
		t.Run(strings.ReplaceAll(row.calls, ", ", ","), func(t *testing.T) {
			drv, captures := open(t)
			dev, err := drv.Open(0)
			require.NoError(t, err)
			c := &captureBench{bench: &bench{T: t, drv: drv, dev: dev, info: dev.Info()}, captures: captures}
			c.begin()
			defer c.end()
			assert.Equal(t, row.results, c.run(row.calls), "%s", row.calls)
		})
	}
}

// captureSequences are calls and their results. Each has streams and events of its own: a, b and c are non-blocking streams, k
// is a blocking one, 0 is the legacy default stream, e, f and n are events that were never recorded. A result is CUDA's number;
// for a successful status call, the status.
var captureSequences = []struct{ calls, results string }{ //nolint:gochecknoglobals // a constant table
	// A captured event: to ask about it breaks the capture, and once that is over there is nothing to ask.
	{"begin a, record e a, query e, synchronize e, status a, end a, query e, synchronize e, wait b e, status b", "0 0 907 1 2 901 1 1 1 0"},
	{"begin a, record e a, synchronize e, status a, end a", "0 0 907 2 901"},
	{"begin a, record e a, end a, wait a e, wait 0 e, work 0, query e", "0 0 0 1 1 0 1"},
	{"begin a, record e a, end a, record e b, synchronize e, query e", "0 0 0 0 0 0"},
	{"begin a, record e a, drain a, query e, synchronize e, wait b e, status b, wait 0 e, end a, query e", "0 0 900 1 1 1 0 1 901 1"},
	{"begin a, record e a, record e b, synchronize e, query e, wait b e, status b, end a", "0 0 0 0 0 0 0 0"},
	{"begin a, record e a, forget e, end a", "0 0 0 0"},
	{"begin a, record e a, wait a e, end a, record e a, synchronize e, query e", "0 0 0 0 0 0 0"},

	// A capture that begins between the query for one and the call: a record leaves no trace if the query is repeated and the
	// event is dropped, and an event that was recorded before stays usable; queries and waits invalidate the capture.
	{"status a, begin a, record e a, status a, forget e, end a", "0 0 0 1 0 0"},
	{"status a, begin a, record e a, end a, status a, query e, wait b e, status b", "0 0 0 0 0 1 1 0"},
	{"record e a, begin a, synchronize e, query e, status a, end a", "0 0 0 0 1 0"},
	{"record e a, begin a, wait b e, status b, work b, status a, end a", "0 0 0 0 0 1 0"},
	{"record e b, status a, begin a, wait a e, status a, end a", "0 0 0 905 2 901"},
	{"status a, begin a, record e a, wait b e, status b, work b, end a, status b", "0 0 0 0 1 0 904 0"},
	{"status a, begin a, drain a, status a, end a", "0 0 900 2 901"},
	{"status a, begin a, await a, status a, end a", "0 0 900 2 901"},
	{"status a, begin a, work a, status a, end a", "0 0 0 1 0"},

	// A stream that waits for one is captured, too.
	{"begin a, record e a, wait b e, status b, drain b, status a, end a, status b, query e", "0 0 0 1 900 2 901 0 1"},
	{"begin a, record e a, wait b e, await b, status a, status b, end a", "0 0 0 900 2 2 901"},
	{"begin a, record e a, wait b e, work b, end a, status a, status b, query e", "0 0 0 0 904 0 0 1"},
	{"begin a, record e a, wait b e, end a, status b", "0 0 0 0 0"},
	{"begin a, work a, record e a, wait b e, end a", "0 0 0 0 0"},
	{"begin a, record e a, wait b e, record f b, wait a f, end a, status b, query f", "0 0 0 0 0 0 0 1"},
	{"begin a, record e a, wait b e, record f b, work b, wait a f, end a, status b", "0 0 0 0 0 0 904 0"},
	{"begin a, record e a, wait b e, record f b, work b, record f b, wait a f, end a", "0 0 0 0 0 0 0 0"},
	{
		"begin a, record e a, wait b e, work b, record f b, wait c f, status c, record n c, wait a n, end a, status c",
		"0 0 0 0 0 0 1 0 0 0 0",
	},
	{"begin a, record e a, wait b e, work b, record f b, wait a f, wait c f, work c, record n c, end a", "0 0 0 0 0 0 0 0 0 904"},
	{"begin a, record f b, record e a, wait b e, record e b, status b, end a, query e", "0 0 0 0 0 1 0 1"},
	{"begin a, record e a, wait b e, begin b, status a, wait b e, end b, end a", "0 0 0 401 1 0 903 901"},
	{"begin a, record e a, wait k e, status k, status 0, status a, end k, end a, status k", "0 0 0 1 906 1 903 901 0"},

	// Streams that end.
	{"begin a, record e a, wait b e, destroy b, status a, end a", "0 0 0 0 1 0"},
	{"begin a, record e a, wait b e, work b, destroy b, status a, end a", "0 0 0 0 0 1 904"},
	{"begin a, record e a, wait b e, destroy a, status b, work b, query e", "0 0 0 0 0 0 1"},

	// Two captures, and waits for work outside.
	{"begin a, begin b, record e a, wait b e, status a, status b, end a, end b", "0 0 0 902 2 2 901 901"},
	{"begin a, begin b, record e a, record f b, drain a, wait a e, wait b e, wait b f, status b, end b, end a", "0 0 0 0 900 901 1 901 2 901 901"},
	{"begin a, wait a n, end a", "0 0 0"},
	{"record f b, begin a, wait a f, status a, work a, record e a, wait a e, wait b e, status b, end a", "0 0 905 2 901 901 901 0 0 901"},
	{"record e 0, begin a, wait a e, status a, end a", "0 0 905 2 901"},
	{"begin a, drain a, context, drain a, await a, status a, end a", "0 900 900 900 900 2 901"},
	{"begin a, context, status a, end a", "0 900 2 901"},

	// The legacy default stream.
	{"begin 0, end 0, end a", "900 401 401"},
	{"begin a, record e a, wait 0 e, status a, end a", "0 0 906 2 901"},
	{"begin k, status 0, status k, end k", "0 906 1 0"},
	{"begin k, record e 0, status k, end k", "0 906 2 901"},
	{"begin k, work 0, status k, end k", "0 906 2 901"},
	{"begin k, wait 0 n, status k, end k", "0 906 2 901"},
	{"begin k, drain 0, status k, end k", "0 906 2 901"},
	{"begin k, await 0, status k, end k", "0 906 2 901"},
	{"begin k, record e k, wait 0 e, status k, end k", "0 0 906 2 901"},
}

// captureBench is a bench with the streams and events of a sequence.
type captureBench struct {
	*bench
	captures Captures
	streams  map[string]cudadrv.Stream
	events   map[string]cudadrv.Event
	p        cudadrv.Ptr
}

func (c *captureBench) begin() {
	c.p = must(c.dev.MemAlloc(4096))(c.bench)
	c.streams = map[string]cudadrv.Stream{"a": c.stream(), "b": c.stream(), "c": c.stream(), "k": c.stream()}
	if l, ok := c.dev.(cudadrv.BlockingStreams); ok && c.info.Capabilities.Has(cudadrv.BlockingCreation) {
		c.ok(c.dev.StreamDestroy(c.streams["k"]))
		c.streams["k"] = must(l.StreamCreateBlocking())(c.bench)
	}
	c.events = map[string]cudadrv.Event{"e": c.event(), "f": c.event(), "n": c.event()}
}

func (c *captureBench) end() {
	for _, e := range c.events {
		c.ok(c.dev.EventDestroy(e))
	}
	for _, s := range c.streams {
		c.ok(c.dev.StreamDestroy(s))
	}
	c.ok(c.dev.CtxSynchronize())
	c.ok(c.dev.MemFree(c.p))
	c.ok(c.dev.Close())
}

// run makes the calls and returns their results.
func (c *captureBench) run(calls string) string {
	c.Helper()
	var results []string
	for step := range strings.SplitSeq(calls, ", ") {
		words := append(strings.Fields(step), "")
		result, err := c.step(words[0], words[1], words[2:])
		if err != nil {
			var failed *cudadrv.CallError
			require.True(c, errors.As(err, &failed), "%s: %v", step, err)
			result = int(failed.Result)
		}
		results = append(results, fmt.Sprint(result))
	}
	return strings.Join(results, " ")
}

// step makes a call. of is its stream or event; with are its other operands.
func (c *captureBench) step(verb, of string, with []string) (result int, err error) {
	c.Helper()
	s, e := c.streams[of], c.events[of]
	switch verb {
	case "begin":
		return 0, c.captures.BeginCapture(s)
	case "end":
		return 0, c.captures.EndCapture(s)
	case "status":
		status, err := c.status(s)
		return int(status), err
	case "record":
		return 0, c.dev.EventRecord(e, c.streams[with[0]])
	case "query":
		return unready(c.dev.EventQuery(e))
	case "synchronize":
		return 0, c.dev.EventSynchronize(e)
	case "forget":
		delete(c.events, of)
		return 0, c.dev.EventDestroy(e)
	case "wait":
		return 0, c.dev.StreamWaitEvent(s, c.events[with[0]])
	case "work":
		return 0, c.dev.MemsetD8Async(c.p, 1, 4096, s)
	case "drain":
		return unready(c.dev.StreamQuery(s))
	case "await":
		return 0, c.dev.StreamSynchronize(s)
	case "context":
		return 0, c.dev.CtxSynchronize()
	case "destroy":
		delete(c.streams, of)
		return 0, c.dev.StreamDestroy(s)
	}
	return 0, fmt.Errorf("drivertest: no call %q", verb)
}

func (c *captureBench) status(s cudadrv.Stream) (cudadrv.CaptureStatus, error) {
	q, ok := c.dev.(cudadrv.CaptureQueries)
	require.True(c, ok)
	return q.StreamIsCapturing(s)
}

func unready(passed bool, err error) (int, error) {
	if err == nil && !passed {
		return int(cudadrv.NotReady), nil
	}
	return 0, err
}
