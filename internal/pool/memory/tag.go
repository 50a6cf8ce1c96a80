package memory

import (
	"cmp"
	"slices"
	"sort"

	"github.com/go-vram/vram/internal/pages"
)

// Client names a stream. Zero names none.
type Client uint32

// Fence is a point in a client's order. Fences of a client rise; when one has passed, so have all before it. Zero has always
// passed.
type Fence uint64

// Run is a sequence of pages side by side.
type Run = pages.Run

// Tag names the work that may still use free pages: all work up to a fence of the client that returned them. The zero Tag marks
// clean pages, which no work uses.
type Tag struct {
	Client Client
	Fence  Fence
}

// Part is a run of pages that was free under one tag.
type Part struct {
	Run Run
	Tag Tag
}

// Parts are the tags of pages that somebody has taken and may have to free again, in order of address. Pages that no part names
// were clean.
type Parts []Part

// Add adds parts that are not clean.
func (ps *Parts) Add(parts ...Part) {
	for _, p := range parts {
		if p.Tag.Client != 0 {
			*ps = append(*ps, p)
		}
	}
	slices.SortFunc(*ps, func(a, b Part) int { return cmp.Compare(a.Run.First, b.Run.First) })
}

// Pass cleans the parts of a client up to a fence, which has passed.
func (ps Parts) Pass(id Client, f Fence) {
	for i := range ps {
		if t := &ps[i].Tag; t.Client == id && t.Fence <= f {
			*t = Tag{}
		}
	}
}

// tagAt returns the tag of a page, and the page up to which it is the same.
func (ps Parts) tagAt(at, end uint32) (t Tag, until uint32) {
	until = end
	for _, p := range ps {
		switch {
		case p.Run.Contains(at):
			return p.Tag, min(end, p.Run.End())
		case p.Run.First > at:
			until = min(until, p.Run.First)
		}
	}
	return Tag{}, until
}

// latest returns the latest fence of each client except one among the parts, in the order of the clients.
func (ps Parts) latest(but Client) (fences []Tag) {
	for _, p := range ps {
		if p.Tag.Client == 0 || p.Tag.Client == but {
			continue
		}
		at := sort.Search(len(fences), func(at int) bool { return fences[at].Client >= p.Tag.Client })
		if at == len(fences) || fences[at].Client != p.Tag.Client {
			fences = slices.Insert(fences, at, p.Tag)
		}
		fences[at].Fence = max(fences[at].Fence, p.Tag.Fence)
	}
	return fences
}
