package mutate

import _ "embed"

// helpers is the file that each changed package gets: the switches.
//
//go:embed helpers.go.txt
var helpers string
