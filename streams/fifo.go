package streams

// fifo is a list of effects, oldest first. Each is taken before it is carried out: one that panics costs itself alone.
type fifo[T any] struct {
	all   []T
	taken int
}

func (q *fifo[T]) push(v T) { q.all = append(q.all, v) }

// pop takes the oldest that is left.
func (q *fifo[T]) pop() (v T, ok bool) {
	if q.taken == len(q.all) {
		return v, false
	}
	v = q.all[q.taken]
	q.taken++
	return v, true
}

func (q *fifo[T]) empty() bool { return q.taken == len(q.all) }

// reset empties it and keeps its memory. What it referred to can be collected.
func (q *fifo[T]) reset() {
	clear(q.all)
	q.all, q.taken = q.all[:0], 0
}
