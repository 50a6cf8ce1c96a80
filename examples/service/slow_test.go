package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
)

// Clients that never read lose their connections, on every route; an idle client does not.
func TestClientsThatNeverReadAreCutOff(t *testing.T) {
	newRig(t, settings{}) // make the process's singletons
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, settings{})
		listener := newPipes()
		stop, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Serve(stop, t.Context(), listener, shutdown{Deadline: time.Hour}) }()
		var clients []net.Conn
		for n := range 200 {
			c, err := listener.dial(t.Context(), "", "")
			require.NoError(t, err)
			clients = append(clients, c)
			request := [...]string{"GET /stats", "GET /metrics", "GET /healthz", "POST /v1/infer", "GET /nowhere"}[n%5]
			_, err = io.WriteString(c, request+" HTTP/1.1\r\nHost: service\r\n\r\n")
			require.NoError(t, err)
		}
		idle, err := listener.dial(t.Context(), "", "")
		require.NoError(t, err)
		_, err = io.WriteString(idle, "GET /healthz HTTP/1.1\r\nHost: service\r\n\r\n")
		require.NoError(t, err)
		begun := make([]byte, 12)
		_, err = io.ReadFull(idle, begun)
		require.NoError(t, err)
		assert.Equal(t, "HTTP/1.1 200", string(begun))
		go func() { _, _ = io.Copy(io.Discard, idle) }()
		<-time.After(writeTimeout + readTimeout) // virtual
		synctest.Wait()
		for n, c := range clients {
			_, err := c.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF, "client %d has its connection still", n)
		}
		_, err = io.WriteString(idle, "GET /healthz HTTP/1.1\r\nHost: service\r\n\r\n")
		require.NoError(t, err, "who reads keeps the connection")
		synctest.Wait()
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, idle.Close())
	})
}

// An answer names the stream that it was served on as the statistics do.
func TestAnswersAndStatisticsNumberStreamsAlike(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings{Config: vram.Config{LimitBytes: 3 << 30}, WorkerCount: 3})
	server := httptest.NewServer(r.Handler())
	defer server.Close()
	before := map[uint32]uint64{}
	for range 6 {
		answers := make(chan answer, 1)
		go func() {
			a, _ := send(t.Context(), t, server.Client(), "POST", server.URL+"/v1/infer", small)
			answers <- a
		}()
		r.until("the answer", func() bool { r.kernels(); return len(answers) == 1 })
		a := <-answers
		require.Equal(t, http.StatusOK, a.status)
		all, err := send(t.Context(), t, server.Client(), "GET", server.URL+"/stats", "")
		require.NoError(t, err)
		var seen report
		require.NoError(t, json.Unmarshal([]byte(all.body), &seen))
		served := map[uint32]bool{}
		for _, s := range seen.Streams {
			served[s.Stream] = s.AllocCount > before[s.Stream]
			before[s.Stream] = s.AllocCount
		}
		for stream, did := range served {
			assert.Equal(t, stream == a.infer.Stream, did, "stream %d, answered by %d", stream, a.infer.Stream)
		}
		assert.Contains(t, served, a.infer.Stream)
	}
}
