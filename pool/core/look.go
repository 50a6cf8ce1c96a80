package core

// look asks the clients what they use, before the live peak is raised by what they said last: a client speaks when it
// needs more, and not when its buffers are freed, so that one which has gone quiet would count for ever and the budget
// would grow with every client that ever was. Only those that said they use something are asked. It costs a turn of each, and gives
// nothing back.
func (c *Core) look(r *request) {
	if c.liveBytes() <= c.livePeakBytes {
		return
	}
	for _, id := range c.ids {
		if cl := c.clients[id]; id != r.client && !cl.gone && !cl.reserves && cl.usedBytes > 0 {
			r.awaits = append(r.awaits, id)
			r.looking = true
			if !cl.looked {
				cl.looked = true
				c.fx.Looks = append(c.fx.Looks, id)
			}
		}
	}
	c.queue.awaits(r)
}

// reported says that nobody needs to wait for that client's answer to a Look any more.
func (c *Core) reported(id Client) {
	c.queue.answered(id, true)
}

// quietShare is the part of what a client said it uses below which a look counts: a quarter. Not larger: what a client at
// work uses goes up and down, and a budget that follows it down is broken at its next rise. Not smaller: one that has
// freed all but its weights would count as if it had not.
const quietShare = 4

// noteLook takes what a look found.
func (cl *client) noteLook(liveBytes int64) {
	if liveBytes < cl.liveBytes/quietShare {
		cl.usedBytes = liveBytes
	}
}

// liveBytes is what all clients use at most, or want, as far as is known.
func (c *Core) liveBytes() (bytes int64) {
	for _, cl := range c.clients {
		bytes += cl.usedBytes
	}
	return bytes
}
