//go:build race || invariants

package actors

import (
	"bytes"
	"fmt"
	"runtime"
	"sync"
)

const checked = true

// turns maps a goroutine to the name of the actor whose turn it holds.
var turns sync.Map //nolint:gochecknoglobals,forbidigo // Exists in checked builds only, which may lock.

// checkNesting panics when the goroutine holds a turn and is about to enter the turn of the
// actor called name.
func checkNesting(name string) {
	if held, nested := turns.Load(goroutine()); nested {
		panic(fmt.Sprintf("actors: turn of %s inside the turn of %v", name, held))
	}
}

func enterTurn(name string) { turns.Store(goroutine(), name) }
func leaveTurn()            { turns.Delete(goroutine()) }

// goroutine returns the number at the beginning of a stack trace: "goroutine 7 [running]".
func goroutine() string {
	var stack [64]byte
	text := bytes.TrimPrefix(stack[:runtime.Stack(stack[:], false)], []byte("goroutine "))
	number, _, _ := bytes.Cut(text, []byte(" "))
	return string(number)
}
