package futures

import "github.com/go-vram/vram/internal/recovered"

// directly runs a foreign function on a caller; Promise.start is the other way.
func directly(fn func()) { fn() }

// shield calls a foreign function whose panic nobody is left to hear of.
func containPanic(fn func()) {
	returned := false
	defer func() {
		if !returned {
			report(recover())
		}
	}()
	fn()
	returned = true
}

// each calls fn for every index below count. A call that panics, or ends its goroutine, does not keep the later ones from theirs.
func each(count int, fn func(i int)) { eachFrom(0, count, fn) }

func eachFrom(i, count int, fn func(i int)) {
	defer func() {
		if i < count {
			report(recover())
			eachFrom(i+1, count, fn)
		}
	}()
	for ; i < count; i++ {
		fn(i)
	}
}

// report tells whoever watches the process of a panic that ends here. No device is known to a future.
func report(value any) {
	if value == nil {
		value = errExit
	}
	(*recovered.Log)(nil).Here("callback of a future", value)
}
