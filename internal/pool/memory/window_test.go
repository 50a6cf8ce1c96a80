package memory

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// past is a Memory with a random history.
type past struct {
	*Memory
	fences   [clients + 1]Fence // the latest of each client
	sleepers [clients + 1]bool  // get no memory
	left     [clients + 1]bool  // sleepers that have returned memory, and do not wake
}

const clients = 6

// The windows match a scan of all idle runs, and the books are right after any history.
func TestWindowsAreThoseOfAScan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		maxPages := rapid.SampledFrom([]uint32{8, 64, 1030, 2100, 5000}).Draw(t, "arena")
		p := &past{Memory: New(pageBytes, maxPages, rapid.Bool().Draw(t, "plain"))}
		t.Repeat(map[string]func(*rapid.T){
			"grow":       p.grow,
			"grow alone": p.growAlone,
			"move":       p.move,
			"lend":       p.lend,
			"free":       p.freeSome,
			"free more":  p.freeSome,
			"hand over":  p.handOver,
			"pass":       p.passFence,
			"shrink":     p.shrink,
			"sleep":      p.sleep,
			"wake":       p.wake,
			"forget":     p.forget,
			"":           p.compare,
		})
	})
}

func drawClient(t *rapid.T) Client { return Client(rapid.IntRange(1, clients).Draw(t, "client")) }

// drawPages mostly draws a few pages.
func (p *past) drawPages(t *rapid.T) uint32 {
	return rapid.OneOf(rapid.Uint32Range(1, 6), rapid.Uint32Range(1, p.maxPages)).Draw(t, "pages")
}

// play performs a job, or a part of it and then its rollback. It reports whether all of it was performed.
func (p *past) play(t *rapid.T, j *Job) bool {
	require.NoError(t, p.Check(true, map[Client]uint64{}))
	done := len(j.Ops)
	if done > 0 && rapid.IntRange(0, 7).Draw(t, "fails") == 0 {
		done = rapid.IntRange(0, len(j.Ops)-1).Draw(t, "done")
	}
	all := done == len(j.Ops)
	if out := perform(p.Memory, j, done); len(out.Undo.Ops) > 0 {
		perform(p.Memory, &out.Undo, len(out.Undo.Ops))
	}
	return all
}

// fill fills a window for a client, which holds it then, or frees it.
func (p *past) fill(t *rapid.T, id Client, w Window, victims []int32) {
	var j Job
	most := rapid.Uint32Range(1, 8).Draw(t, "handle")
	p.PlanFill(&j, Plan{Window: w.Run, Victims: victims, For: id, MergePages: 1, MaxHandlePages: most})
	if !p.play(t, &j) {
		return
	}
	if rapid.IntRange(0, 5).Draw(t, "keeps") == 0 {
		p.Free(w.Run, Tag{})
		return
	}
	p.Transfer(w.Run, id)
}

func (p *past) grow(t *rapid.T) {
	id, pages := drawClient(t), p.drawPages(t)
	if w, ok := p.Room(User{Client: id, Waits: drawWaits(t)}, pages); ok && !p.sleepers[id] {
		p.fill(t, id, w, nil)
	}
}

func (p *past) growAlone(t *rapid.T) {
	id, pages := drawClient(t), p.drawPages(t)
	if w, ok := p.Beyond(pages); ok && !p.sleepers[id] {
		p.fill(t, id, w, nil)
	}
}

// move fills a window with handles from elsewhere.
func (p *past) move(t *rapid.T) {
	id, pages := drawClient(t), p.drawPages(t)
	if w, ok := p.Room(User{Client: id}, pages); ok && !p.sleepers[id] {
		ids, _ := p.Victims(p.Bytes(w.Missing), w.Run)
		p.fill(t, id, w, append([]int32(nil), ids...))
	}
}

func (p *past) lend(t *rapid.T) {
	id, pages := drawClient(t), p.drawPages(t)
	if part, ok := p.Fit(id, pages); ok && !p.sleepers[id] {
		front, _ := part.Run.Front(pages)
		p.Lend(part.Run.First, front, id)
	}
}

// drawLent draws pages that one client holds, and the client.
func (p *past) drawLent(t *rapid.T) (r Run, id Client) {
	if p.counts[Lent] == 0 {
		return r, 0
	}
	nth := rapid.Uint64Range(0, p.counts[Lent]-1).Draw(t, "lent page")
	for at := range p.top() {
		if p.pages[at].state != Lent {
			continue
		}
		if nth > 0 {
			nth--
			continue
		}
		r, id = Run{First: at, Pages: 1}, p.pages[at].client
		break
	}
	for least := p.drawPages(t); r.Pages < least && p.LentTo(Run{First: r.First, Pages: r.Pages + 1}, id); {
		r.Pages++
	}
	return r, id
}

func (p *past) freeSome(t *rapid.T) {
	r, id := p.drawLent(t)
	if id == 0 {
		return
	}
	tag := Tag{}
	if rapid.Bool().Draw(t, "pending") {
		p.fences[id]++
		tag = Tag{id, p.fences[id]}
	}
	p.Free(r, tag)
	p.left[id] = p.sleepers[id]
}

// handOver lends pages of one client to another.
func (p *past) handOver(t *rapid.T) {
	r, id := p.drawLent(t)
	if to := drawClient(t); id != 0 && !p.sleepers[id] && !p.sleepers[to] {
		p.Transfer(r, to)
	}
}

func (p *past) passFence(t *rapid.T) {
	id := drawClient(t)
	p.Pass(id, Fence(rapid.Uint64Range(0, uint64(p.fences[id])).Draw(t, "fence")))
}

func (p *past) shrink(t *rapid.T) {
	ids, _ := p.Victims(p.Bytes(p.drawPages(t)), Run{})
	var j Job
	p.PlanShrink(&j, append([]int32(nil), ids...))
	p.play(t, &j)
}

func (p *past) sleep(t *rapid.T) {
	if p.plain {
		return
	}
	id := drawClient(t)
	p.sleepers[id] = true
	var j Job
	p.PlanSleep(&j, id)
	perform(p.Memory, &j, len(j.Ops))
}

func (p *past) wake(t *rapid.T) {
	id := drawClient(t)
	if !p.sleepers[id] || p.left[id] {
		return
	}
	var j Job
	p.PlanWake(&j, id)
	perform(p.Memory, &j, len(j.Ops))
	p.sleepers[id] = false
}

// drawWaits draws the clients that a user may wait for.
func drawWaits(t *rapid.T) func(Client) bool {
	set := rapid.IntRange(0, 1<<clients-1).Draw(t, "waits")
	if set == 0 {
		return nil
	}
	return func(id Client) bool { return set>>(id-1)&1 == 1 }
}

// compare compares with the scan and checks the books.
func (p *past) compare(t *rapid.T) {
	require.NoError(t, p.Check(false, map[Client]uint64{}))
	p.compareTags(t)
	s, waits := newScan(&p.finder), drawWaits(t)
	pages := p.drawPages(t)
	for id := range Client(clients + 1) {
		for _, u := range []User{{Client: id}, {Client: id, Waits: waits}} {
			for _, pages := range []uint32{1, 2, 3, pages} {
				same(t, s.Room, p.Room, u, pages)
				same(t, s.WaitingRoom, p.WaitingRoom, u, pages)
			}
		}
	}
	for _, pages := range []uint32{1, 2, 5, pages} {
		same(t, func(_ User, n uint32) (Window, bool) { return s.Beyond(n) },
			func(_ User, n uint32) (Window, bool) { return p.Beyond(n) }, User{}, pages)
	}
}

// compareTags compares the index of the free runs, by their tags, with the pages.
func (p *past) compareTags(t *rapid.T) {
	under, count, longest := map[Client]int64{}, map[bool]int{}, map[bool]uint32{}
	for at := uint32(0); at < p.top(); at++ {
		if run := p.pages[at]; run.state == Free {
			under[run.client] += p.Bytes(run.run)
			clean := run.client == 0
			count[clean]++
			longest[clean] = max(longest[clean], run.run)
			at += run.run - 1
		}
	}
	var sum int64
	for id := range Client(clients + 1) {
		require.Equal(t, id != 0 && under[id] > 0, p.AnyTagged(func(other Client) bool { return other == id }), "client %d", id)
		if id != 0 {
			require.Equal(t, under[id], p.TaggedBytes(id), "client %d", id)
			sum += under[id]
		}
	}
	delete(under, 0)
	require.Equal(t, slices.Sorted(maps.Keys(under)), p.TaggedClients())
	require.Equal(t, sum, p.PendingBytes())
	require.Equal(t, count[true], p.CleanRuns())
	require.Equal(t, count[true]+count[false], p.FreeRuns())
	require.Equal(t, longest[true], p.MaxCleanPages())
	require.Equal(t, p.Bytes(max(longest[true], longest[false])), p.MaxFreeBytes())
}

// forget drops a client's index unless there are free pages under its tags.
func (p *past) forget(t *rapid.T) {
	id := drawClient(t)
	p.Forget(id)
	_, kept := p.tagged[id]
	require.Equal(t, p.TaggedBytes(id) > 0, kept)
}

func same(t *rapid.T, want, have func(User, uint32) (Window, bool), u User, pages uint32) {
	w, ok := want(u, pages)
	h, is := have(u, pages)
	require.Equal(t, ok, is, "client %d, %d pages", u.Client, pages)
	if ok {
		require.Equal(t, w, h, "client %d, %d pages", u.Client, pages)
	}
}

// Pages at the start of the arena lie next to no other client's: they are preferred to a shorter hole between pages of another
// one.
func TestTheStartOfTheArenaIsApartFromNobody(t *testing.T) {
	t.Parallel()
	m := New(pageBytes, 1030, false)
	all := Run{First: 0, Pages: m.MaxPages()}
	var j, shrink Job
	m.PlanFill(&j, Plan{Window: all, For: 1, MaxHandlePages: 10})
	perform(m, &j, len(j.Ops))
	m.Transfer(all, 1)
	m.Free(Run{First: 0, Pages: 20}, Tag{})
	m.Free(Run{First: 40, Pages: 10}, Tag{})
	ids, _ := m.Victims(m.Bytes(30), Run{})
	m.PlanShrink(&shrink, ids)
	perform(m, &shrink, len(shrink.Ops))
	for id, first := range map[Client]uint32{1: 40, 2: 0} {
		w, ok := m.Room(User{Client: id}, 5)
		require.True(t, ok)
		require.Equal(t, first, w.Run.First)
	}
}

// A search for a window looks at as few regions among many streams as among few: each stream holds pages in its zone.
func TestASearchLooksAtFewRegions(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		for _, streams := range []int{10, 3000} {
			t.Run(fmt.Sprintf("plain=%v/streams=%d", plain, streams), func(t *testing.T) {
				t.Parallel()
				m := New(pageBytes, 1<<20, plain)
				for id := range Client(streams) {
					u := User{Client: id + 1}
					w, ok := m.Room(u, 1)
					require.True(t, ok)
					var j Job
					m.PlanFill(&j, Plan{Window: w.Run, For: u.Client, MaxHandlePages: 16})
					perform(m, &j, len(j.Ops))
					m.Transfer(w.Run, u.Client)
				}
				for _, find := range []func(User, uint32) (Window, bool){
					m.Room, m.WaitingRoom, func(_ User, n uint32) (Window, bool) { return m.Beyond(n) },
				} {
					before := m.visits
					find(User{Client: Client(streams / 2)}, 4)
					require.LessOrEqual(t, m.visits-before, uint64(4))
				}
			})
		}
	}
}

// The table has an entry for each page up to the highest, and zones of small pages do not make it long.
func TestFewStreamsHaveAShortTable(t *testing.T) {
	m := New(4096, 1<<29, false)
	for id := range Client(16) {
		u := User{Client: id + 1}
		w, ok := m.Room(u, 1)
		require.True(t, ok)
		require.Equal(t, id > 0, w.Run.First >= m.top()+1000, "apart from the others")
		m.Take(w.Run)
		m.Transfer(w.Run, u.Client)
	}
	require.Less(t, m.top(), uint32(1<<17))
}

// The index of holes agrees with a sorted list.
func TestTheIndexOfHolesIsInOrder(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	x := newHoleIndex()
	var model []holeKey
	for range 1024 {
		k := holeKey{Client(r.Uint32N(3)), 1 + r.Uint32N(40), r.Uint32N(1 << 20)}
		if at, found := slices.BinarySearchFunc(model, k, compareKeys); !found {
			model = slices.Insert(model, at, k)
			x.Set(k)
		}
	}
	var all []holeKey
	x.Ascend(holeKey{}, func(k holeKey) bool {
		all = append(all, k)
		return true
	})
	require.Equal(t, model, all)
	for len(model) > 0 {
		for id := range Client(3) {
			least := r.Uint32N(42)
			at, _ := slices.BinarySearchFunc(model, holeKey{after: id, pages: least}, compareKeys)
			found, ok := x.shortest(id, least)
			require.Equal(t, at < len(model) && model[at].after == id, ok)
			if ok {
				require.Equal(t, Run{First: model[at].first, Pages: model[at].pages}, found)
			}
		}
		at := min(r.IntN(len(model)), r.IntN(len(model)))
		x.Delete(model[at])
		model = slices.Delete(model, at, at+1)
	}
}

func compareKeys(a, b holeKey) int {
	return cmp.Or(cmp.Compare(a.after, b.after), cmp.Compare(a.pages, b.pages), cmp.Compare(a.first, b.first))
}

// In every arena of a few pages, each of which is a hole, clean, or pending from or lent to one of two clients, the windows of each
// length match the scan: with zones between clients, and without.
func TestEverySmallArena(t *testing.T) {
	t.Parallel()
	const pages, states = 5, 6
	for _, maxPages := range []uint32{pages + 1, 1030} {
		for _, plain := range []bool{false, true} {
			for number := range 7776 { // states to the power of pages
				m := New(pageBytes, maxPages, plain)
				m.extend(pages)
				for at, rest := uint32(0), number; at < pages; at, rest = at+1, rest/states {
					switch one := (Run{First: at, Pages: 1}); rest % states {
					case 1:
						m.addFree(one, Tag{})
					case 2, 3:
						m.addFree(one, Tag{Client(rest%states - 1), 1})
					case 4, 5:
						m.setState(one, Lent, Client(rest%states-3))
					}
				}
				s := newScan(&m.finder)
				for _, count := range []uint32{1, 2, 3, max(1, maxPages-pages-1), maxPages - pages, maxPages - pages + 1} {
					for id := range Client(3) {
						w, ok := s.Room(User{Client: id}, count)
						have, is := m.Room(User{Client: id}, count)
						if w != have && ok || ok != is {
							require.Equal(t, w, have, "arena %d of %d, plain %t, client %d, %d pages: %t, not %t", number, maxPages, plain, id, count, is, ok)
						}
					}
				}
			}
		}
	}
}
