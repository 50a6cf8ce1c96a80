package sim

// Objects counts the objects of each kind that a program has not returned, by CUDA's names: the difference of two calls is a
// program's leak. Kinds without objects are absent.
func (d *Device) Objects() map[string]int {
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	all := map[string]int{
		"stream": len(g.streams) - 1, // without the default one
		"event":  len(g.events), "module": len(g.modules), "graph": len(g.graphs), "executable graph": len(g.execs),
		"memory handle": len(g.handles), "mapping": g.mappings.count, "address range": g.regions.count, "page-locked range": g.pinned.byHost.count,
		"context": g.opens,
	}
	for _, st := range g.streams {
		if st.capture != nil {
			all["captured stream"]++
		}
	}
	for kind, count := range all {
		if count == 0 {
			delete(all, kind)
		}
	}
	return all
}
