package site

// Ours and Exported are for tests.
var (
	Ours     = ours
	Exported = exported
)
