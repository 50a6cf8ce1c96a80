package core

import (
	"slices"

	"github.com/go-vram/vram/internal/fence/line"
)

// queue lists the uses that wait for one stream, in the order of their fences' numbers. There are few groups:
// fences that were recorded and have not passed, fences that the driver refused, and the next one.
type queue struct {
	line   *line.Line
	groups []group
	wanted uint64 // highest number for which a fence was requested
	rest   int    // turns until it is requested again
}

// group lists the uses that wait for one fence.
type group struct {
	number uint64
	first  int32
	count  int
	units  uint64
}

// none ends a list.
const none int32 = -1

// group returns the group of a number, most often the last.
func (q *queue) group(number uint64) *group {
	i := len(q.groups)
	for i > 0 && q.groups[i-1].number > number {
		i--
	}
	if i > 0 && q.groups[i-1].number == number {
		return &q.groups[i-1]
	}
	q.groups = slices.Insert(q.groups, i, group{number: number, first: none})
	return &q.groups[i]
}

// owed counts the blocks that wait for a fence that was not recorded, and returns the number that covers all of them.
func (q *queue) owed() (number uint64, count int, units uint64) {
	for i := len(q.groups) - 1; i >= 0 && q.line.Owed(q.groups[i].number); i-- {
		g := &q.groups[i]
		number, count, units = max(number, g.number), count+g.count, units+g.units
	}
	return number, count, units
}
