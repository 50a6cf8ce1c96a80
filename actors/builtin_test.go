//go:build vram_builtin

package actors

// send posts m. The built-in framework has no way in of its own.
func send(r *Ref, m Message) { r.Tell(m) }

// poison stops the actor after the queued messages.
func poison(r *Ref) { r.Stop(nil) }

// debugVars is the pattern that serves /debug/vars: nothing does.
const debugVars = ""
