package simulation

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/go-vram/vram/cudadrv"
)

// task is something that runs by itself: a caller inside a call, a turn of an actor's worker, a driver job.
type task struct {
	key      uint64 // the same whenever the same history is played, also where parts of it are left out
	name     string // for people, with the number of the action that it comes from
	action   uint32
	worker   string // whose tasks run one after the other; "" for none
	closed   []<-chan struct{}
	work     func()
	routine  *routine         // once it has begun
	children uint64           // tasks that it has started
	passing  int              // places that it runs past before others may run
	since    uint64           // the moment of the last answer that it got, or of its beginning
	asked    []cudadrv.Stream // that it was told are not captured, until it makes the call that it asked for
	recorded cudadrv.Stream   // where it has recorded a fence, until it has asked once more
	paused   string           // the place where it is
	// transfers says that it is a caller inside Transfer, which waits for excluded streams, too.
	transfers bool
}

// ready reports whether the task can resume.
func (t *task) ready() bool { return len(t.closed) == 0 || anyClosed(t.closed) }

func anyClosed(channels []<-chan struct{}) bool {
	for _, c := range channels {
		select {
		case <-c:
			return true
		default:
		}
	}
	return false
}

// scheduler runs tasks, one at a time, each until it lets others run.
type scheduler struct {
	tasks   []*task // not ended
	current *task
	moment  uint64 // how often a capture has begun or ended
	idle    []*routine
	workers map[string][]*task // that wait for the one before them, by worker; an entry while there is one
	runs    []*task            // scratch
	escaped func(t *task, value any)
}

// start makes a task. It runs when it is resumed.
func (s *scheduler) start(key uint64, name string, work func()) *task {
	t := &task{key: key, name: name, work: work, since: s.moment}
	s.tasks = append(s.tasks, t)
	return t
}

// spawn makes a task of the current one's.
func (s *scheduler) spawn(worker string, work func()) {
	if worker == "" {
		parent := s.current
		parent.children++
		t := s.start(mixed(parent.key, parent.children), parent.name, work)
		t.action = parent.action
		return
	}
	t := &task{key: keyOf(worker), name: worker, worker: worker, work: work}
	if waiting, busy := s.workers[worker]; busy {
		s.workers[worker] = append(waiting, t)
		return
	}
	s.workers[worker] = nil
	s.tasks = append(s.tasks, t)
}

// runnable returns the tasks that can be resumed. The result is valid until the next call.
func (s *scheduler) runnable() []*task {
	s.runs = s.runs[:0]
	for _, t := range s.tasks {
		if t.ready() {
			s.runs = append(s.runs, t)
		}
	}
	return s.runs
}

// find returns the task with that key, if it is there and can be resumed.
func (s *scheduler) find(key uint64) *task {
	for _, t := range s.tasks {
		if t.key == key && t.ready() {
			return t
		}
	}
	return nil
}

// resume runs a task past that many places, or until it waits or ends.
func (s *scheduler) resume(t *task, passing int) {
	if t.routine == nil {
		s.begin(t)
	}
	t.closed, t.passing = nil, passing
	r := t.routine
	s.current = t
	r.next()
	s.current = nil
	if r.ended {
		s.end(t)
	}
}

func (s *scheduler) begin(t *task) {
	if last := len(s.idle) - 1; last >= 0 {
		t.routine, s.idle = s.idle[last], s.idle[:last]
	} else {
		t.routine = newRoutine()
	}
	t.routine.ended = false
	t.routine.work = func() { s.do(t) }
}

// do runs the work of a task. No panic may get that far.
func (s *scheduler) do(t *task) {
	defer func() {
		value := recover()
		if err, ok := value.(error); value == nil || ok && errors.Is(err, errAbandoned) {
			return
		}
		s.escaped(t, value)
	}()
	t.work()
}

func (s *scheduler) end(t *task) {
	s.idle = append(s.idle, t.routine)
	s.tasks = slices.DeleteFunc(s.tasks, func(o *task) bool { return o == t })
	if t.worker == "" {
		return
	}
	if waiting := s.workers[t.worker]; len(waiting) > 0 {
		s.workers[t.worker] = waiting[1:]
		s.tasks = append(s.tasks, waiting[0])
	} else {
		delete(s.workers, t.worker)
	}
}

// reach lets others run, unless the current task is to run past the place.
func (s *scheduler) reach(place string) {
	t := s.current
	if t == nil { // the scheduler itself
		return
	}
	if t.passing > 0 {
		t.passing--
		return
	}
	t.paused = place
	t.routine.pause()
}

// wait lets others run until one of the channels is closed.
func (s *scheduler) wait(channels []<-chan struct{}) {
	t := s.current
	for !anyClosed(channels) {
		t.closed, t.paused = channels, "waiting"
		t.routine.pause()
	}
}

// abandon ends the tasks that are still there, and all routines.
func (s *scheduler) abandon() {
	for _, t := range s.tasks {
		if t.routine != nil {
			s.current = t
			t.routine.stop()
		}
	}
	for _, r := range s.idle {
		r.stop()
	}
	s.tasks, s.idle, s.current = nil, nil, nil
}

// keyOf returns the key of a worker's tasks. The highest bit distinguishes it from the keys of actions.
func keyOf(worker string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(worker)) // a hash never fails
	return h.Sum64() | 1<<63
}

// mixed makes one number of two (splitmix64).
func mixed(a, b uint64) uint64 {
	z := a + b*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// label names a task for people.
func (t *task) label() string {
	if t.worker != "" || t.action == 0 {
		return t.name
	}
	return fmt.Sprintf("%s of %d", t.name, t.action)
}
