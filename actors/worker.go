package actors

import "github.com/asynkron/protoactor-go/actor"

// worker is one goroutine for each actor. A goroutine for each activation, protoactor's default, grows a new stack every time:
// six times the cost.
type worker struct {
	// tasks has room for the one turn there is, so that Schedule never blocks. It is never closed: nil ends.
	tasks chan func()
	done  chan struct{}

	host Host   // Runs the tasks instead, one after the other under the name, if there is one.
	name string // Of the actor.
}

var _ actor.Dispatcher = (*worker)(nil)

func newWorker(host Host, name string) *worker {
	return &worker{tasks: make(chan func(), 1), done: make(chan struct{}), host: host, name: name}
}

// start makes the goroutine. A host makes its own.
func (w *worker) start() {
	if w.host == nil {
		go w.loop()
	}
}

// Schedule runs fn on the worker. The caller holds the turn and hands it over.
func (w *worker) Schedule(fn func()) {
	if w.host != nil {
		w.host.Go(w.name, fn)
		return
	}
	w.tasks <- fn
}

// Throughput is how many messages a turn on the worker handles at most.
func (w *worker) Throughput() int { return workerBudget }

// end ends the goroutine once it has nothing to do. It is called once, by the turn that stopped the actor,
// so that no other turn can be in the channel.
func (w *worker) end() {
	if w.host != nil {
		w.host.Go(w.name, func() { close(w.done) })
		return
	}
	w.tasks <- nil
}

func (w *worker) loop() {
	ended := false
	defer func() {
		if ended {
			close(w.done)
			return
		}
		// Foreign code ended this goroutine, and whoever recovered from that has scheduled what is left to do.
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
