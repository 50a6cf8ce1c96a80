package futures

// directly and asynchronously are the two ways to run foreign functions: on a caller, and away from a completing goroutine.
func directly(fn func())       { fn() }
func asynchronously(fn func()) { go fn() }

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
