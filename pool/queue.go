package pool

// queue is a list of effects, oldest first. An effect is taken from the list before it is carried out: one that panics
// costs itself alone, and the rest are carried out afterwards.
type queue[T any] struct {
	all   []T
	taken int
}

func (q *queue[T]) push(v T) { q.all = append(q.all, v) }

// pop takes the oldest effect that is left.
func (q *queue[T]) pop() (v T, ok bool) {
	if q.taken == len(q.all) {
		return v, false
	}
	v = q.all[q.taken]
	q.taken++
	return v, true
}

// reset empties the queue and keeps its memory. What it referred to can be collected.
func (q *queue[T]) reset() {
	clear(q.all)
	q.all, q.taken = q.all[:0], 0
}
