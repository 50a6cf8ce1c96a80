// Package site notes where in a program something was done: the calls that led there. A note costs 0.3 to 1
// microseconds and one heap allocation; names and lines are looked up when it is shown. Drivers that check and the
// allocator's debug mode take notes, nothing else does.
package site
