//go:build linux

package etcd

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-vram/vram/fleet"
	"github.com/go-vram/vram/fleet/internal/ledgertest"
	"github.com/go-vram/vram/fleet/ledger"
)

// One server is enough for the promises of a ledger, for refused calls, and for a history that is compacted.
func TestOneServer(t *testing.T) {
	t.Parallel()
	c := start(t, 1)
	t.Run("promises", func(t *testing.T) {
		ledgertest.Run(t, func(t *testing.T) ledgertest.Books {
			t.Helper()
			prefix := rand.Text()
			return func() fleet.Ledger {
				l, err := Open(t.Context(), c.config("m0", prefix))
				require.NoError(t, err)
				return l
			}
		})
	})
	t.Run("certificates", c.certificatesAreAsked)
	t.Run("large transactions", c.largeTransactions)
	t.Run("prefix", c.prefixesAreApart)
	t.Run("compaction", c.compaction)
	t.Run("unreachable", c.unreachable)
}

// A process without a certificate, or with one of another authority, is refused, and so is a server of another authority.
func (c *cluster) certificatesAreAsked(t *testing.T) {
	other := newCertificates(t)
	stranger := c.certificates.of(t)
	stranger.Certificates = other.of(t).Certificates
	doubtful := c.certificates.of(t)
	doubtful.RootCAs = other.of(t).RootCAs
	nobody := c.certificates.of(t)
	nobody.Certificates = nil
	for what, config := range map[string]Config{
		"a client of another authority":  {TLS: stranger},
		"a client without a certificate": {TLS: nobody, Insecure: true},
		"a server of another authority":  {TLS: doubtful},
	} {
		config.Endpoints = c.config("m0", "").Endpoints
		_, err := open(timed(t), config, time.Second)
		var unreachable *UnreachableError
		require.ErrorAs(t, err, &unreachable, what)
		if config.TLS == doubtful { // a server may close the connection before its reason arrives
			assert.ErrorContains(t, err, "x509:")
		}
	}
}

// A transaction beyond a limit of the cluster is refused whole; one at the limit is carried out.
func (c *cluster) largeTransactions(t *testing.T) {
	l := c.ledger("m0", rand.Text())
	ctx := t.Context()
	change := func(compares, puts, bytes int) (made ledger.Transaction) {
		for i := range compares {
			made.If = append(made.If, ledger.Compare{Key: fmt.Sprint("none", i)})
		}
		for i := range puts {
			made.Put = append(made.Put, ledger.Put{Key: fmt.Sprint("key", i), Value: make([]byte, bytes)})
		}
		return made
	}
	for what, made := range map[string]ledger.Transaction{
		"compares":                change(129, 1, 1),
		"puts":                    change(1, 129, 1),
		"bytes":                   change(1, 100, 16<<10),
		"more bytes than a frame": change(1, 100, 24<<10),
	} {
		_, err := l.Commit(ctx, made)
		var large *TooLargeError
		require.ErrorAs(t, err, &large, what)
	}
	s, err := l.Read(ctx)
	require.NoError(t, err)
	assert.Empty(t, s.Pairs)
	_, err = l.Commit(ctx, change(128, 128, 8<<10))
	require.NoError(t, err)
	s, err = l.Read(ctx)
	require.NoError(t, err)
	assert.Len(t, s.Pairs, 128)
}

// Fleets with different prefixes do not see each other, also where one prefix begins as the other.
func (c *cluster) prefixesAreApart(t *testing.T) {
	ctx := t.Context()
	a, b := c.ledger("m0", "fleet"), c.ledger("m0", "fleet2")
	at, err := a.Commit(ctx, ledger.Transaction{Put: []ledger.Put{{Key: "k", Value: []byte("a")}}})
	require.NoError(t, err)
	s, err := b.Read(ctx)
	require.NoError(t, err)
	assert.Empty(t, s.Pairs)
	_, err = b.Commit(ctx, ledger.Transaction{If: []ledger.Compare{{Prefix: true}, {Key: "k"}}, Put: []ledger.Put{{Key: "k", Value: []byte("b")}}})
	require.NoError(t, err)
	s, err = c.ledger("m0", "fleet/").Read(ctx)
	require.NoError(t, err)
	assert.Equal(t, []ledger.Pair{{Key: "k", Value: []byte("a"), Create: at, Mod: at}}, s.Pairs)
}

// A watch whose place in the history was compacted while its client was cut off finds the present revision.
func (c *cluster) compaction(t *testing.T) {
	prefix := rand.Text()
	l, other := c.ledger("m1", prefix), c.ledger("m2", prefix)
	ctx := timed(t)
	change := ledger.Transaction{Put: []ledger.Put{{Key: "k"}}}
	at, err := l.Commit(ctx, change)
	require.NoError(t, err)
	for l.known() < at {
		require.NoError(t, l.Wait(ctx, at-1))
	}
	c.set("m1", true)
	c.reset("m1")
	for range 10 {
		at, err = other.Commit(ctx, change)
		require.NoError(t, err)
	}
	_, err = c.direct(c.servers...).Compact(ctx, at)
	require.NoError(t, err)
	_, err = c.direct(c.servers...).Delete(ctx, "not of the fleet") // without a change
	require.NoError(t, err)
	c.set("m1", false)
	for l.known() < at {
		require.NoError(t, l.Wait(ctx, at-1))
	}
	next, err := other.Commit(ctx, change)
	require.NoError(t, err)
	for l.known() < next { // the watch follows again
		require.NoError(t, l.Wait(ctx, at))
	}
}

// known returns the newest revision that the watch has seen.
func (l *Ledger) known() int64 {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.newest
}

// Calls of a client that is cut off fail in bounded time, and its leases end though nobody says so. Then it is served again.
func (c *cluster) unreachable(t *testing.T) {
	ctx := timed(t)
	l, err := open(ctx, c.config("m3", rand.Text()), time.Second)
	require.NoError(t, err)
	defer func() { assert.NoError(t, l.Close()) }()
	e, err := l.Lease(ctx, time.Second)
	require.NoError(t, err)
	_, err = l.Commit(ctx, ledger.Transaction{Put: []ledger.Put{{Key: "k", Lease: e.ID()}}})
	require.NoError(t, err)
	c.set("m3", true)
	var unreachable *UnreachableError
	_, err = l.Read(ctx)
	require.ErrorAs(t, err, &unreachable)
	_, err = l.Commit(ctx, ledger.Transaction{Put: []ledger.Put{{Key: "late"}}})
	require.ErrorAs(t, err, &unreachable)
	<-e.Done()
	require.ErrorAs(t, e.Close(), &unreachable)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = l.Read(ended)
	assert.ErrorIs(t, err, context.Canceled)
	c.set("m3", false)
	for {
		s, err := l.Read(ctx)
		if _, lives := s.Find("k"); err == nil && !lives {
			break
		}
		require.NoError(t, ctx.Err())
	}
}

// A configuration that others could misuse is refused.
func TestConfig(t *testing.T) {
	own := tls.Certificate{Certificate: [][]byte{{1}}}
	mutual := &tls.Config{Certificates: []tls.Certificate{own}}
	for what, config := range map[string]Config{
		"no TLS":           {Endpoints: []string{"https://a:1"}},
		"want https":       {Endpoints: []string{"https://a:1", "http://b:1"}, TLS: mutual},
		"a:1":              {Endpoints: []string{"a:1"}, TLS: mutual},
		"no certificate":   {Endpoints: []string{"https://a:1"}, TLS: &tls.Config{}},
		"are not verified": {Endpoints: []string{"https://a:1"}, TLS: &tls.Config{Certificates: []tls.Certificate{own}, InsecureSkipVerify: true}},
	} {
		_, err := Open(t.Context(), config)
		var wrong *ConfigError
		require.ErrorAs(t, err, &wrong, what)
		assert.ErrorIs(t, err, ErrInsecure)
		assert.ErrorContains(t, err, what)
		config.Insecure = true
		require.NoError(t, config.check())
	}
	_, err := Open(t.Context(), Config{TLS: mutual})
	var wrong *ConfigError
	require.ErrorAs(t, err, &wrong)
	assert.False(t, errors.Is(err, ErrInsecure))
	assert.ErrorContains(t, err, "no endpoints")
}

// A nil or zero ledger refuses each call, and an open one a nil context, as Open does.
func TestANilOrZeroLedger(t *testing.T) {
	var noContext context.Context
	running, stop := context.WithCancel(t.Context())
	defer stop()
	opened := &Ledger{running: running, stop: stop}
	for name, l := range map[string]*Ledger{"nil": nil, "zero": {}, "open": opened} {
		for _, ctx := range []context.Context{noContext, t.Context()} {
			want := fleet.ErrNotOpen
			if l == opened {
				want = fleet.ErrNilContext
			}
			if l == opened && ctx != nil {
				continue
			}
			_, err := l.Lease(ctx, 0)
			require.ErrorIs(t, err, want, name)
			_, err = l.Read(ctx)
			require.ErrorIs(t, err, want, name)
			_, err = l.Read(ctx, "a", "b/")
			require.ErrorIs(t, err, want, name)
			_, err = l.Commit(ctx, ledger.Transaction{If: []ledger.Compare{{Key: "k"}}, Put: []ledger.Put{{Key: "k"}}, Delete: []string{"d"}})
			require.ErrorIs(t, err, want, name)
			require.ErrorIs(t, l.Wait(ctx, 0), want, name)
			require.ErrorIs(t, l.Wait(ctx, 0, "a"), want, name)
		}
		if l != opened {
			require.ErrorIs(t, l.Close(), fleet.ErrNotOpen, name)
		}
	}
	for _, c := range []Config{{}, {Endpoints: []string{"http://localhost:1"}, Insecure: true}} {
		l, err := Open(noContext, c)
		require.ErrorIs(t, err, fleet.ErrNilContext)
		assert.Nil(t, l)
	}
}

// A lease lives as long as a renewal is answered within its time since the last that was, and ends for its holder no later.
func TestRenewals(t *testing.T) {
	const life = 10 * time.Second
	silent := errors.New("no answer")
	for _, c := range []struct {
		name   string
		renew  func(now time.Duration, attempt int, ctx context.Context) (time.Duration, error)
		cancel time.Duration // 0: never
		end    time.Duration
		most   int // attempts
	}{
		{"no answer", func(time.Duration, int, context.Context) (time.Duration, error) { return 0, silent }, 0, life, retries},
		{"a server that does not answer", func(_ time.Duration, _ int, ctx context.Context) (time.Duration, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}, 0, life, renewals},
		{"the cluster has ended it", func(time.Duration, int, context.Context) (time.Duration, error) { return 0, ledger.ErrLeaseEnded }, 0, life / renewals, 1},
		{"answers until an hour", func(now time.Duration, _ int, _ context.Context) (time.Duration, error) {
			if now > time.Hour {
				return 0, silent
			}
			return life, nil
		}, 0, time.Hour + life, 3600*renewals/10 + retries},
		{"two of three servers answer", func(_ time.Duration, attempt int, ctx context.Context) (time.Duration, error) {
			if attempt%3 == 0 {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return life, nil
		}, time.Hour, time.Hour, 3600},
		{"a slow answer counts from its request", func(now time.Duration, _ int, _ context.Context) (time.Duration, error) {
			if now > life/renewals {
				return 0, silent
			}
			time.Sleep(2 * time.Second) //nolint:forbidigo // the time of the bubble
			return life, nil
		}, 0, life/renewals + life, retries + 1},
		{"closed", func(time.Duration, int, context.Context) (time.Duration, error) { return life, nil }, time.Minute, time.Minute, 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.cancel > 0 {
					defer time.AfterFunc(c.cancel, cancel).Stop()
				}
				attempts := 0
				keep(ctx, begin, life, func(ctx context.Context) (time.Duration, error) {
					attempts++
					return c.renew(time.Since(begin), attempts, ctx)
				})
				assert.LessOrEqual(t, time.Since(begin), c.end)
				assert.Greater(t, time.Since(begin), c.end-life/renewals)
				assert.LessOrEqual(t, attempts, c.most)
			})
		})
	}
}

// A wait for some keys passes by changes of others, and returns where the changes since its revision are not all known.
func TestKnownChanges(t *testing.T) {
	event := func(key string, revision int64) *clientv3.Event {
		return &clientv3.Event{Kv: &mvccpb.KeyValue{Key: []byte("f/" + key), ModRevision: revision}}
	}
	l := &Ledger{prefix: "f/", newest: 10, since: 10, changed: make(chan struct{})}
	l.know(12, []*clientv3.Event{event("a", 11), event("b/x", 12), event("c", 12)})
	for _, c := range []struct {
		after int64
		keys  []string
		due   bool
	}{
		{12, nil, false},
		{11, nil, true},
		{11, []string{"a"}, false},
		{10, []string{"a"}, true},
		{11, []string{"b"}, false},
		{11, []string{"b/"}, true},
		{11, []string{"b/x"}, true},
		{12, []string{"b/"}, false},
		{10, []string{"d"}, false},
		{9, []string{"d"}, true},
	} {
		assert.Equal(t, c.due, l.touched(c.after, c.keys), "%+v", c)
	}
	l.know(13, nil)
	assert.True(t, l.touched(12, []string{"d"}), "the watch has lost its place")
	assert.False(t, l.touched(13, []string{"d"}))
	for revision := range int64(4 * mostRecent) {
		l.know(14+revision, []*clientv3.Event{event("a", 14+revision)})
	}
	assert.LessOrEqual(t, len(l.recent), 2*mostRecent)
	assert.True(t, l.touched(13, []string{"d"}))
	assert.False(t, l.touched(l.newest-mostRecent, []string{"d"}))
}
