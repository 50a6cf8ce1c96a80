package futures

// directly runs a foreign function on a caller; Promise.start is the other way.
func directly(fn func()) { fn() }

// shield calls a foreign function whose panic nobody is left to hear of.
func shield(fn func()) {
	defer func() { _ = recover() }()
	fn()
}

// each calls fn for every index below count. A call that panics, or ends its goroutine, does not keep the later ones from theirs.
func each(count int, fn func(i int)) { eachFrom(0, count, fn) }

func eachFrom(i, count int, fn func(i int)) {
	defer func() {
		if i < count {
			_ = recover()
			eachFrom(i+1, count, fn)
		}
	}()
	for ; i < count; i++ {
		fn(i)
	}
}
