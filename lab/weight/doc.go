// Package weight holds what a program that imports vram is made of: its size, the modules that are linked into it, and the HTTP
// handlers that importing registers. It has tests only; they build the program in lab/weight/hello.
//
// By default protoactor-go is linked, and through it net/http and expvar, which registers "GET /debug/vars" with
// http.DefaultServeMux when it is imported. With the build tag vram_builtin none of them is.
package weight
