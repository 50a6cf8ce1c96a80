package pool

import (
	"context"

	"github.com/go-vram/vram/internal/pool/core"
)

// Map is the memory of a pool at one moment.
type Map struct {
	core.Books
	Runs []core.MappedRun // in order of their pages, each At its address
}

// Map reads the pages. It waits for the current turn only.
func (p *Pool) Map(ctx context.Context) (*Map, error) {
	all := new(Map)
	err := p.inTurn(ctx, func() {
		all.Books, all.Runs = p.core.Books(), p.core.Map()
		for i := range all.Runs {
			if r := &all.Runs[i]; p.places == nil {
				r.At = p.at(r.First)
			}
		}
	})
	if err != nil {
		return nil, err // the turn may still write
	}
	return all, nil
}
