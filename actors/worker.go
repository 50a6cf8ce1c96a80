package actors

// Worker is a goroutine that runs tasks one after the other. Each actor has one, and so may any
// owner of work at intervals: a goroutine for each piece of work grows a new stack every time, six
// times the cost.
type Worker struct {
	// tasks has room for the one task there is, so that Schedule never blocks. It is never closed:
	// nil ends.
	tasks chan func()
	done  chan struct{}

	host Host   // Runs the tasks instead, one after the other under the name, if there is one.
	name string // Of the actor.
}

// NewWorker makes a worker that is not started yet. On a host the name must be unique; nil is the
// Go scheduler.
func NewWorker(host Host, name string) *Worker {
	return &Worker{tasks: make(chan func(), 1), done: make(chan struct{}), host: host, name: name}
}

// Start makes the goroutine. A host makes its own.
func (w *Worker) Start() {
	if w.host == nil {
		go w.loop()
	}
}

// Schedule runs fn on the worker. It does not wait, so long as no task is given before the one
// before it was begun: an actor's is the turn, which the caller holds and hands over.
func (w *Worker) Schedule(fn func()) {
	if w.host != nil {
		w.host.Go(w.name, fn)
		return
	}
	w.tasks <- fn
}

// End ends the goroutine once it has nothing to do. It is called once, as the last task.
func (w *Worker) End() {
	if w.host != nil {
		w.host.Go(w.name, func() { close(w.done) })
		return
	}
	w.tasks <- nil
}

// Done is closed when the goroutine has ended.
func (w *Worker) Done() <-chan struct{} { return w.done }

func (w *Worker) loop() {
	ended := false
	defer func() {
		if ended {
			close(w.done)
			return
		}
		// Foreign code ended this goroutine, and the code that recovered from that has scheduled
		// the remaining work.
		go w.loop()
	}()
	for fn := range w.tasks {
		if fn == nil {
			ended = true
			return
		}
		fn()
	}
}
