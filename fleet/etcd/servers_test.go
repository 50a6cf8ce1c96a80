//go:build linux

package etcd

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// serverVariable has the configuration of a server in its process.
const serverVariable = "VRAM_ETCD_SERVER"

// heartbeatTime and electionTime are etcd's defaults.
const (
	heartbeatTime = 100 * time.Millisecond
	electionTime  = time.Second
)

// serverConfig is a server of a cluster.
type serverConfig struct {
	Name, Folder, Certificates string
	Client, Peer               string // addresses that it listens at
	ClientURL                  string // by which it is reached
	Cluster                    string // NAME=URL, of all servers
	Quota                      int64  // bytes of the database; 0: etcd's default
}

// serve is the program of a server. It ends with its input.
func serve(config string) {
	must := func(err error) {
		if err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
	}
	var c serverConfig
	must(json.Unmarshal([]byte(config), &c))
	secured := transport.TLSInfo{
		CertFile: filepath.Join(c.Certificates, "server.crt"), KeyFile: filepath.Join(c.Certificates, "server.key"),
		TrustedCAFile: filepath.Join(c.Certificates, "ca.crt"), ClientCertAuth: true, ServerName: c.Name,
	}
	at := func(address string) []url.URL { return []url.URL{{Scheme: "https", Host: address}} }
	s := embed.NewConfig()
	s.Name, s.Dir, s.InitialCluster = c.Name, c.Folder, c.Cluster
	s.ListenClientUrls, s.ListenPeerUrls = at(c.Client), at(c.Peer)
	s.AdvertiseClientUrls = at(c.ClientURL)
	for member := range strings.SplitSeq(c.Cluster, ",") {
		if address, own := strings.CutPrefix(member, c.Name+"=https://"); own {
			s.AdvertisePeerUrls = at(address)
		}
	}
	s.ClientTLSInfo, s.PeerTLSInfo = secured, secured
	s.TickMs, s.ElectionMs = uint(heartbeatTime.Milliseconds()), uint(electionTime.Milliseconds())
	s.SocketOpts.ReusePort = true // the test keeps the address
	s.EnableGRPCGateway = false
	s.QuotaBackendBytes = c.Quota
	s.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	e, err := embed.StartEtcd(s)
	must(err)
	select {
	case <-e.Server.ReadyNotify():
		fmt.Println("ready")
	case err := <-e.Err():
		must(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// cluster is some servers, each a process, which are reached through a network.
type cluster struct {
	*network
	t            testing.TB
	certificates certificates
	servers      []*server
	endpoints    map[string][]string // of each client
}

type server struct {
	config serverConfig
	cmd    *exec.Cmd
}

// start starts the servers s0, s1 and so on.
func start(tb testing.TB, servers int) *cluster {
	tb.Helper()
	return startWith(tb, servers, 0)
}

// startWith starts servers with a quota.
func startWith(tb testing.TB, servers int, quota int64) *cluster {
	tb.Helper()
	c := &cluster{network: newNetwork(tb), t: tb, certificates: newCertificates(tb), endpoints: map[string][]string{}}
	var urls []string
	for i := range servers {
		s := &server{config: serverConfig{Name: fmt.Sprint("s", i), Folder: tb.TempDir(), Certificates: c.certificates.folder, Client: address(tb), Peer: address(tb), Quota: quota}}
		s.config.ClientURL = c.relay(tb, "outside", s.config.Name, s.config.Client)
		urls = append(urls, s.config.Name+"=https://"+c.relay(tb, "", s.config.Name+peers, s.config.Peer))
		c.servers = append(c.servers, s)
	}
	var ready []func()
	for _, s := range c.servers {
		s.config.Cluster = strings.Join(urls, ",")
		ready = append(ready, c.run(s))
	}
	for _, wait := range ready {
		wait()
	}
	return c
}

// address keeps an address of this host free for a server.
func address(tb testing.TB) string {
	tb.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = unix.Close(fd) })
	require.NoError(tb, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
	require.NoError(tb, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	name, err := unix.Getsockname(fd)
	require.NoError(tb, err)
	return fmt.Sprint("127.0.0.1:", name.(*unix.SockaddrInet4).Port)
}

// run starts the process of a server, and returns a function that waits until it is ready.
func (c *cluster) run(s *server) (ready func()) {
	c.t.Helper()
	config, err := json.Marshal(s.config)
	require.NoError(c.t, err)
	s.cmd = exec.Command(os.Args[0])
	s.cmd.Env = append(os.Environ(), serverVariable+"="+string(config))
	s.cmd.Stderr = os.Stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	_, err = s.cmd.StdinPipe() // it is open as long as the tests run
	require.NoError(c.t, err)
	out, err := s.cmd.StdoutPipe()
	require.NoError(c.t, err)
	require.NoError(c.t, s.cmd.Start())
	c.t.Cleanup(s.kill)
	return func() {
		c.t.Helper()
		line, _ := bufio.NewReader(out).ReadString('\n')
		require.Equal(c.t, "ready\n", line, s.config.Name)
	}
}

// kill ends the process at once.
func (s *server) kill() {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}

// config returns the configuration of a client.
func (c *cluster) config(client, prefix string) Config {
	if c.endpoints[client] == nil {
		for _, s := range c.servers {
			c.endpoints[client] = append(c.endpoints[client], "https://"+c.relay(c.t, client, s.config.Name, s.config.Client))
		}
	}
	return Config{Endpoints: c.endpoints[client], Prefix: prefix, TLS: c.certificates.of(c.t)}
}

// ledger opens a ledger as a client.
func (c *cluster) ledger(client, prefix string) *Ledger {
	c.t.Helper()
	l, err := Open(c.t.Context(), c.config(client, prefix))
	require.NoError(c.t, err)
	c.t.Cleanup(func() { assert.NoError(c.t, l.Close()) })
	return l
}

// direct returns a client of some servers, which reaches them past the network.
func (c *cluster) direct(servers ...*server) *clientv3.Client {
	c.t.Helper()
	var endpoints []string
	for _, s := range servers {
		endpoints = append(endpoints, "https://"+s.config.Client)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, TLS: c.certificates.of(c.t), Logger: zap.NewNop()})
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = client.Close() }) // it returns the end of its own context
	return client
}

// leader waits until one server leads, and returns it.
func (c *cluster) leader(client *clientv3.Client) *server {
	c.t.Helper()
	for ctx := timed(c.t); ; {
		for i, endpoint := range client.Endpoints() {
			short, cancel := context.WithTimeout(ctx, electionTime)
			status, err := client.Status(short, endpoint)
			cancel()
			if err == nil && status.Leader == status.Header.MemberId {
				return c.servers[i]
			}
		}
		require.NoError(c.t, ctx.Err(), "no server leads")
	}
}

// elections sees the elections of all servers but one, until the test asks when the last of them was.
func (c *cluster) elections(lost *server) (last func() time.Time) {
	c.t.Helper()
	left := slices.DeleteFunc(slices.Clone(c.servers), func(s *server) bool { return s == lost })
	ctx, cancel := context.WithCancel(c.t.Context())
	at := make(chan time.Time, len(left))
	for _, s := range left {
		client := c.direct(s)
		go func() {
			var term uint64
			var last time.Time
			for ticks := time.Tick(heartbeatTime / 10); ctx.Err() == nil; <-ticks {
				short, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), electionTime)
				answer, err := client.Get(short, "none", clientv3.WithSerializable())
				cancel()
				if err == nil && answer.Header.RaftTerm != term {
					if term != 0 {
						last = time.Now()
					}
					term = answer.Header.RaftTerm
				}
			}
			at <- last
		}()
	}
	return func() (last time.Time) {
		cancel()
		for range left {
			if t := <-at; t.After(last) {
				last = t
			}
		}
		return last
	}
}

// timed returns a context for something that must not take long: a minute is a failure.
func timed(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	tb.Cleanup(cancel)
	return ctx
}

// certificates are an authority and the servers' certificate.
type certificates struct {
	folder string
	root   *x509.Certificate
	key    *ecdsa.PrivateKey
}

func newCertificates(tb testing.TB) certificates {
	tb.Helper()
	c := certificates{folder: tb.TempDir()}
	c.root, c.key, _ = issue(tb, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	names := []string{"s0", "s1", "s2"} // a server that connects to another asks for its own name
	leaf, key, _ := issue(tb, &x509.Certificate{DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, c.root, c.key)
	private, err := x509.MarshalECPrivateKey(key)
	require.NoError(tb, err)
	for name, block := range map[string]pem.Block{
		"ca.crt": {Type: "CERTIFICATE", Bytes: c.root.Raw}, "server.crt": {Type: "CERTIFICATE", Bytes: leaf.Raw}, "server.key": {Type: "EC PRIVATE KEY", Bytes: private},
	} {
		require.NoError(tb, os.WriteFile(filepath.Join(c.folder, name), pem.EncodeToMemory(&block), 0o600))
	}
	return c
}

// issue makes a certificate; without a parent it signs itself.
func issue(tb testing.TB, c, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, tls.Certificate) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	if parent == nil {
		parent, signer = c, key
	}
	c.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(tb, err)
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	raw, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	require.NoError(tb, err)
	made, err := x509.ParseCertificate(raw)
	require.NoError(tb, err)
	return made, key, tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

// of returns the TLS of a client.
func (c certificates) of(tb testing.TB) *tls.Config {
	tb.Helper()
	_, _, own := issue(tb, &x509.Certificate{}, c.root, c.key)
	roots := x509.NewCertPool()
	roots.AddCert(c.root)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}}
}
