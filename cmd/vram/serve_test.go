package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/monitor/page"
)

// served runs the command serve and returns the address of its page. It is stopped at the end of the test.
func served(t *testing.T, args ...string) (url string, stop func() (code int, stderr string)) {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	out, in := io.Pipe()
	var errs bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, append([]string{"serve", "-driver", "sim"}, args...), in, &errs)
		_ = in.Close()
	}()
	line := make([]byte, 200)
	n, err := out.Read(line)
	require.NoError(t, err, "the command has ended")
	go func() { _, _ = io.Copy(io.Discard, out) }()
	_, url, found := strings.Cut(strings.TrimSpace(string(line[:n])), " on ")
	require.True(t, found, "%s", line[:n])
	stopped := false
	stop = func() (int, string) {
		stopped = true
		end()
		c := <-code
		return c, errs.String()
	}
	t.Cleanup(func() {
		if !stopped {
			_, _ = stop()
		}
	})
	return url, stop
}

func get(t *testing.T, url, host string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	if host != "" {
		request.Host = host
	}
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode, string(text)
}

// The page is served over a demonstration with several streams, requests that wait, pressure and memory in every state, and the
// command ends without an error when it is interrupted.
func TestServeADemonstration(t *testing.T) {
	url, stop := served(t, "-speed", "10", "-interval", "50ms")
	status, text := get(t, url, "")
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, text, "<!doctype html>")
	var seen page.Device
	require.Eventually(t, func() bool {
		var s page.Sample
		_, text := get(t, url+"stats.json", "")
		require.NoError(t, json.Unmarshal([]byte(text), &s))
		d := s.Devices[0]
		seen.Figures.PendingBytes = max(seen.Figures.PendingBytes, d.Figures.PendingBytes)
		seen.Figures.SetAsideBytes = max(seen.Figures.SetAsideBytes, d.Figures.SetAsideBytes)
		seen.WaitCount, seen.PressureRises = d.WaitCount, d.PressureRises
		return seen.Figures.PendingBytes > 0 && seen.Figures.SetAsideBytes > 0 && seen.WaitCount > 0 && seen.PressureRises > 0 && len(d.Streams) == 5 && len(d.Tenants) == 3
	}, time.Minute, 5*time.Millisecond)
	var calls page.Calls
	_, text = get(t, url+"calls.json", "")
	require.NoError(t, json.Unmarshal([]byte(text), &calls))
	assert.EqualValues(t, serveSampleBytes, calls.SampleBytes)
	require.NotEmpty(t, calls.Calls, "the top call stacks come without a setting")
	assert.Contains(t, calls.Calls[0].Frames[0].Function, "cmd/vram.(*demo)")
	status, _ = get(t, url+"stats.json", "evil.example")
	assert.Equal(t, http.StatusForbidden, status, "a name of another's that leads here")
	port := url[strings.LastIndex(url, ":"):]
	for _, host := range []string{"localhost" + strings.TrimSuffix(port, "/"), "127.0.0.1", "[::1]:80"} {
		status, _ = get(t, url+"stats.json", host)
		assert.Equal(t, http.StatusOK, status, host)
	}
	code, stderr := stop()
	assert.Equal(t, exitOK, code, stderr)
}

// An event stream that is open when the command is interrupted does not hold it up.
func TestServeEndsWithViewers(t *testing.T) {
	url, stop := served(t, "-trace", "pipeline_1f1b", "-speed", "100")
	answer, err := http.Get(url + "events") //nolint:noctx // the server ends it
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	begin := make([]byte, 20)
	_, err = io.ReadFull(answer.Body, begin)
	require.NoError(t, err)
	assert.Contains(t, string(begin), "event: history")
	code, stderr := stop()
	assert.Equal(t, exitOK, code, stderr)
	_, err = io.ReadAll(answer.Body)
	require.NoError(t, err)
}

// The environment says how much is sampled.
func TestServeSamplesAsTheEnvironmentSays(t *testing.T) {
	t.Setenv("VRAM_SAMPLE_SIZE", "3MiB")
	url, _ := served(t)
	var calls page.Calls
	_, text := get(t, url+"calls.json", "")
	require.NoError(t, json.Unmarshal([]byte(text), &calls))
	assert.Equal(t, 3*mib, calls.SampleBytes)
}

// A trace is played again and again.
func TestServeATrace(t *testing.T) {
	url, stop := served(t, "-trace", "resnet_train", "-speed", "1000")
	require.Eventually(t, func() bool {
		var s page.Sample
		_, text := get(t, url+"stats.json", "")
		require.NoError(t, json.Unmarshal([]byte(text), &s))
		return s.Devices[0].Figures.AllocCount > 0
	}, time.Minute, 5*time.Millisecond)
	code, stderr := stop()
	assert.Equal(t, exitOK, code, stderr)
}

func TestServeMistakes(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	auto := regexp.MustCompile(`(?m)^driver: \w+ \(auto\)\n`) // dynamic, if an earlier test has loaded a fake library
	for args, want := range map[string]string{
		"-speed 0":                             "--speed 0: want more than 0",
		"-interval=-1s":                        "--interval -1s: want 0 or more",
		"-trace nothing":                       "nothing",
		"-limit 0":                             "want more than 0 bytes",
		"-addr " + taken.Addr().String():       "address already in use",
		"-driver sim -addr 127.0.0.1:notaport": "notaport",
	} {
		code, _, stderr := vramCommand(t, append([]string{"serve"}, strings.Fields(args)...)...)
		assert.Equal(t, exitUsage, code, args)
		assert.Contains(t, stderr, want)
		assert.Equal(t, 1, strings.Count(auto.ReplaceAllString(stderr, ""), "\n"), stderr)
	}
}
