package site

// Ours is for tests.
var Ours = ours
