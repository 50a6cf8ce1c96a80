package core

// giveHome lends back what clients returned when they were asked and nobody took. It is called when no
// request is left that it was asked for: the search of a stream is a best fit only over what it holds, and memory
// that stays behind in the pool would be found by a second search, worse fitting and later.
func (c *Core) giveHome() {
	if !c.homeless {
		return
	}
	c.homeless = false
	top := c.pages.top()
	for at := c.pages.mapped.next(0, top, true); at < top; at = c.pages.mapped.next(at, top, true) {
		run := Run{at, c.pages.table[at].run}
		at += run.Pages
		c.giveRunHome(run, 0)
	}
}

// giveRunHome lends the parts of a free run to those who returned them, or to only one of them.
func (c *Core) giveRunHome(run Run, only Client) {
	end := run.First + run.Pages
	for at := run.First; at < end; {
		home, first := c.pages.table[at].home, at
		for at < end && c.pages.table[at].home == home {
			at++
		}
		cl := c.clients[home]
		if cl == nil || cl.gone || only != 0 && home != only {
			continue
		}
		cl.dirty = true
		c.lend(run.First, Run{first, at - first}, home)
		c.fx.Grants = append(c.fx.Grants, Grant{Client: home, Run: Run{first, at - first}})
		run.First = at
	}
}

// setHome notes who returned pages.
func (p *pages) setHome(r Run, c Client) {
	for i := r.First; i < r.First+r.Pages; i++ {
		p.table[i].home = c
	}
}
