package core

import "github.com/go-vram/vram/internal/fence/line"

// queue is what waits for one stream, in the order of the numbers. There are few: fences that were taken
// and have not passed, those that the driver refused, and the next one.
type queue struct {
	line   *line.Line
	groups []group
	wanted uint64 // the highest number that a fence was asked for
	rest   int    // turns until it is asked for again
}

// group is what waits for one fence.
type group struct {
	number uint64
	first  int32
	count  int
	units  uint64
}

// none ends a list.
const none int32 = -1

// group is that of a number, most often the last.
func (q *queue) group(number uint64) *group {
	i := len(q.groups)
	for i > 0 && q.groups[i-1].number > number {
		i--
	}
	if i > 0 && q.groups[i-1].number == number {
		return &q.groups[i-1]
	}
	q.groups = append(q.groups, group{})
	copy(q.groups[i+1:], q.groups[i:])
	q.groups[i] = group{number: number, first: none}
	return &q.groups[i]
}

// owed is what waits for a fence that was not taken, and the number that covers all of it.
func (q *queue) owed() (number uint64, count int, units uint64) {
	for i := len(q.groups) - 1; i >= 0 && q.line.Owed(q.groups[i].number); i-- {
		g := &q.groups[i]
		number, count, units = max(number, g.number), count+g.count, units+g.units
	}
	return number, count, units
}
