package claims

// String names the state.
func (s State) String() string {
	return [...]string{"served", "asked", "consulted", "delayed", "parked"}[s]
}

// String names the verdict.
func (v Verdict) String() string {
	return [...]string{"drop", "close", "search", "park", "consult", "delay", "fail"}[v]
}

// String names the step.
func (s Searched) String() string {
	return [...]string{"first", "after fences", "after a look", "after taking fences"}[s]
}
