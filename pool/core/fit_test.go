package core

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/heap"
)

// With FirstFit a client gets the lowest run that it may use, with BestFit one that is no longer than the
// shortest by more than a bin is wide; whenever the strategy is changed.
func TestFitTakesWhatTheStrategySays(t *testing.T) {
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
				lowest, shortest := uint32(top), uint32(top)
				for at := uint32(0); at < top; at++ {
					e := p.table[at]
					if e.state != free {
						continue
					}
					if (e.client == 0 || e.client == client) && e.run >= n {
						lowest, shortest = min(lowest, at), min(shortest, e.run)
					}
					at += e.run - 1
				}
				require.Equal(t, lowest < top, ok)
				if !ok {
					return
				}
				if p.search == heap.FirstFit {
					require.Equal(t, lowest, first)
				} else { // runs this short have a bin for each length
					require.Equal(t, shortest, p.table[first].run)
				}
				p.takeFree(first, Run{first, n}, hole, 0)
			},
			"strategy": func(t *rapid.T) {
				p.setStrategy(rapid.SampledFrom([]heap.Strategy{heap.BestFit, heap.FirstFit}).Draw(t, "strategy"))
			},
			"": func(t *rapid.T) {
				require.NoError(t, p.checkTree(0, p.clean))
				for c, d := range p.tagged {
					require.NoError(t, p.checkTree(c, d))
				}
			},
		})
	})
}
