//go:build !race && !invariants

package actors

// checked is false in production: the checks that it guards cost nothing there.
const checked = false

func checkNesting(string) {}
func enterTurn(string)    {}
func leaveTurn()          {}
