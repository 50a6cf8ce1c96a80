//go:build !race && !invariants

package actors

// checked is false in production: what it guards costs nothing there.
const checked = false

func checkNesting(string) {}
func enterTurn(string)    {}
func leaveTurn()          {}
