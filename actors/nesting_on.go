//go:build race || invariants

package actors

import (
	"fmt"
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
