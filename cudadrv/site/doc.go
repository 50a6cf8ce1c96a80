// Package site records places in a program: the call stack of an operation. A record costs 0.3 to 1 microseconds and
// one heap allocation; names and lines are looked up when it is printed. Only checking drivers and the allocator's debug
// mode make records.
package site
