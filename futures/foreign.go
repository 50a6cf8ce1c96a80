package futures

import "github.com/go-vram/vram/internal/recovered"

// containPanic calls a foreign function whose panic has no other recipient.
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

// each calls fn for every index below count. A call that panics, or ends its goroutine, does not
// keep the later ones from theirs.
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

// report reports a panic that ends here to the process-wide log. A future does not know its device.
func report(value any) {
	if value == nil {
		value = errExit
	}
	(*recovered.Log)(nil).Here("callback of a future", value)
}
