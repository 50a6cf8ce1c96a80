//go:build linux

package etcd

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// peers ends the name of a server's connections to others.
const peers = "/peers"

// network connects clients and servers by relays of the test, which know both ends of a connection. Bytes that are sent while one end is cut off
// arrive when the cut ends, as where packets are lost and sent again.
type network struct {
	lock    sync.Mutex
	cut     map[string]bool // clients, servers, and their connections to other servers: NAME/peers
	changed chan struct{}   // closed when cut changes
	over    bool
	open    map[net.Conn]string // the origin of each
}

func newNetwork(tb testing.TB) *network {
	tb.Helper()
	n := &network{cut: map[string]bool{}, changed: make(chan struct{}), open: map[net.Conn]string{}}
	tb.Cleanup(func() {
		n.lock.Lock()
		defer n.lock.Unlock()
		n.over = true
		close(n.changed)
		for c := range n.open {
			_ = c.Close()
		}
	})
	return n
}

// set cuts a client or a server off, or ends that.
func (n *network) set(name string, cut bool) {
	n.lock.Lock()
	defer n.lock.Unlock()
	n.cut[name] = cut
	close(n.changed)
	n.changed = make(chan struct{})
}

// reset closes the connections that a client or a server has made.
func (n *network) reset(origin string) {
	n.lock.Lock()
	defer n.lock.Unlock()
	for c, from := range n.open {
		if from == origin {
			_ = c.Close()
		}
	}
}

// passes waits until nothing cuts a connection, and reports whether the test still runs.
func (n *network) passes(from, to string) bool {
	for {
		n.lock.Lock()
		cut := n.cut[from] || n.cut[to] || n.cut[strings.TrimSuffix(from, peers)] || n.cut[strings.TrimSuffix(to, peers)]
		over, changed := n.over, n.changed
		n.lock.Unlock()
		if over || !cut {
			return !over
		}
		<-changed
	}
}

// relay serves connections to an address of a server, and returns the address that reaches it through the network. They come from one
// origin; "": each names its own, as the server's name that its TLS asks for.
func (n *network) relay(tb testing.TB, from, to, address string) string {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go n.connect(c, from, to, address)
		}
	}()
	return listener.Addr().String()
}

func (n *network) connect(c net.Conn, from, to, address string) {
	defer func() { _ = c.Close() }()
	var hello []byte
	if from == "" {
		from, hello = origin(c)
		from += peers
	}
	if !n.passes(from, to) {
		return
	}
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	n.lock.Lock()
	n.open[c] = from
	n.lock.Unlock()
	defer func() {
		n.lock.Lock()
		delete(n.open, c)
		n.lock.Unlock()
	}()
	if _, err := server.Write(hello); err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { n.pump(server, c, from, to) })
	both.Go(func() { n.pump(c, server, from, to) })
	both.Wait()
}

// pump carries bytes in one direction.
func (n *network) pump(to, from net.Conn, origin, server string) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		read, err := from.Read(buffer)
		if read > 0 {
			if !n.passes(origin, server) {
				return
			}
			if _, err := to.Write(buffer[:read]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// origin returns the name that a connection's TLS asks for, and the bytes that were read of it.
func origin(c net.Conn) (name string, hello []byte) {
	var read bytes.Buffer
	seen := errors.New("seen")
	_ = tls.Server(listened{c, io.TeeReader(c, &read)}, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		name = h.ServerName
		return nil, seen
	}}).Handshake()
	return name, read.Bytes()
}

// listened is a connection that is only read.
type listened struct {
	net.Conn
	from io.Reader
}

func (l listened) Read(p []byte) (int, error)  { return l.from.Read(p) }
func (l listened) Write(p []byte) (int, error) { return len(p), nil }
