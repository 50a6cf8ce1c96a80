package core

import "github.com/go-vram/vram/internal/pages"

// Run is a sequence of pages of the arena.
type Run = pages.Run
