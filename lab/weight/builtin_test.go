//go:build vram_builtin

package weight

// debugVars is the pattern that serves /debug/vars: nothing does.
const debugVars = ""
