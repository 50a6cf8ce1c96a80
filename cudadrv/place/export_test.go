package place

// Ours is for tests.
var Ours = ours
