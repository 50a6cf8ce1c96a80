package core

// Charge counts memory of the driver that others hold, as memory that processes share, in the limit: the pool may reserve so
// much less until Uncharge. Where that is too little, free memory is released first. The End with that token has an error where
// it is not enough, a *ShortError. Nothing waits for work of the device.
func Charge(id Client, bytes int64, token uint64) Special {
	return Special{beginCharge{id, bytes, token}}
}

// Uncharge takes back a Charge.
func Uncharge(bytes int64) Special { return Special{uncharge(bytes)} }

type beginCharge struct {
	client Client
	bytes  int64
	token  uint64
}

func (m beginCharge) enter(c *Core) bool {
	c.scheduler.enqueue(&request{
		kind: ownWay, way: chargeWay{c, &c.scheduler, m.bytes}, client: m.client, token: m.token,
	})
	return false
}

type uncharge int64

func (m uncharge) enter(c *Core) bool {
	c.charge(-int64(m))
	c.waiters.changed()
	return true
}

// charge counts memory outside, and lowers the limit by it.
func (c *Core) charge(bytes int64) {
	c.memory.Outside(bytes)
	c.lowerLimit()
}

// chargeWay is the climb of a Charge.
type chargeWay struct {
	core *Core
	*scheduler
	bytes int64
}

func (w chargeWay) climb(r *request) bool {
	over := w.memory.ReservedBytes() + w.bytes - w.settings.LimitBytes
	switch {
	case over <= 0:
		w.core.charge(w.bytes)
		w.answers.end(r, nil)
		return true
	case w.bytes > w.settings.LimitBytes, r.stage == stageEnd: // no release is enough
		return w.refuse(r)
	}
	switch r.stage {
	case stageBegin, stageAsk:
		r.stage = stagePoll
		w.ladder.asks.askEach(r, everyone)
	case stagePoll:
		r.stage = stageRelease
		w.jobs.poll(r)
	case stageRelease:
		r.stage, r.err = stageEnd, nil
		w.jobs.shrink(r, over)
	case stageEnd, stageFailed:
		w.answers.end(r, r.err)
		return true
	}
	return false
}

func (w chargeWay) refuse(r *request) bool {
	r.pages = uint32((w.bytes + w.memory.PageBytes() - 1) / w.memory.PageBytes()) //nolint:gosec // no more than a device has
	r.requestedBytes = w.bytes
	w.answers.end(r, &ShortError{w.answers.shortage(r), nil})
	return true
}
