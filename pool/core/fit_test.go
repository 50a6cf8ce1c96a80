package core

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A client gets a run of those that it may use that is no longer than the shortest by more than a bin is wide.
func TestFitTakesTheShortest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const top = 40
		p := newPages()
		p.extend(top)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				at := rapid.Uint32Range(0, top-1).Draw(t, "page")
				if p.table[at].state == hole {
					p.addFree(Run{at, 1}, rapid.SampledFrom([]Client{0, 0, 1, 2}).Draw(t, "tag"), 1)
				}
			},
			"add many": func(t *rapid.T) {
				at := rapid.Uint32Range(0, top-9).Draw(t, "page")
				for i := at; i < at+9; i++ {
					if p.table[i].state == hole {
						p.addFree(Run{i, 1}, 0, 0)
					}
				}
			},
			"take": func(t *rapid.T) {
				client, n := rapid.SampledFrom([]Client{1, 2, 3}).Draw(t, "client"), rapid.Uint32Range(1, 9).Draw(t, "pages")
				first, ok := p.fit(client, n)
				shortest := uint32(top + 1) // none: a run may have all pages
				for at := uint32(0); at < top; at++ {
					e := p.table[at]
					if e.state != free {
						continue
					}
					if (e.client == 0 || e.client == client) && e.run >= n {
						shortest = min(shortest, e.run)
					}
					at += e.run - 1
				}
				require.Equal(t, shortest <= top, ok)
				if !ok {
					return
				}
				require.Equal(t, shortest, p.table[first].run, "runs this short have a bin for each length")
				p.takeFree(first, Run{first, n}, hole, 0)
			},
		})
	})
}
