package core

// part is a run of free pages that a job took, with the tag that they had and have again if nobody gets them.
type part struct {
	run    Run
	client Client
	fence  Fence
}

// passed cleans the parts of a job up to a fence: they were not among the free runs when it passed.
func (j *Job) passed(p Passed) {
	for i := range j.parts {
		if t := &j.parts[i]; t.client == p.Client && t.fence <= p.Fence {
			t.client, t.fence = 0, 0
		}
	}
}

// tagAt is the tag of a page that a job holds, and the page up to which it is the same.
func (j *Job) tagAt(at, end uint32) (id Client, f Fence, until uint32) {
	until = end
	for _, t := range j.parts {
		switch {
		case at >= t.run.First && at < t.run.First+t.run.Pages:
			return t.client, t.fence, min(end, t.run.First+t.run.Pages)
		case t.run.First > at:
			until = min(until, t.run.First)
		}
	}
	return 0, 0, until
}

// giveParts makes pages free that a job holds, each under the tag that it had.
func (c *Core) giveParts(j *Job, r Run) {
	for at, end := r.First, r.First+r.Pages; at < end; {
		id, f, until := j.tagAt(at, end)
		c.pages.addFree(Run{at, until - at}, id, f)
		at = until
	}
}
