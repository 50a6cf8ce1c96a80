// Package browser tests the live page of monitor/page in a real Chromium. It has tests only, and is a module of its own:
// programs that import vram get none of its dependencies.
package browser
