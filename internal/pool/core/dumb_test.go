package core

import (
	"fmt"

	"github.com/go-vram/vram/cudadrv"

	"github.com/go-vram/vram/internal/pool/memory"
)

// dumb is a driver that records which page is mapped by which handle, one entry a page, and refuses nonsense: a map over a
// mapping or of a part of a handle, an unmap that cuts a handle, the release of a mapped handle, access to unmapped pages,
// unknown handles.
type dumb struct {
	pages    []dumbPage
	handles  map[cudadrv.Handle]*dumbHandle
	last     cudadrv.Handle
	capacity uint32 // pages that it can make
	made     uint32 // pages that exist
	most     uint32 // that ever did
}

type dumbPage struct {
	handle     cudadrv.Handle
	accessible bool
}

type dumbHandle struct {
	pages  uint32
	mapped bool
	first  uint32
}

func newDumb(pages, capacity uint32) *dumb {
	return &dumb{pages: make([]dumbPage, pages), handles: map[cudadrv.Handle]*dumbHandle{}, capacity: capacity}
}

// call makes one call. nonsense is the caller's mistake, err the driver's refusal.
func (d *dumb) call(op *memory.Op) (nonsense, err error) {
	r := op.Run
	if op.Verb != memory.Release && op.Verb != memory.Await && (r.Pages == 0 || uint64(r.First)+uint64(r.Pages) > uint64(len(d.pages))) {
		return fmt.Errorf("%v of pages %v outside the arena of %d", op.Verb, r, len(d.pages)), nil
	}
	switch op.Verb {
	case memory.Create:
		if d.made+r.Pages > d.capacity {
			return nil, cudadrv.OutOfMemory
		}
		d.last++
		d.made += r.Pages
		d.most = max(d.most, d.made)
		d.handles[d.last] = &dumbHandle{pages: r.Pages}
		op.Handle = d.last
		return nil, nil
	case memory.Release:
		h := d.handles[op.Handle]
		if h == nil || h.mapped {
			return fmt.Errorf("release of handle %d, which is %+v", op.Handle, h), nil
		}
		d.made -= h.pages
		delete(d.handles, op.Handle)
		return nil, nil
	case memory.Map:
		return d.mapHandle(op), nil
	case memory.Unmap:
		return d.unmap(r), nil
	case memory.Access:
		for i := r.First; i < r.First+r.Pages; i++ {
			if d.pages[i].handle == 0 {
				return fmt.Errorf("access to page %d, which is not mapped", i), nil
			}
			d.pages[i].accessible = true
		}
	case memory.Await: // the world's matter
	case memory.AllocPlain:
		return d.alloc(op)
	case memory.FreePlain:
		return d.free(op), nil
	}
	return nil, nil
}

// alloc makes a plain segment. It must not touch another one, since a run never reaches over two.
func (d *dumb) alloc(op *memory.Op) (nonsense, err error) {
	r := op.Run
	if r.First == 0 || int(r.First+r.Pages) == len(d.pages) {
		return fmt.Errorf("a segment at pages %v of %d has no hole beside it", r, len(d.pages)), nil
	}
	for i := r.First - 1; i <= r.First+r.Pages; i++ {
		if d.pages[i].handle != 0 {
			return fmt.Errorf("a segment at pages %v touches segment %d at page %d", r, d.pages[i].handle, i), nil
		}
	}
	if d.made+r.Pages > d.capacity {
		return nil, cudadrv.OutOfMemory
	}
	d.last++
	d.made += r.Pages
	d.most = max(d.most, d.made)
	d.handles[d.last] = &dumbHandle{pages: r.Pages, mapped: true, first: r.First}
	for i := r.First; i < r.First+r.Pages; i++ {
		d.pages[i] = dumbPage{handle: d.last, accessible: true}
	}
	op.Address = cudadrv.Ptr(d.last)
	return nil, nil
}

// free ends a plain segment.
func (d *dumb) free(op *memory.Op) error {
	id := cudadrv.Handle(op.Address)
	h := d.handles[id]
	if h == nil || h.first != op.Run.First || h.pages != op.Run.Pages {
		return fmt.Errorf("free of segment %d at pages %v, which is %+v", id, op.Run, h)
	}
	d.made -= h.pages
	delete(d.handles, id)
	for i := h.first; i < h.first+h.pages; i++ {
		d.pages[i] = dumbPage{}
	}
	return nil
}

func (d *dumb) mapHandle(op *memory.Op) error {
	h, r := d.handles[op.Handle], op.Run
	if h == nil || h.mapped || h.pages != r.Pages {
		return fmt.Errorf("map of handle %d, which is %+v, over pages %v", op.Handle, h, r)
	}
	for i := r.First; i < r.First+r.Pages; i++ {
		if d.pages[i].handle != 0 {
			return fmt.Errorf("map over page %d, which handle %d has", i, d.pages[i].handle)
		}
		d.pages[i] = dumbPage{handle: op.Handle}
	}
	h.mapped, h.first = true, r.First
	return nil
}

func (d *dumb) unmap(r Run) error {
	for at := r.First; at < r.First+r.Pages; {
		h := d.handles[d.pages[at].handle]
		if h == nil || h.first != at || at+h.pages > r.First+r.Pages {
			return fmt.Errorf("unmap of pages %v cuts handle %d (%+v) at page %d", r, d.pages[at].handle, h, at)
		}
		h.mapped = false
		for end := at + h.pages; at < end; at++ {
			d.pages[at] = dumbPage{}
		}
	}
	return nil
}

// nameOf returns a verb as transcripts and failures name it.
func nameOf(v memory.Verb) string {
	return [...]string{
		memory.Unmap: "unmap", memory.Create: "create", memory.Map: "map", memory.Access: "access", memory.Release: "release",
		memory.AllocPlain: "alloc", memory.FreePlain: "free", memory.Await: "await",
	}[v]
}
