//go:build !race

package vram_test

const raceDetector = false
