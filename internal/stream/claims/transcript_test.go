package claims_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/stream/claims"
	"github.com/go-vram/vram/internal/transcript"
)

// TestTranscripts plays the scripts in testdata. A script replaces the shell: it reports the result of a
// search and the pool's answer, and the table returns the verdict.
//
// Commands: claim NAME [waits] [owes|paid], stream [closing] [demand] [handler] [pending], arrive
// NAME [gone], hold NAME asked|consulted|delayed|parked, take NAME, refuse NAME [memory] [report]
// [last], settled NAME, received RUNS, offer NAME|nobody RUNS, offers, due, again, all, pay NAME yes|no|gone,
// refund NAME, hand NAME, miss AFTER, line AFTER [missing], learn AFTER found|nothing, fences
// begin|others BYTES|resume|resumed [passed]|panic|tick.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	transcript.Run(t, func(t *testing.T) transcript.Machine {
		t.Helper()
		s := &script{t: t, named: map[string]*claims.Claim{}}
		return transcript.Machine{Obey: s.obey}
	})
}

// account is a tenant that allows all or nothing.
type account struct {
	allows  bool
	charged int64
}

func (*account) TooLarge(int64) bool { return false }

func (a *account) Charge(bytes int64) bool {
	if a.allows {
		a.charged += bytes
	}
	return a.allows
}

func (a *account) Refund(bytes int64) { a.charged -= bytes }

type script struct {
	t      *testing.T
	named  map[string]*claims.Claim
	table  claims.Table
	stream claims.Stream
	looks  claims.Looks
	fences claims.FenceWait
	tenant account
}

func (s *script) obey(words []string) string {
	verb, args := words[0], words[1:]
	has := func(word string) bool { return slices.Contains(args, word) }
	switch verb {
	case "stream":
		s.stream = claims.Stream{Closing: has("closing"), Demand: has("demand"), Handler: has("handler"), Pending: has("pending")}
	case "received":
		s.table.Receive(s.number(args[0]))
	case "offers":
		return s.offers()
	case "due":
		return s.due()
	case "again":
		return s.again()
	case "all":
		return s.all()
	case "offer":
		return s.offer(args[0], uint64(s.number(args[1])))
	case "miss", "line", "learn":
		return s.look(verb, after(args[0]), args[1:])
	case "fences":
		return s.fence(args)
	case "claim":
		return s.claim(args[0], has("waits"), has("owes"), has("paid"))
	default:
		return args[0] + ": " + s.about(verb, s.named[args[0]], args[1:])
	}
	return ""
}

func (s *script) claim(name string, waits, owes, paid bool) string {
	c := &claims.Claim{Waits: waits, Owner: name}
	s.named[name] = c
	if !owes && !paid {
		return ""
	}
	s.tenant.allows = paid
	return fmt.Sprintf("%s: may go on: %t; charged %d", name, c.Open(&s.tenant, 100, waits), s.tenant.charged)
}

// about parses a command's facts about one claim.
func (s *script) about(verb string, c *claims.Claim, args []string) string {
	require.NotNil(s.t, c, "a claim that nobody has made")
	has := func(word string) bool { return slices.Contains(args, word) }
	switch verb {
	case "arrive":
		return c.Arrive(!has("gone"), s.stream).String()
	case "hold":
		states := map[string]claims.State{
			"asked": claims.Asked, "consulted": claims.Consulted, "delayed": claims.Delayed, "parked": claims.Parked,
		}
		return fmt.Sprintf("%s under %d", c.State(), s.table.Hold(c, states[args[0]]))
	case "take":
		return "was " + s.table.Take(c).String()
	case "refuse":
		return c.Refused(claims.Refusal{Memory: has("memory"), Report: has("report"), Last: has("last")}, s.stream).String()
	case "settled":
		c.Settled()
		return "is not asked about again"
	case "pay":
		looks := 0
		wanted := func() bool { looks++; return !has("gone") || looks == 1 }
		s.tenant.allows = !has("no")
		paid, gone := c.Pay(s.tenant.Charge, wanted)
		return fmt.Sprintf("paid %t, gone %t; charged %d", paid, gone, s.tenant.charged)
	case "refund":
		c.Refund()
		return fmt.Sprintf("charged %d", s.tenant.charged)
	case "hand":
		return fmt.Sprintf("the buffers have it: %t; charged %d", c.Settle(), s.tenant.charged)
	}
	require.Failf(s.t, "a command that nobody knows", "%q", verb)
	return ""
}

func (s *script) offer(name string, runs uint64) string {
	o := claims.Offer{RunsGranted: runs, Token: 1 << 40}
	if c := s.named[name]; c != nil {
		o.Token = c.Token()
	}
	if !s.table.Offered(o) {
		return name + ": waits for runs"
	}
	return s.serves(o)
}

func (s *script) offers() string {
	var out []string
	for o, due := s.table.DueOffer(); due; o, due = s.table.DueOffer() {
		out = append(out, s.serves(o))
		s.table.Answered(o)
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, "\n")
}

// due returns the offer that would be answered next.
func (s *script) due() string {
	if o, due := s.table.DueOffer(); due {
		return s.serves(o)
	}
	return "none"
}

// again repeats all offers that have waited, as after a panic.
func (s *script) again() string {
	n := 0
	for _, o := range s.table.TakeOffers() {
		if n++; s.table.Offered(o) {
			s.table.Answered(o)
		}
	}
	return fmt.Sprintf("%d made once more", n)
}

func (s *script) serves(o claims.Offer) string {
	if c := s.table.Serves(o); c != nil {
		return fmt.Sprintf("%v: is tried", c.Owner)
	}
	return "nobody: is withdrawn once more"
}

func (s *script) all() string {
	var out []string
	for _, c := range s.table.In(claims.Asked, claims.Consulted, claims.Delayed, claims.Parked) {
		out = append(out, fmt.Sprintf("%v %s under %d", c.Owner, c.State(), c.Token()))
	}
	return fmt.Sprintf("%d wait, %d parked: %s", s.table.Len(), s.table.ParkedLen(), strings.Join(out, ", "))
}

func after(word string) claims.Searched {
	return map[string]claims.Searched{
		"first": claims.First, "fences": claims.AfterFences, "look": claims.AfterLook, "take": claims.AfterTake,
	}[word]
}

func (s *script) look(verb string, from claims.Searched, args []string) string {
	switch verb {
	case "miss":
		return fmt.Sprintf("look: %t", s.looks.Due(from))
	case "line":
		take, look, next := claims.Line(from, len(args) > 0)
		return fmt.Sprintf("take %t, look %t, then %s", take, look, next)
	}
	s.looks.Learn(from, args[0] == "found")
	return ""
}

func (s *script) fence(args []string) string {
	switch args[0] {
	case "begin":
		return fmt.Sprintf("begin: %t", s.fences.Begin())
	case "others":
		return fmt.Sprintf("begin: %t", s.fences.BeginForOthers(int64(s.number(args[1]))))
	case "resume":
		return fmt.Sprintf("resume: %t", s.fences.Resume())
	case "resumed":
		s.fences.Resumed(len(args) > 1)
	case "panic":
		return fmt.Sprintf("once more: %t", s.fences.Interrupted())
	case "tick":
		s.fences.Tick()
	}
	return ""
}

func (s *script) number(word string) int { return int(transcript.Number(s.t, word)) }
