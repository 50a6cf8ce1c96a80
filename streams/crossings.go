package streams

import (
	"slices"
	"sync/atomic"
)

// crossings is the part of a stream that other streams read about its works on memory that several use.
type crossings struct {
	count atomic.Uint64                 // of these works so far
	seen  atomic.Pointer[[]*seen]       // the counts of others for which this stream waits; replaced, never changed
	users atomic.Pointer[[]*cudaStream] // streams whose works touched this one's memory, if that can sleep; replaced, never changed
	spare atomic.Pointer[touches]       // for the next Crossing
}

// seen is the count of another stream when this one last waited for it.
type seen struct {
	of    *cudaStream
	count atomic.Uint64
}

// add adds a user of the stream's memory, and removes closed ones.
func (c *crossings) add(s *cudaStream) {
	for {
		old := c.users.Load()
		if old != nil && slices.Contains(*old, s) || c.replace(old, s) {
			return
		}
	}
}

// replace adds a user to a list, unless that was replaced concurrently.
func (c *crossings) replace(old *[]*cudaStream, s *cudaStream) bool {
	all := []*cudaStream{s}
	if old != nil {
		open := slices.DeleteFunc(slices.Clone(*old), func(u *cudaStream) bool { return u.line.Finished() })
		all = append(open, s)
	}
	return c.users.CompareAndSwap(old, &all)
}

// of returns the count of another stream for which this one waits.
func (c *crossings) of(s *cudaStream) *seen {
	for {
		old := c.seen.Load()
		if old != nil {
			for _, one := range *old {
				if one.of == s {
					return one
				}
			}
		}
		all := []*seen{{of: s}}
		if old != nil {
			all = append(all, slices.DeleteFunc(slices.Clone(*old), func(one *seen) bool { return one.of.line.Finished() })...)
		}
		if c.seen.CompareAndSwap(old, &all) {
			return all[0]
		}
	}
}
