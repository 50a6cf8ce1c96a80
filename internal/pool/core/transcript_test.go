package core

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/transcript"

	"github.com/go-vram/vram/internal/pool/memory"
)

// TestTranscripts plays the scripts in testdata; the world around the core judges every step as in the model
// test.
//
// Commands: new [plain=1] [idle=0: streams have work] [looks=1: looked is a command] [waits=0|1|2:
// never (default), avoid growth, always], join C [adopted], leave C, refill C pages=N[,N...]
// [live=N], return C RUN... [fence=F] [live=N] [answer] [final], usage C free=N [longest=N]
// [used=N] [stale=1] (published from then on; default: all held pages but the live ones), looked, warm
// N..., trim keep=N, tick, limit N, close, abandon, job [fail=I err=oom|broken] [passed=C:F], over
// C [broken] (a watch), exclude C [no], stuck C [no], map. A RUN is FIRST+PAGES. The map shows a page as
// . (hole), - (free), a letter (free, tagged by that client), a digit (lent), W (held by a
// warm-up), # (busy), and below it | where a handle begins.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	transcript.Run(t, func(t *testing.T) transcript.Machine {
		t.Helper()
		s := &script{t: t}
		return transcript.Machine{Obey: s.obey}
	})
}

// script is a world that is led by commands.
type script struct {
	t     *testing.T
	w     *world
	looks bool // are ended by commands
}

// obey runs one command and returns its output.
func (s *script) obey(words []string) string {
	if words[0] == "new" {
		s.w = newWorld(s.t, uint32(s.number(words, "arena")), uint32(s.number(words, "capacity", 1000)), Settings{
			Policy: Policy{
				HandlePages: uint32(s.number(words, "handle", 8)), Step: s.number(words, "step", 0), Slack: s.number(words, "slack", 0),
				SteadyStep: s.number(words, "steadystep", 0), SteadySlack: s.number(words, "steadyslack", 0),
				MergePages: uint32(s.number(words, "merge", 0)), SpareBytes: s.number(words, "spare", 0) * pageBytes,
				SharedSlack: s.number(words, "shared", 0), MostSharedSlack: s.number(words, "mostshared", 0), OverStep: s.number(words, "over", 0),
				LongPages: uint32(s.number(words, "long", 0)), PageWorth: s.number(words, "worth", 0),
			},
			LimitBytes: s.number(words, "limit", 1000) * pageBytes,
			CacheBytes: s.number(words, "cache", 0) * pageBytes, CacheRuns: int(s.number(words, "runs", 0)),
			Waits:    Waits(s.number(words, "waits", int64(WaitsNever))), //nolint:gosec // 0 to 2
			AgeTicks: uint32(s.number(words, "age", 0)),
		})
		if s.number(words, "plain", 0) == 1 {
			s.w.core = NewPlain(pageBytes, uint32(len(s.w.pages)), s.w.settings)
		}
		s.w.idle = s.number(words, "idle", 1) == 1
		s.looks = s.number(words, "looks", 0) == 1
		return ""
	}
	w := s.w
	w.log, w.candid = nil, !s.looks
	switch words[0] {
	case "map":
		return w.drawing()
	case "join":
		w.clients[s.client(words)] = &holder{}
		w.send(Join{Client: s.client(words), Adopted: slices.Contains(words, "adopted")})
	case "leave":
		w.clients[s.client(words)].left = true
		w.send(Leave{Client: s.client(words)})
	case "refill":
		s.refill(words)
	case "return":
		s.giveBack(words)
	case "usage":
		s.usage(words)
	case "looked":
		w.endLooks()
	case "tick":
		for range s.number(words, "times", 1) {
			w.send(Tick{})
		}
	case "limit":
		w.settings.LimitBytes = s.count(words[1]) * pageBytes
		w.epoch++
		w.core.SetSettings(w.settings)
	case "over": // the watch over a client's fence
		at := slices.IndexFunc(w.watches, func(m Watch) bool { return m.Client == s.client(words) })
		require.GreaterOrEqual(s.t, at, 0, "client %s is not watched", words[1])
		var err error
		if len(words) > 2 {
			err = errBroken
		}
		w.endWatch(at, err)
	case "stuck": // no fence of the client could be recorded
		w.clients[s.client(words)].stuck = len(words) == 2
	case "exclude":
		w.clients[s.client(words)].excluded = len(words) == 2
		w.send(Exclude{Client: s.client(words), Excluded: len(words) == 2})
	case "close":
		w.close()
	case "abandon":
		w.abandon()
	case "warm", "trim":
		s.request(words)
	case "job":
		if w.job == nil {
			return "no job is in flight\n"
		}
		s.job(words)
	default:
		s.t.Fatalf("no command %q", words)
	}
	return w.told()
}

func (s *script) refill(words []string) {
	w := s.w
	w.token++
	r := Refill{Client: s.client(words), Token: w.token, Most: uint32(s.number(words, "most", 0))}
	var pages int64 // of all runs
	for i, n := range s.numbers(words, "pages") {
		pages += n
		if i == 0 {
			r.Pages = uint32(n)
		} else {
			r.More = append(r.More, uint32(n))
		}
	}
	r.Bytes = pages * pageBytes
	r.LiveBytes = s.live(words, int64(w.held(r.Client))+pages)
	w.refills[r.Token] = r
	r.More = slices.Clone(r.More) // the core's from here on
	w.send(r)
}

func (s *script) giveBack(words []string) {
	w := s.w
	r := Return{Client: s.client(words), Fence: Fence(s.number(words, "fence", 0))}
	for _, word := range words[2:] {
		if first, pages, ok := strings.Cut(word, "+"); ok {
			r.Runs = append(r.Runs, Run{First: uint32(s.count(first)), Pages: uint32(s.count(pages))})
		}
		r.Answer = r.Answer || word == "answer"
		r.Final = r.Final || word == "final"
	}
	for _, run := range r.Runs {
		for i := run.First; i < run.First+run.Pages; i++ {
			require.Equal(s.t, r.Client, w.pages[i].owner, "the script returns page %d of another", i)
		}
	}
	c := w.clients[r.Client]
	c.issued = max(c.issued, r.Fence)
	r.LiveBytes = s.live(words, c.live)
	w.mail = append(w.mail, r)
	w.deliverAt(len(w.mail) - 1)
}

// usage sets the figures that a client publishes from now on: used bytes, and free pages.
func (s *script) usage(words []string) {
	c := s.w.clients[s.client(words)]
	c.live = s.number(words, "used", c.live)
	pages := uint32(s.number(words, "free"))
	c.free = published{set: true, pages: pages, stale: s.number(words, "stale", 0) == 1}
	c.free.atMax = uint32(s.number(words, "longest", int64(pages)))
}

func (s *script) request(words []string) {
	w := s.w
	w.token++
	w.await(words[0])
	if words[0] == "trim" {
		w.send(Trim{Token: w.token, KeepBytes: s.number(words, "keep") * pageBytes})
		return
	}
	m := Warm{Token: w.token}
	for _, word := range words[1:] {
		m.Runs = append(m.Runs, uint32(s.count(word)))
	}
	w.send(m)
}

// job ends the job in flight.
func (s *script) job(words []string) {
	w := s.w
	failAt, err := int(s.number(words, "fail", -1)), error(errBroken)
	for _, word := range words[1:] {
		if word == "err=oom" {
			err = cudadrv.OutOfMemory
		}
		if what, ok := strings.CutPrefix(word, "passed="); ok {
			id, fence, _ := strings.Cut(what, ":")
			w.clients[Client(s.count(id))].passed = Fence(s.count(fence))
		}
	}
	w.perform(failAt, err)
}

// live returns the bytes that a client reports in use.
func (s *script) live(words []string, otherwise int64) int64 {
	c := s.w.clients[s.client(words)]
	c.live = s.number(words, "live", otherwise)
	return c.live * pageBytes
}

// client returns the second word.
func (s *script) client(words []string) Client { return Client(s.count(words[1])) }

// number returns the value of name=value, or the default.
func (s *script) number(words []string, name string, otherwise ...int64) int64 {
	if value, found := transcript.Option(words, name); found {
		return s.count(value)
	}
	require.NotEmpty(s.t, otherwise, "%v lacks %s", words, name)
	return otherwise[0]
}

// numbers returns the values of name=value,value.
func (s *script) numbers(words []string, name string) (all []int64) {
	values, found := transcript.Option(words, name)
	require.True(s.t, found, "%v lacks %s", words, name)
	for value := range strings.SplitSeq(values, ",") {
		all = append(all, s.count(value))
	}
	return all
}

func (s *script) count(text string) int64 { return transcript.Number(s.t, text) }

// told returns the effects of the last step, a line each.
func (w *world) told() string {
	var out strings.Builder
	for _, line := range w.log {
		if said, ok := strings.CutPrefix(line, "-> "); ok {
			out.WriteString(said + "\n")
		}
	}
	return out.String()
}

// drawing returns the page table in two lines, and the sums.
func (w *world) drawing() string {
	c := w.core
	pages, handles := make([]byte, 0, 64), make([]byte, 0, 64)
	for at := uint32(0); at < c.memory.Top(); at++ {
		p := c.memory.Page(at)
		n, letter := uint32(1), byte('.')
		switch {
		case p.State == memory.Free:
			n, letter = p.RunPages, "-abcdefgh"[p.Tag.Client]
		case p.State == memory.Lent && p.Holder == warmClient:
			letter = 'W'
		case p.State == memory.Lent:
			letter = "0123456789"[p.Holder]
		case p.State == memory.Busy:
			letter = '#'
		}
		for range n {
			pages = append(pages, letter)
		}
		at += n - 1
	}
	for at := range c.memory.Top() {
		begins := byte(' ')
		if h := c.memory.Page(at).Handle; h >= 0 && c.memory.Handle(h).Run.First == at {
			begins = '|'
		}
		handles = append(handles, begins)
	}
	lines := []string{string(pages), strings.TrimRight(string(handles), " "), w.sums()}
	return strings.Join(slices.DeleteFunc(lines, func(s string) bool { return s == "" }), "\n") + "\n"
}

func (w *world) sums() string {
	c := w.core
	return fmt.Sprintf("reserved %d lost %d, free %d in %d, pending %d, lent %d, busy %d",
		c.ReservedBytes()/pageBytes, c.lostBytes()/pageBytes, c.freeBytes()/pageBytes, c.freeRuns(),
		c.pendingBytes()/pageBytes, c.lentBytes()/pageBytes, c.busyBytes()/pageBytes)
}
